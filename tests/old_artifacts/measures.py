"""What is compared between 1.0.0 and the current commit, as plain JSON.

The same functions run under both: the packages of 1.0.0 have written JSON with them, and the
tests call them with the current ones. So they use only names that the packages promise at their
top level, and files whose layout the documentation promises.
"""

import hashlib
import zlib

import numpy as np

#: Settings of the pre-training that is interrupted, as a file for `--config`. Weights begin so
#: large that answers depend on each piece of a text after a few steps already, and two feed-forward
#: networks tell which layer is which.
PRETRAINING = {
    "model": {
        "size": "albert-tiny",
        "hidden_size": 24,
        "embedding_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 32,
        "max_position_embeddings": 32,
        "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1,
        "initializer_range": 0.2,
        "sharing": "attention",
    },
    "training": {
        "steps": 8,
        "batch_size": 8,
        "seed": 7,
        "checkpoint_every": 2,
        "keep_checkpoints": 1,
        "report_every": 1,
        "strategy": "single",
        "precision": "float32",
        "initial_output_bias": "zeros",
    },
    "optimizer": {"lr": 0.01, "warmup_steps": 2},
}

#: The command that pre-trains, without the name of the run; paths are inside the archive.
PRETRAIN = ("pretrain", "--data", "records", "--config", "pretraining.json", "--out")

#: The command that fine-tunes; paths are inside the archive.
FINETUNE = (
    *("finetune", "--task", "classification", "--train", "train.csv", "--dev", "dev.csv"),
    *("--text", "text", "--label", "topic", "--from", "run", "--out", "finetuned"),
    *("--steps", "80", "--evaluate-every", "40", "--batch-size", "16", "--lr", "0.0007"),
    *("--max-seq-length", "32", "--seed", "5", "--precision", "float32", "--strategy", "single"),
    *("--set", "training.keep_checkpoints=1"),
)

#: Keys of a line of the log that are the same whenever a run is repeated.
LOGGED = (
    *("step", "loss", "masked_lm_loss", "masked_lm_accuracy"),
    *("sentence_order_loss", "sentence_order_accuracy", "learning_rate", "gradient_norm"),
)

MASKED_TEXTS = (
    "the [MASK] sailor mends the net .",
    "a baker [MASK] the bread near the [MASK] .",
    "The Quiet Gardener waters [MASK]",
)
PAIRS = (
    ("the old sailor mends the net .", "then the boat leaves the harbour ."),
    ("then the boat leaves the harbour .", "the old sailor mends the net ."),
)
TOPIC_TEXTS = (
    "the sailor rows the boat past the harbour",
    "a proud baker stirs the soup",
    "the captain mends the sail, and the baker slices the bread",
    "nothing of this is known: xyz £7",
)

#: Ids of some rows of pieces, which any vocabulary of 160 has.
_ROWS = ((2, 40, 41, 4, 90, 3, 12, 150, 3), (2, 159, 5, 77, 3, 60, 61, 62, 3))


def of_records(folder):
    """Reads a folder of records in each way there is: number of records, digests of arrays."""
    from data_pipeline import RecordFiles, evaluation_dataset, training_dataset

    records = RecordFiles(folder)
    info = records.info
    masks = ("static", "dynamic") if info.static_masks else ("dynamic",)
    return {
        "num_records": len(records),
        "max_seq_length": info.max_seq_length,
        "vocab_size": info.vocab_size,
        "objective": info.objective,
        "fingerprint": info.fingerprint,
        "serialised": hashlib.sha256(b"".join(records.read(range(len(records))))).hexdigest(),
        "evaluation": _digests(evaluation_dataset(records, 16)),
        # Twelve batches of eight reach into the second epoch.
        "training": {
            name: _digests(training_dataset(records, 8, seed=7, masks=name).take(12))
            for name in masks
        },
    }


def _digests(dataset):
    """Digests the batches of a data set: a dict of one per feature, with its type and shape."""
    hashes, shapes = {}, {}
    for batch in dataset.as_numpy_iterator():
        for name, array in batch.items():
            hashes.setdefault(name, hashlib.sha256()).update(array.tobytes())
            shapes[name] = f"{array.dtype} {list(array.shape)}"
    return {name: f"{shapes[name]} {hashes[name].hexdigest()}" for name in sorted(hashes)}


