"""Folders of Hugging Face, as transformers reads and writes them: `config.json` and weights.

Nothing of a folder runs, and neither transformers nor PyTorch is needed, but for
`pytorch_model.bin`.
"""

import json
from pathlib import Path

from albert_keras.interop.hugging_face_config import (
    read_labels,
    read_values,
    to_albert_config,
    to_values,
)
from albert_keras.interop.hugging_face_family import class_of, family_for, family_of
from albert_keras.interop.hugging_face_files import (
    CONFIG,
    WEIGHTS,
    find_weights,
    read_tokenizer_files,
    read_weights,
    require_plain,
)
from albert_keras.interop.hugging_face_tensors import (
    has_zero_pooler,
    named_as_today,
    rows_of,
    with_identity_projection,
    with_pooler,
    without_copies,
    without_identity_projection,
    without_pooler,
)
from albert_keras.interop.model_weights import ModelWeights
from albert_keras.interop.reference_shapes import encoder_shapes, head_shapes
from albert_keras.interop.safetensors_file import write_safetensors
from albert_keras.interop.tensor_table import Row, read_by_table, write_by_table
from data_pipeline.errors import InputError

NAME = "hugging-face"


def is_source(path):
    """Tells whether a folder looks like one of transformers, of whatever kind of model."""
    folder = Path(path)
    if not folder.is_dir() or not (folder / CONFIG).is_file() or find_weights(folder) is None:
        return False
    try:
        values = read_values(folder / CONFIG)
    except InputError:
        return False
    return "model_type" in values or "architectures" in values


def read(path, trust_pickle=False):
    """Reads an ALBERT or a BERT.

    Heads that are not there are left out, but for a pooler, which is zeros where no head wants one.
    Numbers of 16 bits are exact in float32, those of 64 are rounded.

    Args:
        path: str or Path. A folder with `config.json`, and `model.safetensors`, one or several
            with an index, or `pytorch_model.bin`.
        trust_pickle: bool. Whether `pytorch_model.bin` may be read, see `read_torch_file`.

    Returns:
        ModelWeights.

    Raises:
        InputError: If it is another model than ours can be, or tensors are missing, unknown,
            misshapen or not finite: all are named.
    """
    folder, source = Path(path), str(path)
    values = read_values(folder / CONFIG)
    family = family_of(values)
    tied = values.get("tie_word_embeddings") is not False
    theirs = named_as_today(read_weights(folder, trust_pickle), family, source)
    theirs = without_copies(theirs, family, tied, source)
    heads = tuple(
        head for head, rows in family.heads.items() if any(row.theirs in theirs for row in rows)
    )
    config = to_albert_config(family, values, heads)
    classes = values.get("architectures")
    classes = classes if isinstance(classes, list) else []
    theirs = with_pooler(theirs, family, config, heads, classes, source)
    rows = rows_of(family, config, heads)
    named = {row.ours: theirs[row.theirs] for row in rows if row.theirs in theirs}
    shapes = encoder_shapes(config) | head_shapes(config, named)
    tensors = read_by_table(rows, theirs, shapes, source)
    labels = _labels(values, tensors) if "classifier" in heads else ()
    tensors, config = without_identity_projection(tensors, config)
    return ModelWeights(config, tensors, source, read_tokenizer_files(folder), labels)


def write(weights, folder):
    """Writes a folder that transformers loads: configuration, weights in float32, tokenizer files.

    Where E = H and we do not project, a projection that changes nothing is written: transformers'
    ALBERT always has one. A pooler of zeros is left out where their class has none.

    Args:
        weights: ModelWeights.
        folder: str or Path. It exists and is empty.

    Raises:
        InputError: If transformers has no such model or no such heads, or the weights are not
            those of the configuration.
    """
    folder, config, heads = Path(folder), weights.config, weights.heads
    for name in weights.tokenizer_files:
        require_plain(name, weights.source)
        if name in (CONFIG, WEIGHTS):
            raise InputError(f"`{name}` of `{weights.source}` is no file of a tokenizer.")
    family, groups = family_for(config)
    name = class_of(family, heads, config.foreign_keys)
    shapes = encoder_shapes(config) | head_shapes(config, weights.tensors)
    same = [Row(tensor, tensor) for tensor in shapes]
    tensors = read_by_table(same, weights.tensors, shapes, weights.source)
    num_classes = len(tensors["output_bias"]) if "classifier" in heads else 0
    values = to_values(config, heads, weights.labels, num_classes)
    rows = rows_of(family, config.replace(num_hidden_groups=groups), heads)
    if family.name == "albert" and not config.projects_embeddings:
        tensors = with_identity_projection(tensors, config)
    if name.endswith(family.without_pooler) and has_zero_pooler(tensors):
        tensors = without_pooler(tensors)
    theirs = write_by_table(rows, tensors)
    if not heads:
        theirs = {name.removeprefix(family.prefix): array for name, array in theirs.items()}
    write_safetensors(folder / WEIGHTS, theirs)
    text = json.dumps(values, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    (folder / CONFIG).write_text(text, encoding="utf-8")
    for name, content in weights.tokenizer_files.items():
        (folder / name).write_bytes(content)


def _labels(values, tensors):
    """Returns the names of the classifier's classes; options of a choice have none."""
    labels, number = read_labels(values), len(tensors["output_bias"])
    if number == 1 and len(labels) != 1:
        return ()
    if labels and len(labels) != number:
        raise InputError(f"`id2label` should name {number} classes. Received: {list(labels)}.")
    return labels
