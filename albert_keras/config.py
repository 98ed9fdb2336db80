"""The shape of a model: `AlbertConfig`, the published sizes, and their JSON files.

The keys are the same as in the reference's `albert_config.json`, so that either project reads the
other's files; `sharing` and the fields after it are additions. TensorFlow is not needed here.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, model_validator

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.limits import read_json
from data_pipeline.settings import Rule, Settings, did_you_mean

Size = Annotated[int, Field(gt=0, le=2**24)]
Depth = Annotated[int, Field(gt=0, le=10_000)]
Rate = Annotated[float, Field(ge=0, lt=1)]

#: Fields of AlbertConfig that say which positions attend to which.
ATTENTION_SETTINGS = (
    "attention",
    "attention_block_size",
    "attention_window_blocks",
    "attention_global_blocks",
    "attention_random_blocks",
    "attention_seed",
)
#: Fields of AlbertConfig that trained weights do not depend on.
FREE_SETTINGS = frozenset(
    ("hidden_dropout_prob", "attention_probs_dropout_prob", "initializer_range")
    + ("down_scale_factor", "foreign_keys")
    + ATTENTION_SETTINGS
)


def _activation_name(value):
    """Returns the name in lower case; in the reference "" and null mean no activation."""
    if value is None or value == "":
        return "linear"
    return value.lower() if isinstance(value, str) else value


#: Fields that older files do not have; they are written only if they are not the default.
LATER_FIELDS = (
    "embedding_projection",
    "position_embedding",
    "position_offset",
    "layer_norm_epsilon",
    "pooler",
    "pooler_activation",
) + ATTENTION_SETTINGS
#: Keys without which a file does not describe a model, whatever the default of its program is.
SHAPE_KEYS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
)
#: Blocks of the longest sequence: the table of random blocks has the square of this number.
_MOST_BLOCKS = 2048

Activation = Annotated[
    Literal["gelu", "gelu_erf", "relu", "tanh", "silu", "linear"],
    BeforeValidator(_activation_name),
]


class AlbertConfig(Settings):
    """Shape of a model: ALBERT, BERT, RoBERTa, DistilBERT. The defaults are ALBERT-base, version 2.

    Attributes:
        vocab_size: int. Pieces in the vocabulary, V.
        embedding_size: int. Width of the embedding tables, E.
        hidden_size: int. Width of the encoder, H.
        num_hidden_layers: int. Depth of the encoder, L.
        num_hidden_groups: int. Neighbouring depths are split into this many groups, each with
            weights of its own.
        num_attention_heads: int. Attention heads, each of size H / heads.
        intermediate_size: int. Inner width of the feed-forward block, I.
        inner_group_num: int. Consecutive blocks at each depth, K.
        down_scale_factor: int. Unused; kept because the reference's files contain it.
        hidden_act: str. "gelu" (the tanh form, as in the reference), "gelu_erf", "relu", "tanh",
            "silu" or "linear"; case does not matter, null and "" mean "linear".
        hidden_dropout_prob: float. Dropout after embeddings, attention and feed-forward.
        attention_probs_dropout_prob: float. Dropout of the attention weights.
        max_position_embeddings: int. Longest sequence, in tokens.
        position_embedding: str. "absolute" adds a trained vector for each position to the
            embeddings, as in the reference; "rotary" has no such table and rotates queries and keys
            by their positions, so that attention depends on distances, see `layers/rotary.py`.
        type_vocab_size: int. Number of segment types. With 1 all tokens have the same type, with 0
            there is no table of segment types: segment ids are ignored in both cases.
        initializer_range: float. Standard deviation of the initial weights.
        sharing: str. Which weights the depths of a group share: "all", "attention", "ffn" or
            "none", where each depth has its own weights, as in BERT.
        embedding_projection: str. "auto" projects the embeddings from E to H only if the two
            differ, as the reference does; "always" projects in any case, as transformers and
            KerasNLP do.
        position_offset: int. Rows of the position table before the row of the first token. If it
            is greater than 0, positions count real tokens only and padding takes the row before
            the first token's, as in RoBERTa, where the offset is 2.
        layer_norm_epsilon: float. Added to the variance in every layer normalization.
        pooler: str. "always", or "on_demand": only models with a head that reads the pooled output
            have a pooler, for example for classification; in others the pooled output is the
            output at [CLS].
        pooler_activation: str. "tanh", or "relu" as in classifiers of DistilBERT.
        attention: str. "dense": all positions attend to all others; or "block-sparse": each block
            of positions attends to some blocks only, with memory and work linear in the length, see
            `layers/block_sparse.py`. The weights are the same.
        attention_block_size: int. Positions of a block.
        attention_window_blocks: int. Blocks around its own that a block attends to, itself
            included; odd.
        attention_global_blocks: int. First blocks of the sequence, with [CLS], that attend to all
            positions and that all attend to.
        attention_random_blocks: int. Further blocks that a block attends to, at random.
        attention_seed: int. Determines the random blocks.
        foreign_keys: dict. Unknown keys of a foreign file; `save` writes them back.

    Raises:
        SettingsError: On construction, with every problem found.

    Source:
        `AlbertConfig` in google-research/albert, `modeling.py`; sharing: ALBERT, section 3.1
        (https://arxiv.org/abs/1909.11942).
    """

    vocab_size: Size = 30_000
    embedding_size: Size = 128
    hidden_size: Size = 768
    num_hidden_layers: Depth = 12
    num_hidden_groups: Depth = 1
    num_attention_heads: Size = 12
    intermediate_size: Size = 3072
    inner_group_num: Depth = 1
    down_scale_factor: int = 1
    hidden_act: Activation = "gelu"
    hidden_dropout_prob: Rate = 0.0
    attention_probs_dropout_prob: Rate = 0.0
    max_position_embeddings: Size = 512
    type_vocab_size: Annotated[int, Field(ge=0)] = 2
    initializer_range: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.02
    sharing: Literal["all", "attention", "ffn", "none"] = "all"
    embedding_projection: Literal["auto", "always"] = "auto"
    position_embedding: Literal["absolute", "rotary"] = "absolute"
    position_offset: Annotated[int, Field(ge=0)] = 0
    layer_norm_epsilon: Annotated[float, Field(gt=0, le=1e-3)] = 1e-12
    pooler: Literal["always", "on_demand"] = "always"
    pooler_activation: Literal["tanh", "relu"] = "tanh"
    attention: Literal["dense", "block-sparse"] = "dense"
    attention_block_size: Size = 64
    attention_window_blocks: Size = 3
    attention_global_blocks: Annotated[int, Field(ge=0, le=2**24)] = 1
    attention_random_blocks: Annotated[int, Field(ge=0, le=2**24)] = 3
    attention_seed: Annotated[int, Field(ge=0, le=2**63 - 1)] = 0
    foreign_keys: dict[str, Any] = {}

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("hidden_size", "num_attention_heads"),
            lambda size, heads: size % heads == 0,
            "must be a multiple of `num_attention_heads`",
        ),
        Rule(
            ("num_hidden_groups", "num_hidden_layers"),
            lambda groups, layers: groups <= layers,
            "must not exceed `num_hidden_layers`",
        ),
        Rule(
            ("hidden_size", "num_attention_heads", "position_embedding"),
            lambda size, heads, positions: (
                positions == "absolute" or size % heads or size // heads % 2 == 0
            ),
            "must be an even multiple of `num_attention_heads`: rotary positions rotate pairs",
        ),
        Rule(
            ("position_offset", "position_embedding"),
            lambda offset, positions: positions == "absolute" or not offset,
            "must be 0 with rotary positions, which have no table",
        ),
        Rule(
            ("attention_window_blocks",),
            lambda blocks: blocks % 2 == 1,
            "must be odd: the window has the same number of blocks on both sides",
        ),
        Rule(
            ("attention_block_size", "max_position_embeddings", "attention"),
            lambda size, longest, attention: attention == "dense" or longest <= _MOST_BLOCKS * size,
            f"must divide `max_position_embeddings` into at most {_MOST_BLOCKS:,} blocks",
        ),
    )

    @model_validator(mode="before")
    @classmethod
    def _gather_foreign_keys(cls, values):
        """Reads the flat form of `to_dict`, where `foreign_keys` lists names at the top level."""
        names = values.get("foreign_keys")
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            return values
        ours = {name: value for name, value in values.items() if name not in names}
        return ours | {"foreign_keys": {name: values[name] for name in names if name in values}}

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """Returns the names that `from_name` accepts, tuple of str."""
        return tuple(_NAMED)

    @classmethod
    def from_name(cls, name: str, /, records: Any = None, **overrides: Any) -> "AlbertConfig":
        """Returns a published size, or one of the small sizes for a CPU.

        Args:
            name: str. One of `names()`; "albert-base" means "albert-base-v2".
            records: RecordFiles, their folder, or None. Records whose vocabulary the model has.
            **overrides: Fields to change, for example `vocab_size`.

        Raises:
            InputError: If the name is not known.

        Source:
            ALBERT, tables 1 and 2; the released configurations (xlarge has 16 heads, not H/64).
            The others: see docs/models.md.
        """
        if name not in _NAMED:
            raise InputError(f"`{name}` is not a known model{did_you_mean(name, _NAMED)}")
        if records is not None:
            from data_pipeline.records.record_files import RecordFiles  # loads NumPy

            overrides = {"vocab_size": RecordFiles.of(records).info.vocab_size} | overrides
        return cls(**(_NAMED[name] | overrides))

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> "AlbertConfig":
        """Creates a configuration from the result of `to_dict`; unknown keys are an error."""
        return cls(**values)

    @classmethod
    def from_json_file(cls, path: str | Path) -> "AlbertConfig":
        """Reads a file written by `save`; unknown keys are an error.

        Raises:
            InputError: If the file does not exist or is not a valid configuration.
        """
        return cls.from_dict(read_json(path))

    @classmethod
    def from_reference_json(cls, path: str | Path) -> "AlbertConfig":
        """Reads an `albert_config.json` of the reference.

        Unknown keys are stored in `foreign_keys`. Missing keys have the defaults of the reference,
        which are those of this class, except `SHAPE_KEYS`.

        Raises:
            InputError: If the file does not exist, lacks a key that defines the shape, or has an
                invalid value.
        """
        values = read_json(path)
        values.pop("foreign_keys", None)  # of a file of ours, which names them
        check_keys(values, path)
        known = {name: value for name, value in values.items() if name in cls.model_fields}
        foreign = {name: value for name, value in values.items() if name not in known}
        return cls(**known, foreign_keys=foreign)

    @property
    def position_rows(self) -> int:
        """int. Rows of the position table; 0 if positions are rotary."""
        if self.position_embedding == "rotary":
            return 0
        return self.max_position_embeddings + self.position_offset

    @property
    def projects_embeddings(self) -> bool:
        """bool. Whether the embeddings are projected, with weights of their own."""
        return self.embedding_projection == "always" or self.embedding_size != self.hidden_size

    @property
    def key_blocks(self) -> int:
        """int. Blocks that a block of positions attends to if attention is block-sparse."""
        return (
            self.attention_window_blocks
            + self.attention_global_blocks
            + self.attention_random_blocks
        )

    def is_sparse_at(self, length: int) -> bool:
        """Returns whether some positions of a sequence of this length do not see each other."""
        number = -(-length // self.attention_block_size)
        return self.attention == "block-sparse" and number > self.key_blocks

    def summary(self) -> str:
        """Returns the shape in a few words, as models print it."""
        return (
            f"{self.num_hidden_layers} layers of {self.hidden_size}, {self.vocab_size:,} pieces, "
            f"{self.max_position_embeddings} positions"
        )

    def to_dict(self) -> dict[str, Any]:
        """Returns plain JSON values; foreign keys are top-level and listed in `foreign_keys`."""
        values = self.model_dump()
        foreign = values.pop("foreign_keys")
        for name in LATER_FIELDS:  # so that files stay as they were before these keys existed
            if values[name] == type(self).model_fields[name].default:
                del values[name]
        return values | foreign | ({"foreign_keys": sorted(foreign)} if foreign else {})

    def as_settings(self) -> dict[str, Any]:
        """Returns the nearest named model as `size`, and the fields in which this one differs.

        A model whose layers share nothing is never named albert, and one that shares never bert.
        """

        def differences(name):
            named = AlbertConfig.from_name(name)
            return {
                key: value
                for key, value in self
                if key != "vocab_size" and value != getattr(named, key)
            }

        is_shared = self.sharing != "none"
        names = (name for name in AlbertConfig.names() if name.startswith("albert") == is_shared)
        size = min(names, key=lambda name: len(differences(name)))
        return {"size": size} | differences(size)

    def to_json(self) -> str:
        """Returns the content of the configuration file, str."""
        return json.dumps(self.to_dict(), indent=2, ensure_ascii=False) + "\n"

    def save(self, path: str | Path) -> None:
        """Writes the configuration file atomically: a reader sees the old or the new file."""
        with whole_file(path) as temporary:
            temporary.write_text(self.to_json(), encoding="utf-8")


def check_keys(
    values: dict[str, Any], source: str | Path, required: Sequence[str] = SHAPE_KEYS
) -> None:
    """Raises InputError if a file of a shape lacks a required key."""
    if lacking := [name for name in required if name not in values]:
        raise InputError(
            f"`{source}` must have the keys that define the shape of a model. Missing: "
            f"{', '.join(lacking)}. Received: {', '.join(sorted(values)) or 'no keys'}."
        )


def check_same_shape(shapes: dict[str, AlbertConfig], what: str) -> None:
    """Raises InputError unless all shapes, by where they are from, agree for the weights of `what`.

    Settings that weights do not depend on may differ.
    """
    (first, shape), *others = shapes.items()
    for source, other in others:
        problems = [
            f"{key}: {value!r} in {first}, {getattr(other, key)!r} in {source}"
            for key, value in shape
            if key not in FREE_SETTINGS and value != getattr(other, key)
        ]
        if problems:
            listing = "\n  ".join(problems)
            raise InputError(f"The shapes given for the weights of {what} differ:\n  {listing}")


def _sizes(layers, hidden, heads, intermediate, embedding=128, dropout=0.0, **others):
    return {
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "num_attention_heads": heads,
        "intermediate_size": intermediate,
        "embedding_size": embedding,
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
    } | others


_ALBERT = {
    "albert-base": (12, 768, 12, 3072),
    "albert-large": (24, 1024, 16, 4096),
    "albert-xlarge": (24, 2048, 16, 8192),
    "albert-xxlarge": (12, 4096, 64, 16_384),
}
_BERT = {
    # Turc et al. 2019, table 1: 64 units per attention head.
    "bert-tiny": (2, 128, 2, 512),
    "bert-mini": (4, 256, 4, 1024),
    "bert-small": (4, 512, 8, 2048),
    "bert-medium": (8, 512, 8, 2048),
    "bert-base": (12, 768, 12, 3072),
    "bert-large": (24, 1024, 16, 4096),
    "bert-xlarge": (24, 2048, 32, 8192),  # ALBERT, table 2
}
_UNSHARED = {"dropout": 0.1, "sharing": "none", "hidden_act": "gelu_erf"}


def _bert(sizes):
    return _sizes(*sizes, embedding=sizes[1], **_UNSHARED, vocab_size=30_522)


def _roberta(sizes):
    return _bert(sizes) | {
        "vocab_size": 50_265,
        "type_vocab_size": 0,
        "position_offset": 2,
        "layer_norm_epsilon": 1e-5,
        "pooler": "on_demand",
    }


def _distilbert(sizes):
    layers, *rest = sizes
    return _bert((layers // 2, *rest)) | {
        "type_vocab_size": 0,
        "pooler": "on_demand",
        "pooler_activation": "relu",
    }


#: Version 1 was released with dropout, except for xxlarge; version 2 has none.
_NAMED = (
    {name: _sizes(*sizes) for name, sizes in _ALBERT.items()}
    | {
        f"{name}-v1": _sizes(*sizes, dropout=0.0 if name == "albert-xxlarge" else 0.1)
        for name, sizes in _ALBERT.items()
    }
    | {f"{name}-v2": _sizes(*sizes) for name, sizes in _ALBERT.items()}
    | {
        # Small sizes of this project, for minutes and for hours on a CPU. The shipped model is of
        # the second size, but wider.
        "albert-tiny": _sizes(2, 128, 2, 512),
        "albert-mini": _sizes(6, 256, 4, 1024),
    }
    | {name: _bert(sizes) for name, sizes in _BERT.items()}
    # The small RoBERTas have the sizes of the small BERTs, and a DistilBERT half the depth of the
    # BERT with the same name.
    | {
        f"roberta-{size}": _roberta(_BERT[f"bert-{size}"])
        for size in ("tiny", "mini", "base", "large")
    }
    | {
        f"distilbert-{size}": _distilbert(_BERT[f"bert-{size}"])
        for size in ("tiny", "mini", "base")
    }
)
