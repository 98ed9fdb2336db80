"""How a model uses a frozen encoder: which of its layers, joined how, below which head.

This module imports no TensorFlow.
"""

import re
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, field_validator

from albert_keras.config import AlbertConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import Rule, Settings, option

#: The number of the layer below the first block.
EMBEDDINGS = 0
#: Layers that are concatenated unless `combine` is given; of more the weighted sum is taken.
MOST_CONCATENATED = 4
_NAMES = {"last": -1, "second-to-last": -2}
_RULE = (
    "must be last, second-to-last, last-N such as last-4, all, embeddings, or different numbers "
    "from 1, the first, separated by commas such as 1,6,12"
)


def _as_text(value: Any) -> Any:
    """Returns a number, or a list of them, as YAML has it, in the form of the command line."""
    if isinstance(value, list | tuple):
        return ",".join(map(str, value))
    return str(value) if type(value) is int else value


class FeatureSettings(Settings):
    """Feature-based use of an encoder (BERT, section 5.3): it is frozen, a linear head trained.

    Source:
        Devlin et al., 2019 (https://arxiv.org/abs/1810.04805), table 7: the layers, their
        concatenation or weighted sum; there below a BiLSTM, here below a linear head.
    """

    freeze_encoder: bool = option(
        False, "Freeze the encoder and train only a new head on its outputs."
    )
    layers: Annotated[str | None, BeforeValidator(_as_text)] = option(
        None,
        "Layers of a frozen encoder that the head reads: last, second-to-last, last-4, all, "
        "embeddings, or numbers from 1 such as 1,6,12.",
        default_text="last-4, or all if there are fewer",
    )
    combine: Literal["concat", "weighted-sum"] | None = option(
        None,
        "How several layers are combined: concatenated, or summed with learned weights.",
        default_text=f"concat for up to {MOST_CONCATENATED} layers",
    )

    rules: ClassVar[tuple[Rule, ...]] = tuple(
        Rule(
            (name, "freeze_encoder"),
            lambda value, is_frozen: value is None or is_frozen,
            "requires a frozen encoder (`freeze_encoder`)",
        )
        for name in ("layers", "combine")
    )

    @field_validator("layers")
    @classmethod
    def _is_known(cls, layers):
        if layers is not None:
            parts = layers.split(",")
            is_name = layers in (*_NAMES, "all", "embeddings")
            numbers = all(re.fullmatch(r"[1-9]\d{0,4}", part) for part in parts)
            if not (is_name or re.fullmatch(r"last-[1-9]\d{0,4}", layers)) and (
                not numbers or len(set(parts)) < len(parts)
            ):
                raise ValueError(_RULE)
        return layers

    @classmethod
    def part_of(cls, values: dict[str, Any]) -> "FeatureSettings":
        """Returns these settings out of a dict that may have others; missing ones are defaults."""
        return cls(**{name: values[name] for name in cls.model_fields if name in values})

    def layer_numbers(self, config: AlbertConfig) -> tuple[int, ...]:
        """Returns the numbers of the layers, tuple of int: 0 is the embeddings, 1 the first block.

        Raises:
            InputError: If the encoder has fewer layers.
        """
        depth = config.num_hidden_layers * config.inner_group_num
        if self.layers is None:
            return tuple(range(max(1, depth - MOST_CONCATENATED + 1), depth + 1))
        if self.layers == "embeddings":
            return (EMBEDDINGS,)
        if self.layers == "all":
            return tuple(range(1, depth + 1))
        numbers: tuple[int, ...]
        if self.layers in _NAMES:
            numbers = (depth + 1 + _NAMES[self.layers],)
        elif self.layers.startswith("last-"):
            count = int(self.layers.removeprefix("last-"))
            numbers = tuple(range(depth - count + 1, depth + 1))
        else:
            numbers = tuple(map(int, self.layers.split(",")))
        if min(numbers) < 1 or max(numbers) > depth:
            raise InputError(
                f"`layers` must be among the layers of the encoder, 1 to {depth}. "
                f"Received: {self.layers}."
            )
        return numbers

    def is_concatenated(self, config: AlbertConfig) -> bool:
        """Returns whether the layers are joined side by side."""
        if self.combine is None:
            return len(self.layer_numbers(config)) <= MOST_CONCATENATED
        return self.combine == "concat"
