"""Folders of Hugging Face, as transformers reads and writes them: `config.json` and weights.

No code of a folder runs, and neither transformers nor PyTorch is needed.
"""

import logging
import os
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

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
from albert_keras.formats.model_weights import blank, without_blank
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.formats.sentence_transformers import check_name, embedding_of, encoder_folder
from albert_keras.formats.tensor_table import Row, expand, read_by_table, write_by_table
from albert_keras.shape import POOLER, PROJECTION, TYPES, encoder_shapes, head_shapes
from data_pipeline.errors import InputError
from data_pipeline.files import write_json
from data_pipeline.limits import check_memory, check_regular_file, read_json, reading_json

WEIGHTS = "model.safetensors"
#: Dtypes of weights. NumPy has no bfloat16 (BF16), which is read as float32.
_DTYPES = ("F64", "F32", "F16", "I64")
#: Name -> array, as in a file of transformers.
Tensors = dict[str, np.ndarray]
#: Names that normalizations had in earlier versions, as in TensorFlow.
_OLD_NAMES = {"LayerNorm.gamma": "LayerNorm.weight", "LayerNorm.beta": "LayerNorm.bias"}
#: Parts of the encoder, with which the names in a model without heads start.
_PARTS = ("embeddings.", "encoder.", "transformer.", "pooler.")
_PRETRAINING = ("masked_lm", "sentence_order")
#: Constants that earlier versions saved, the same in each model.
_CONSTANTS = ("embeddings.position_ids", "embeddings.token_type_ids")

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
    theirs = _with_current_names(_read_weights(folder), family, source)
    theirs = _without_copies(theirs, family, source)
    theirs = _without_unknown_heads(theirs, family)
    heads = family.heads_in(theirs)
    class_name = class_of(family, heads, values) if heads in family.classes else ""
    config = to_albert_config(family, values, heads)
    needs_pooler = family.needs_pooler(heads, class_name)
    rows = _rows_of(family, config, heads, class_name)
    takes_zeros = config.pooler == "always" and not needs_pooler
    theirs = _with_pooler_of_class(theirs, family, rows, config if takes_zeros else None, source)
    named = {row.ours: theirs[row.theirs] for row in rows if row.theirs in theirs}
    names = [*named, f"{POOLER}/kernel"] if needs_pooler else named
    shapes = encoder_shapes(config, names) | head_shapes(config, named)
    tensors = read_by_table(rows, theirs, shapes, source)
    labels = read_labels(values, len(tensors["output_bias"])) if "classifier" in heads else ()
    tensors = without_blank(PROJECTION, config, tensors)
    if f"{PROJECTION}/kernel" not in tensors:
        config = config.replace(embedding_projection="auto")
    if family.name == "roberta":
        tensors = without_blank(TYPES, config, tensors)
        config = config if TYPES in tensors else config.replace(type_vocab_size=0)
        tensors = tensors if needs_pooler else without_blank(POOLER, config, tensors)
    return OpenedModel.of(config, tensors, source, labels=labels, **embedding)


def write(model: OpenedModel, folder: Path):
    """Writes a folder that transformers loads: configuration, weights in float32.

    Where E = H and our model does not project, a projection that changes nothing is written,
    because transformers' ALBERT always has one. A pooler of zeros is omitted where their class has
    none, and written where their class has one that ours does not need; so is a table of one
    segment type in a RoBERTa.
    """
    config, heads, tensors = model.albert_config, model.heads, model.arrays
    family, groups = family_for(config)
    class_name = class_of(family, heads, config.foreign_keys)
    num_classes = len(tensors["output_bias"]) if "classifier" in heads else 0
    values = to_values(config, heads, model.labels, num_classes)
    if f"{POOLER}/kernel" not in tensors and family.needs_pooler(heads, class_name):
        raise InputError(
            f"A {class_name} must have a pooler. `{model.path}` has none: name another class, "
            "such as one for token classification, as `architectures` of its configuration."
        )
    rows = _rows_of(family, config.replace(num_hidden_groups=groups), heads, class_name)
    if family.shares and not config.projects_embeddings:
        tensors = tensors | blank(PROJECTION, config)
    if family.name == "roberta" and not config.type_vocab_size:
        tensors = tensors | blank(TYPES, config)
    if class_name.endswith(family.without_pooler):
        tensors = without_blank(POOLER, config, tensors)
    elif family.pooler and f"{POOLER}/kernel" not in tensors:  # of a class that has one
        tensors = tensors | blank(POOLER, config)
    theirs = write_by_table(rows, tensors)
    if not heads:
        theirs = {name.removeprefix(family.prefix): array for name, array in theirs.items()}
    write_safetensors(folder / WEIGHTS, theirs)
    write_json(folder / CONFIG, values, sort_keys=True, ensure_ascii=False)


