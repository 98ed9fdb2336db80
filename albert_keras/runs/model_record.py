"""What a file says about a model: the name of its class and its settings, as Keras writes them.

A run has it in `model.json`, a `.keras` file in its `config.json`.
"""

import importlib
from pathlib import Path
from typing import Any, NamedTuple

import keras

from data_pipeline.errors import InputError

#: Modules of the classes that a file may name, or subclasses of these.
_MODELS = "albert_keras.models."
#: Settings that no record has: those of a training step, and the name that Keras counts up.
_LEFT_OUT = ("recompute", "skips_padding", "name")


class ModelRecord(NamedTuple):
    """The class of a model with its settings.

    Attributes:
        model_class: type. A class of `albert_keras.models`, or a subclass of one.
        config: dict. What its `from_config` takes; in a run without the tokenizer, which is
            another file.
    """

    model_class: Any
    config: dict[str, Any]

    @classmethod
    def of_json(cls, content: Any, source: str | Path) -> "ModelRecord":
        """Finds the class of a record; InputError unless it is a model of this package."""
        try:
            name, config = content["class_name"], content["config"]
            if str(name).startswith("Albert"):  # loads its module, which registers the class
                getattr(importlib.import_module("albert_keras"), name, None)
            model_class = keras.saving.get_registered_object(content["registered_name"])
            is_ours = isinstance(model_class, type) and model_class.__name__ == name
            bases = model_class.__mro__ if is_ours else ()
            is_ours = any(base.__module__.startswith(_MODELS) for base in bases)
            is_model = is_ours and isinstance(config["config"], dict)
        except (LookupError, TypeError, AttributeError) as error:
            raise InputError(f"`{source}` must be the record of a model: {error!r}.") from error
        if not is_model or not issubclass(model_class, keras.Model):
            raise InputError(f"`{source}` must contain a model of albert_keras. Received: {name}.")
        return cls(model_class, config)

    @property
    def preprocessor(self) -> dict[str, Any] | None:
        """dict. The settings of its preprocessor; None without one."""
        return self.config.get("preprocessor")

    def changed(
        self, dtype: str | None = None, sequence_length: int | None = None
    ) -> "ModelRecord":
        """Returns the record of the same model with another dtype, or for texts of another length.

        InputError if the model has fewer positions.
        """
        config = dict(self.config)
        if dtype is not None:
            config["dtype"] = dtype
        if sequence_length is not None and self.preprocessor is not None:
            longest = config["config"]["max_position_embeddings"]
            check_length(sequence_length, longest)
            config["preprocessor"] = self.preprocessor | {"sequence_length": sequence_length}
        return self._replace(config=config)


def record_of(model: keras.Model) -> dict[str, Any]:
    """Returns the record of a model for a run: plain JSON, without its tokenizer.

    A class that is not registered counts as the nearest of its bases that is.
    """
    names = ((each, keras.saving.get_registered_name(each)) for each in type(model).__mro__)
    model_class, name = next(pair for pair in names if ">" in pair[1])
    config = {key: one for key, one in model.get_config().items() if key not in _LEFT_OUT}
    if "preprocessor" in config:
        others = {"name": None, "tokenizer": None}
        config["preprocessor"] = {**config["preprocessor"], **others}
    return {"class_name": model_class.__name__, "registered_name": name, "config": config}


def with_changes(
    model: Any, dtype: str | None = None, sequence_length: int | None = None
) -> keras.Model:
    """Returns a model with another dtype, or for texts of another length; as it is if it has them.

    Raises as `ModelRecord.changed`.
    """
    record = ModelRecord(type(model), model.get_config())
    changed = record.changed(dtype, sequence_length)
    if changed == record:
        return model
    copy = model.from_config(changed.config)
    copy.set_weights(model.get_weights())
    return copy


def check_length(length: int, longest: int):
    """Raises InputError if texts are longer than a model has positions."""
    if length > longest:
        raise InputError(
            "`sequence_length` must not exceed `max_position_embeddings` of the model, "
            f"{longest}. Received: {length}."
        )
