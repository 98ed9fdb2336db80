"""RoBERTa with the names of fairseq: folders with `model.pt` or `model.safetensors`, `dict.txt`.

A `model.pt` is a pickle: only its tensors are read, and only if the user trusts it. Its arguments
are not, so that the shape comes from the tensors and, for the number of attention heads, which no
tensor shows, from `albert_config.json` or from the size that all published models have per head.
"""

import logging
import re
from pathlib import Path

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.interop.byte_bpe_files import MERGES, PIECES, has_byte_bpe
from albert_keras.interop.hugging_face_tables import (
    block_rows,
    class_rows,
    dense,
    masked_lm_rows,
    norm,
)
from albert_keras.interop.model_folder import check_file_name, read_vocabulary_file, write_files
from albert_keras.interop.model_weights import (
    POOLER,
    ModelWeights,
    check_expressible,
    encoder_shapes,
    equality_rules,
    head_shapes,
    heads_of,
)
from albert_keras.interop.safetensors_file import read_safetensors, write_safetensors
from albert_keras.interop.tensor_table import (
    Row,
    expand,
    read_by_table,
    read_reference_tensors,
    write_by_table,
)
from albert_keras.interop.torch_file import read_torch_file
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.byte_bpe import PIECES_FILE
from data_pipeline.tokenizers.vocabulary import CONFIG_FILE

WEIGHTS, DICTIONARY = "model.safetensors", "dict.txt"
_PICKLE, _SHAPE = "model.pt", "albert_config.json"
_TOKENIZER_FILES = (PIECES, MERGES, PIECES_FILE, CONFIG_FILE)
_HEADS_SIZE = 64  # of roberta.base and roberta.large
_ENCODER = "encoder.sentence_encoder."
_WORDS, _OUTPUT = f"{_ENCODER}embed_tokens.weight", "encoder.lm_head.weight"
_HEAD = "sentence_classification_head"  # fairseq's usual name
_CLASSES = "classification_heads."

#: Source: `model.py` of RoBERTa in facebookresearch/fairseq. The names are today's.
TABLE = (
    Row("bert/embeddings/word_embeddings", _WORDS),
    Row("bert/embeddings/position_embeddings", f"{_ENCODER}embed_positions.weight"),
    *norm("bert/embeddings/LayerNorm", f"{_ENCODER}layernorm_embedding"),
    *block_rows(
        _ENCODER + "layers.{g}",
        query="self_attn.{1}_proj",
        output="self_attn.out_proj",
        attention_norm="self_attn_layer_norm",
        wide="fc1",
        narrow="fc2",
        last_norm="final_layer_norm",
    ),
    *masked_lm_rows("encoder.lm_head.dense", "encoder.lm_head.layer_norm", "encoder.lm_head.bias"),
    *dense(POOLER, f"{_CLASSES}{_HEAD}.dense"),
    *class_rows("", f"{_CLASSES}{_HEAD}.out_proj"),
)
#: Names of earlier versions, as `upgrade_state_dict_named` replaces them.
_OLD_NAMES = (
    (re.compile(r"^decoder\."), "encoder."),
    (re.compile(r"\.emb_layer_norm\."), ".layernorm_embedding."),
)
_JOINED = re.compile(r"(.+\.self_attn\.)in_proj_(weight|bias)")
_PARTS = ("q_proj", "k_proj", "v_proj")
#: What a RoBERTa of fairseq is, with the activation that it has by default.
_FIXED = {
    "sharing": "none",
    "inner_group_num": 1,
    "type_vocab_size": 0,
    "position_embedding": "absolute",
    "position_offset": 2,
    "layer_norm_epsilon": 1e-5,
    "hidden_act": "gelu_erf",
    "pooler": "on_demand",
    "pooler_activation": "tanh",
}

logger = logging.getLogger(__name__)


def is_source(path):
    """Returns whether a folder looks like a RoBERTa of fairseq."""
    folder = Path(path)
    is_other = (folder / "config.json").exists()
    has_weights = any((folder / name).is_file() for name in (WEIGHTS, _PICKLE))
    return folder.is_dir() and has_weights and (folder / DICTIONARY).is_file() and not is_other


def read(path, trust_pickle=False, config=None):
    """Reads a RoBERTa; see `interop`.

    A model may have one head of classification, with any name. The vocabulary is not read from
    `dict.txt`, which only numbers the entries of GPT-2's.
    """
    folder, source = Path(path), str(path)
    theirs = _read_weights(folder, trust_pickle)
    theirs = _with_current_names(theirs, source)
    config = _shape(theirs, folder, config)
    rows = expand(TABLE, config.num_hidden_layers)
    named = {row.ours: theirs[row.theirs] for row in rows if row.theirs in theirs}
    names = [*named, f"{POOLER}/kernel"] if "classifier" in heads_of(named) else named
    shapes = encoder_shapes(config, names) | head_shapes(config, named)
    tensors = read_by_table(rows, theirs, shapes, source)
    paths = [folder / name for name in _TOKENIZER_FILES]
    files = {path.name: read_vocabulary_file(path) for path in paths if path.is_file()}
    return ModelWeights(config, tensors, source, files if has_byte_bpe(files) else {})


