"""Versions as far as their model card looks at them: a pre-trained and a fine-tuned one."""

import copy

from albert_keras.config import AlbertConfig

TEXT = {"text": ["string", [None]]}
SHAPE = AlbertConfig.from_name("albert-tiny", vocab_size=8000).to_dict()
PRETRAINED = {
    "version": 1,
    "kind": "pretraining",
    "task": None,
    "scores": {},
    "step": 12000,
    "max_seq_length": 64,
    "precision": "float32",
    "accuracy_loss": {},
    "signatures": {
        "serving_default": {"method": "predict", "inputs": TEXT, "outputs": {}},
        "sentence_order": {
            "method": "predict",
            "inputs": {"first": ["string", [None]], "second": ["string", [None]]},
            "outputs": {"in_order": ["float32", [None]]},
        },
    },
    "num_parameters": 784770,
    "run": {
        "kind": "pretraining",
        "config": {
            "training": {"steps": 13000, "batch_size": 64, "seed": 0, "precision": "float32"},
            "optimizer": {"name": "lamb", "lr": 0.002, "warmup_steps": 300},
        },
        "albert_config": SHAPE,
        "data": {
            "path": "/home/ada/books of mine/records64",
            "fingerprint": "840a1df2" * 8,
            "num_records": 167162,
            "max_seq_length": 64,
            "corpus_digest": "02ab6798" * 8,
        },
        "tokenizer_digest": "7e534851" * 8,
        "versions": {"albert-keras": "0.1.0", "tensorflow": "2.15.1"},
        "git_commit": "e0a0b5f6",
        "command": ["/home/ada/bin/albert-keras", "pretrain", "--data", "/secret/place"],
    },
}
FINETUNED = copy.deepcopy(PRETRAINED) | {
    "kind": "finetuning",
    "task": {
        "name": "sst-2",
        "kind": "classification",
        "labels": ["negative", "positive"],
        "takes_pair": False,
        "max_seq_length": 64,
    },
    "scores": {"accuracy": 0.91284, "f1": 0.9},
    "step": 300,
    "precision": "int8",
    "accuracy_loss": {
        "int8": {
            "num_predictions": 256,
            "agreement": 0.996,
            "largest_difference": 0.02,
        }
    },
}
FINETUNED["run"] |= {
    "kind": "finetuning",
    "data": {"origin": "/home/ada/runs/t2 step 12000", "num_records": 2490, "fingerprint": "4c3b"},
}