def _read_weights(folder: Path) -> dict[str, np.ndarray]:
    # It has one of them: otherwise it would not be recognized as a folder of Hugging Face.
    path = next(folder / name for name in HUGGING_FACE_WEIGHTS if (folder / name).is_file())
    if path.suffix == ".bin":
        raise InputError(
            f"`{path}` is a pickle, a program that runs when it is read. Use the {WEIGHTS} of the "
            "same model, or load the model in transformers and save it again."
        )
    if path.suffix == ".safetensors":
        return read_safetensors(path)
    with reading_json(path) as values:
        files = sorted(set(values["weight_map"].values()))
    tensors = {}
    for name in files:
        check_name(name, path)
        tensors |= read_safetensors(folder / name)
    return tensors


def read_safetensors(path: str | Path) -> dict[str, np.ndarray]:
    """Reads all tensors of a file, with its dtypes; BF16 as float32, which represents it exactly.

    InputError for a file that the library refuses, for other dtypes, and for files larger than the
    memory or that are pipes or devices.

    Source:
        https://github.com/huggingface/safetensors, "Format".
    """
    check_regular_file(path)
    try:
        check_memory(os.path.getsize(path), f"The tensors in `{path}`")
        with safe_open(path, framework="np") as file:
            return {name: _read_tensor(file, name) for name in file.keys()}
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error}.") from error
    except (SafetensorError, ValueError) as error:
        raise InputError(f"`{path}` is not a valid safetensors file: {error}.") from error


def write_safetensors(path: str | Path, tensors: dict[str, np.ndarray]):
    """Writes tensors of dtype float64, float32, float16 or int64, as transformers expects them."""
    arrays = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    Path(path).write_bytes(save(arrays, metadata={"format": "pt"}))


def _read_tensor(file, name):
    dtype = file.get_slice(name).get_dtype()
    if dtype == "BF16":
        import ml_dtypes  # noqa: F401  (comes with TensorFlow; gives NumPy a bfloat16)

        return file.get_tensor(name).astype(np.float32)
    if dtype not in _DTYPES:
        raise ValueError(f"`{name}` has dtype {dtype}; supported are {', '.join(_DTYPES)} and BF16")
    return file.get_tensor(name)


def _rows_of(
    family: Family, config: AlbertConfig, heads: tuple[str, ...], class_name: str
) -> list[Row]:
    """Returns the table of a model without braces."""
    groups = config.num_hidden_groups if family.shares else config.num_hidden_layers
    return expand(family.rows(heads, class_name), groups, config.inner_group_num)


def _with_current_names(tensors: Tensors, family: Family, source: str) -> Tensors:
    """Names tensors as transformers does today in models with heads, and drops constants.

    InputError if two tensors get the same name.
    """
    named = {}
    for name, array in tensors.items():
        current = name
        for old, new in _OLD_NAMES.items():
            current = current.removesuffix(old) + new if current.endswith(old) else current
        bare = current.removeprefix(family.prefix)
        if bare in _CONSTANTS:
            continue
        current = family.prefix + bare if bare.startswith(_PARTS) else current
        if current in named:
            raise InputError(f"`{source}` contains {current} twice, under two names.")
        named[current] = array
    return named


def _without_copies(tensors: Tensors, family: Family, source: str) -> Tensors:
    """Removes the copies of tensors that two layers share; either of the two may be stored.

    A copy that differs is an InputError, because our output layer uses the table of the word
    embeddings.
    """
    tensors = dict(tensors)
    for copy, original in family.copies.items():
        if copy in tensors:
            array = tensors.pop(copy)
            if not np.array_equal(tensors.setdefault(original, array), array):
                raise InputError(
                    f"{copy} of `{source}` must equal {original}: our models share one tensor."
                )
    return tensors


def _without_unknown_heads(tensors: Tensors, family: Family) -> Tensors:
    """Drops heads that our models do not have, with a warning.

    A head for a task is dropped with them if it belongs to the same module, because it is another
    head then. Unknown tensors of the encoder and of heads of pre-training stay: they are errors.
    """
    pretraining = {row.theirs for head in _PRETRAINING for row in family.heads.get(head, ())}
    ours = {family.prefix.removesuffix("."), *(name.partition(".")[0] for name in pretraining)}
    known = family.theirs_of_heads()
    modules = {name.partition(".")[0] for name in tensors if name not in known} - ours
    dropped = sorted(name for name in tensors if name.partition(".")[0] in modules)
    if dropped:
        logger.warning("heads that models here do not have are dropped: %s", ", ".join(dropped))
    return {name: tensors[name] for name in tensors if name not in dropped}


def _with_pooler_of_class(
    tensors: Tensors, family: Family, rows: list[Row], config: AlbertConfig | None, source: str
) -> Tensors:
    """Removes a pooler that the class does not use, as files of 2020 have.

    With a `config`, whose class needs none, a missing one is replaced by zeros.
    """
    names = {row.ours: row.theirs for row in family.pooler}
    unused = set(names.values()) & tensors.keys() - {row.theirs for row in rows}
    if unused:
        logger.warning("`%s` contains a pooler that its class does not use. It is omitted.", source)
    elif config is not None and not any(name in tensors for name in names.values()):
        logger.warning(
            "`%s` has no pooler, and none of its heads needs one: zeros are used.", source
        )
        zeros = blank(POOLER, config)
        return tensors | {theirs: zeros[ours] for ours, theirs in names.items()}
    return {name: array for name, array in tensors.items() if name not in unused}