def write(weights, folder):
    """Writes the tensors under the names of fairseq, the shape, `dict.txt` and the vocabulary.

    `torch.save({"model": safetensors.torch.load_file(...)}, "model.pt")` makes of it what fairseq
    loads. `dict.txt` numbers the pieces of `vocab.json`, which is not GPT-2's.
    """
    folder, config = Path(folder), weights.config
    for name in weights.tokenizer_files:
        check_file_name(name, weights.source)
    rules = [
        *equality_rules(config, _FIXED),
        ("embedding_size", not config.projects_embeddings, "equal to `hidden_size`"),
    ]
    check_expressible("A RoBERTa of fairseq", config, rules, plain=False)
    tensors = read_reference_tensors(config, weights.tensors, weights.source)
    theirs = write_by_table(expand(TABLE, config.num_hidden_layers), tensors)
    if "masked_lm" in weights.heads:
        theirs[_OUTPUT] = theirs[_WORDS]
    write_safetensors(folder / WEIGHTS, theirs)
    config.save(folder / _SHAPE)
    # The first four ids and the last one belong to special tokens, which the file does not list.
    lines = "".join(f"{number} 0\n" for number in range(4, config.vocab_size - 1))
    write_files(folder, {DICTIONARY: lines.encode()} | weights.tokenizer_files)


def _read_weights(folder, trust_pickle):
    if (folder / WEIGHTS).is_file():
        return read_safetensors(folder / WEIGHTS)
    return read_torch_file(folder / _PICKLE, trust_pickle)


def _with_current_names(tensors, source):
    """Names tensors as fairseq does today, splits joint projections and drops constants.

    InputError if two tensors get the same name, the output layer differs from the table of the word
    embeddings, or there are several heads of classification.
    """
    named = {}
    for name, array in tensors.items():
        for old, new in _OLD_NAMES:
            name = old.sub(new, name)
        if name.endswith(".version"):
            continue
        parts = {name: array}
        joined = _JOINED.fullmatch(name)
        if joined and np.ndim(array) and len(array) % len(_PARTS) == 0:
            split = np.split(np.asarray(array), len(_PARTS))
            parts = {
                f"{joined[1]}{part}.{joined[2]}": a for part, a in zip(_PARTS, split, strict=True)
            }
        for current, part in parts.items():
            if current in named:
                raise InputError(f"`{source}` contains {current} twice, under two names.")
            named[current] = part
    output = named.pop(_OUTPUT, None)
    if output is not None and not np.array_equal(output, named.get(_WORDS, output)):
        raise InputError(
            f"{_OUTPUT} of `{source}` must equal {_WORDS}: our models share one tensor."
        )
    heads = sorted({name.split(".")[1] for name in named if name.startswith(_CLASSES)})
    if len(heads) > 1:
        raise InputError(
            f"`{source}` must have at most one classification head. Received: "
            f"{', '.join(heads)}. Remove the tensors of the other heads."
        )
    usual = f"{_CLASSES}{_HEAD}."
    for head in heads:
        named = {
            usual + name.removeprefix(f"{_CLASSES}{head}.")
            if name.startswith(_CLASSES)
            else name: a
            for name, a in named.items()
        }
    return named


def _shape(tensors, folder, given):
    """Returns the configuration in a file or, if there is none, one derived from the tensors."""
    beside = folder / _SHAPE
    if given is not None or beside.is_file():
        config = AlbertConfig.from_reference_json(given if given is not None else beside)
        check_expressible(
            "A RoBERTa of fairseq", config, equality_rules(config, _FIXED), plain=False
        )
        return config
    layer = re.compile(re.escape(_ENCODER) + r"layers\.(\d+)\.")
    depths = [int(match[1]) for match in map(layer.match, tensors) if match]
    sizes = {}
    for name, axis in (("embed_tokens", 0), ("embed_tokens", 1), ("embed_positions", 0)):
        sizes[name, axis] = _size(tensors, f"{_ENCODER}{name}.weight", axis, folder)
    hidden = sizes["embed_tokens", 1]
    if hidden % _HEADS_SIZE:
        raise InputError(
            f"The number of attention heads of `{folder}` is unknown, because its hidden size is "
            f"not a multiple of {_HEADS_SIZE}. Pass an {_SHAPE} with --config. Received: {hidden}."
        )
    heads = hidden // _HEADS_SIZE
    logger.warning(
        "`%s` has no %s: it is assumed to have %s attention heads of size %s, like the published "
        "models",
        folder,
        _SHAPE,
        heads,
        _HEADS_SIZE,
    )
    return AlbertConfig(
        **_FIXED,
        vocab_size=sizes["embed_tokens", 0],
        hidden_size=hidden,
        embedding_size=hidden,
        num_hidden_layers=max(depths, default=0) + 1,
        num_attention_heads=heads,
        intermediate_size=_size(tensors, f"{_ENCODER}layers.0.fc1.weight", 0, folder),
        max_position_embeddings=sizes["embed_positions", 0] - _FIXED["position_offset"],
        hidden_dropout_prob=0.1,
        attention_probs_dropout_prob=0.1,
    )


def _size(tensors, name, axis, source):
    """Returns the size of one axis of a matrix."""
    if np.ndim(tensors.get(name)) != 2:
        raise InputError(f"`{source}` must contain the matrix {name} of a RoBERTa of fairseq.")
    return int(np.shape(tensors[name])[axis])
