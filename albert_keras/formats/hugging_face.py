"""Folders of Hugging Face, as transformers reads and writes them: `config.json` and weights.

No code of a folder runs, and neither transformers nor PyTorch is needed.
"""

import logging
from pathlib import Path

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import CONFIG, HUGGING_FACE_WEIGHTS
from albert_keras.formats.hugging_face_config import (
    class_of,
    family_for,
    family_of,
    read_labels,
    to_albert_config,
    to_values,
)
from albert_keras.formats.hugging_face_tables import Family
from albert_keras.formats.hugging_face_tensors import (
    with_current_names,
    with_pooler,
    without_copies,
    without_unknown_heads,
    without_unused_pooler,
)
from albert_keras.formats.model_folder import (
    check_file_name,
    read_vocabulary_file,
    write_files,
)
from albert_keras.formats.model_weights import (
    POOLER,
    ModelWeights,
    encoder_shapes,
    head_shapes,
    with_blank_types,
    with_identity_projection,
    without_blank_types,
    without_identity_projection,
    without_pooler_of_zeros,
    zeros_of_pooler,
)
from albert_keras.formats.safetensors_file import read_safetensors, write_safetensors
from albert_keras.formats.sentence_transformers import embedding_of, encoder_folder
from albert_keras.formats.tensor_table import (
    Row,
    expand,
    read_by_table,
    read_reference_tensors,
    write_by_table,
)
from albert_keras.formats.vocabulary import vocabulary_of
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.limits import read_json, reading_json

WEIGHTS = "model.safetensors"
#: Files of SentencePiece, WordPiece and byte-level BPE tokenizers.
_TOKENIZER_FILES = (
    "spiece.model",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)

logger = logging.getLogger(__name__)


def read(path):
    """Reads a model of one of the `FAMILIES`; see `formats`.

    A missing pooler of an ALBERT or a BERT is replaced by zeros, if no head needs it. Numbers of 16
    bits are exact in float32; numbers of 64 bits are rounded.
    """
    embedding, source = embedding_of(Path(path)), str(path)
    folder = encoder_folder(Path(path))
    values = read_json(folder / CONFIG)
    family = family_of(values)
    is_tied = values.get("tie_word_embeddings") is not False
    theirs = with_current_names(_read_weights(folder), family, source)
    theirs = without_copies(theirs, family, is_tied, source)
    theirs, notes = without_unknown_heads(theirs, family)
    heads = family.heads_in(theirs)
    class_name = class_of(family, heads, values) if heads in family.classes else ""
    config = to_albert_config(family, values, heads)
    needs_pooler = family.needs_pooler(heads, class_name)
    rows = _rows_of(family, config, heads, class_name)
    theirs = without_unused_pooler(theirs, family, rows, source)
    if config.pooler == "always" and not needs_pooler:
        theirs = with_pooler(theirs, family, config, source)
    named = {row.ours: theirs[row.theirs] for row in rows if row.theirs in theirs}
    names = [*named, f"{POOLER}/kernel"] if needs_pooler else named
    shapes = encoder_shapes(config, names) | head_shapes(config, named)
    tensors = read_by_table(rows, theirs, shapes, source)
    labels = _labels(values, len(tensors["output_bias"])) if "classifier" in heads else ()
    tensors, config = without_identity_projection(tensors, config)
    if family.name == "roberta":
        tensors, config = without_blank_types(tensors, config)
        tensors = tensors if needs_pooler else without_pooler_of_zeros(tensors)
    files = _tokenizer_files(folder)
    return ModelWeights(config, tensors, source, files, labels, embedding, notes)


def read_tokenizer(path):
    """Reads the vocabulary of a folder; None if there is none."""
    return vocabulary_of(_tokenizer_files(encoder_folder(Path(path))), path)


def _tokenizer_files(folder):
    paths = [folder / name for name in _TOKENIZER_FILES]
    return {path.name: read_vocabulary_file(path) for path in paths if path.is_file()}


