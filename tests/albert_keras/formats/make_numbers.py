"""A program for a Python that has transformers and PyTorch: makes `numbers_of_transformers.npz`.

    python make_numbers.py

The file has, for each class in `CASES`, a tiny model with random weights and what transformers 5.23
answers for the batch of `inputs` (5.24 for pre-training); `read` returns them.
"""

import json
import math
from pathlib import Path

import numpy as np

SIZES = {"vocab_size": 16, "num_labels": 2, "pad_token_id": 1}
ROBERTA = {
    "hidden_size": 8,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 12,
    "max_position_embeddings": 12,
    "type_vocab_size": 1,
    "layer_norm_eps": 1e-5,
}
ALBERT = ROBERTA | {
    "embedding_size": 6,
    "num_hidden_layers": 4,
    "num_hidden_groups": 2,
    "inner_group_num": 2,
    "type_vocab_size": 2,
}
BERT = ROBERTA | {"type_vocab_size": 2, "hidden_act": "gelu_new"}
DISTILBERT = {
    "dim": 8,
    "n_layers": 2,
    "n_heads": 2,
    "hidden_dim": 12,
    "max_position_embeddings": 10,
}
TASKS = ("MaskedLM", "SequenceClassification", "TokenClassification", "QuestionAnswering")
CASES = {
    f"{kind}For{task}": SIZES | sizes | ({"num_labels": 3} if task.endswith("ication") else {})
    for kind, sizes in (("Roberta", ROBERTA), ("DistilBert", DISTILBERT))
    for task in TASKS
}
CASES |= {"AlbertForPreTraining": SIZES | ALBERT, "BertForPreTraining": SIZES | BERT}
FILE = Path(__file__).with_name("numbers_of_transformers.npz")


def inputs():
    """Returns three rows of ten: full, padded left, padded right."""
    mask = np.ones((3, 10), np.int64)
    mask[1, :4] = mask[2, 7:] = 0
    ids = np.random.default_rng(0).integers(2, 16, (3, 10))
    return {"input_ids": np.where(mask == 1, ids, 1), "attention_mask": mask}


def read(name):
    """Returns the config.json, the tensors and the outputs of a case, dicts."""
    with np.load(FILE) as file:
        described = json.loads(str(file[f"{name}/json"]))
        parts = (file[f"{name}/{part}"].astype(np.float32) for part in ("tensors", "outputs"))
        named = []
        for part, shapes in zip(parts, (described["tensors"], described["outputs"]), strict=True):
            ends = np.cumsum([math.prod(shape) for shape in shapes.values()])
            arrays = np.split(part, ends[:-1])
            named.append(
                {k: a.reshape(s) for (k, s), a in zip(shapes.items(), arrays, strict=True)}
            )
    return described["config"], *named


def make(name, values):
    """Returns what the file has of a case: numbers one after the other, and JSON about them."""
    import torch
    import transformers

    configuration = getattr(transformers, name.split("For")[0] + "Config")(**values)
    torch.manual_seed(5)
    model = getattr(transformers, name)(configuration).eval()
    with torch.no_grad():  # so that none is hidden by being 0 or 1
        for parameter in model.parameters():
            parameter.add_(torch.randn(parameter.shape) * 0.3)
            parameter.copy_((parameter * 128).round() / 128)
        batch = {name: torch.from_numpy(array) for name, array in inputs().items()}
        answer = model(**batch, output_hidden_states=True)
    tied = set(model._tied_weights_keys or ())
    tensors = {k: v.numpy() for k, v in model.state_dict().items() if k not in tied}
    outputs = {k: v.numpy() for k, v in answer.items() if torch.is_tensor(v)}
    outputs["sequence_output"] = answer.hidden_states[-1].numpy()
    described = {
        "config": configuration.to_diff_dict() | {"architectures": [name]},
        "tensors": {k: v.shape for k, v in tensors.items()},
        "outputs": {k: v.shape for k, v in outputs.items()},
    }
    return {
        f"{name}/json": np.array(json.dumps(described)),
        # Multiples of 1/128, which float16 represents exactly.
        f"{name}/tensors": np.concatenate([v.ravel() for v in tensors.values()]).astype("f2"),
        f"{name}/outputs": np.concatenate([v.ravel() for v in outputs.values()]),
    }


if __name__ == "__main__":
    arrays = {}
    for case, values in CASES.items():
        arrays |= make(case, values)
    np.savez_compressed(FILE, **arrays)