def of_tokenizer(folder):
    """Cuts a text with characters of all kinds by a tokenizer: ids, and what they stand for."""
    from data_pipeline import Tokenizer

    tokenizer = Tokenizer.load(folder)
    ids = list(map(int, tokenizer.encode("The Old Sailor's café: 12 (red) nets – £7, “good”!")))
    return {"ids": ids, "pieces": [tokenizer.piece_of(id) for id in ids]}


def of_log(lines):
    """Keeps of the reports in a log (list of dict) what does not depend on the clock."""
    return [{key: line[key] for key in LOGGED} for line in lines if "loss" in line]


def of_checkpoint(prefix):
    """Measures the weights in a checkpoint: names of all tensors, norms and projections.

    Biases of the keys are left out: attention does not depend on them, so that rounding alone
    decides where they go.
    """
    import tensorflow as tf

    reader = tf.train.load_checkpoint(str(prefix))
    shapes = reader.get_variable_to_shape_map()
    weights = {}
    for name in sorted(shapes):
        if name.startswith(("bert/", "cls/")) and "/adam_" not in name and "key/bias" not in name:
            tensor = reader.get_tensor(name).astype(np.float64).ravel()
            direction = np.random.default_rng(zlib.crc32(name.encode())).uniform(-1, 1, tensor.size)
            weights[name] = [float(np.linalg.norm(tensor)), float(tensor @ direction)]
    return {"shapes": {name: list(shapes[name]) for name in sorted(shapes)}, "weights": weights}


def of_evaluation(run, data, **options):
    """Scores a pre-training run on records, as `evaluate` does, with its further options."""
    from albert_keras import evaluate

    scores = evaluate(run, data, **options)._asdict()
    # Baselines need the records of the training where they were.
    return {name: value for name, value in scores.items() if name not in ("path", "baselines")}


def of_keras_model(path):
    """Loads a `.keras` file as anybody does, and measures its outputs for some rows."""
    import keras
    import tensorflow as tf

    import albert_keras.saving  # noqa: F401 (the file names classes of this package)

    model = keras.models.load_model(path)
    outputs = model({"input_ids": tf.constant(_ROWS), "masked_lm_positions": [[3, 4], [1, 2]]})
    return {
        "num_parameters": model.count_params(),
        # The full name is `path` in Keras 3, and `name` in Keras 2.15.
        "weights": sorted(getattr(each, "path", each.name).split(":")[0] for each in model.weights),
        "outputs": {
            name: [list(value.shape), float(tf.norm(value)), float(tf.reduce_mean(value))]
            for name, value in sorted(outputs.items())
        },
    }


def of_pretrained_export(path):
    """Asks an export of a pre-trained model what it can be asked."""
    from albert_keras import Predictor

    predictor = Predictor(path)
    return {
        "fill_mask": [
            {
                "filled_text": answer.filled_text,
                "masks": [[list(one) for one in mask] for mask in answer.masks],
            }
            for answer in predictor.fill_mask(list(MASKED_TEXTS), top_k=3)
        ],
        "sentence_order": [
            answer.in_order
            for answer in predictor.sentence_order(*map(list, zip(*PAIRS, strict=True)))
        ],
    }


def of_finetuned_run(path):
    """Asks a fine-tuned run for the topics of some texts."""
    from albert_keras import open_finetuned

    model = open_finetuned(path)
    return _of_class_answers(model.answer(list(TOPIC_TEXTS)))


def of_finetuned_export(path):
    """Asks an export of a fine-tuned model the same."""
    from albert_keras import Predictor

    return _of_class_answers(Predictor(path).answer(list(TOPIC_TEXTS)))


def _of_class_answers(answers):
    return [
        {"label": answer.label, "probabilities": dict(answer.probabilities)} for answer in answers
    ]


def of_task_evaluation(run, data):
    """Scores a fine-tuned run on a labelled file, as `evaluate_task` does."""
    from albert_keras import evaluate_task

    scores = evaluate_task(run, data)
    return {
        "task": scores.task,
        "metric": scores.metric,
        "examples": scores.examples,
        "scores": scores.scores,
        "guessing": scores.guessing,
    }