def write(weights, folder):
    """Writes a folder that transformers loads: configuration, weights in float32, tokenizer files.

    Where E = H and our model does not project, a projection that changes nothing is written,
    because transformers' ALBERT always has one. A pooler of zeros is omitted where their class has
    none, and written where their class has one that ours does not need; so is a table of one
    segment type in a RoBERTa.
    """
    folder = Path(folder)
    for name in weights.tokenizer_files:
        check_file_name(name, weights.source)
        if name in (CONFIG, WEIGHTS):
            raise InputError(f"`{name}` of `{weights.source}` is not a tokenizer file.")
    family, groups = family_for(weights.config)
    config, heads = weights.config, weights.heads
    class_name = class_of(family, heads, config.foreign_keys)
    tensors = read_reference_tensors(config, weights.tensors, weights.source)
    num_classes = len(tensors["output_bias"]) if "classifier" in heads else 0
    values = to_values(config, heads, weights.labels, num_classes)
    if f"{POOLER}/kernel" not in tensors and family.needs_pooler(heads, class_name):
        raise InputError(
            f"A {class_name} must have a pooler. `{weights.source}` has none: name another class, "
            "such as one for token classification, as `architectures` of its configuration."
        )
    rows = _rows_of(family, config.replace(num_hidden_groups=groups), heads, class_name)
    if family.shares and not config.projects_embeddings:
        tensors = with_identity_projection(tensors, config)
    if family.name == "roberta":
        tensors, _ = with_blank_types(tensors, config)
    if class_name.endswith(family.without_pooler):
        tensors = without_pooler_of_zeros(tensors)
    elif family.pooler and f"{POOLER}/kernel" not in tensors:  # of a class that has one
        tensors = tensors | zeros_of_pooler(config)
    theirs = write_by_table(rows, tensors)
    if not heads:
        theirs = {name.removeprefix(family.prefix): array for name, array in theirs.items()}
    write_safetensors(folder / WEIGHTS, theirs)
    write_json(folder / CONFIG, values, sort_keys=True, ensure_ascii=False)
    write_files(folder, weights.tokenizer_files)


def _read_weights(folder: Path) -> dict[str, np.ndarray]:
    """Reads all tensors of a folder, in one file or in several."""
    path = next((folder / name for name in HUGGING_FACE_WEIGHTS if (folder / name).is_file()), None)
    if path is None:
        raise InputError(f"`{folder}` does not contain weights: {WEIGHTS}.")
    if path.suffix == ".bin":
        raise InputError(
            f"`{path}` is a pickle, a program that runs when it is read. Use {WEIGHTS} of the same "
            "model or, if you trust the author of the file, write it with PyTorch: `python -c "
            '"import torch, safetensors.torch as s; s.save_file({name: tensor.contiguous().clone() '
            f"for name, tensor in torch.load('{path}', 'cpu', weights_only=True).items()}}, "
            f"'{folder / WEIGHTS}')\"`."
        )
    if path.suffix == ".safetensors":
        return read_safetensors(path)
    with reading_json(path) as values:
        files = sorted(set(values["weight_map"].values()))
    tensors = {}
    for name in files:
        check_file_name(name, path)
        tensors |= read_safetensors(folder / name)
    return tensors


def _rows_of(
    family: Family, config: AlbertConfig, heads: tuple[str, ...], class_name: str
) -> list[Row]:
    """Returns the table of a model without braces."""
    groups = config.num_hidden_groups if family.shares else config.num_hidden_layers
    return expand(family.rows(heads, class_name), groups, config.inner_group_num)


def _labels(values, num_classes):
    """Returns the names of the classifier's classes; options of a choice have none."""
    labels = read_labels(values)
    if num_classes == 1 and len(labels) != 1:
        return ()
    if labels and len(labels) != num_classes:
        raise InputError(f"`id2label` must name {num_classes} classes. Received: {list(labels)}.")
    return labels
