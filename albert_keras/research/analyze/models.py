"""Models to analyse: trained ones, and models of the same shape with random weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.formats.model_weights import HEADS
from albert_keras.formats.open_model import open_model
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Longest sequence if the length of the training is not known.
_USUAL_LENGTH = 512


class AnalyzedModel(NamedTuple):
    """A model to analyse, in float32."""

    label: str  # the model as given, with a remark for random weights
    step: int | None  # number of training steps, if it is known
    is_random: bool
    model: AlbertForPretraining  # without a sentence-order head
    tokenizer: Tokenizer
    max_seq_length: int  # tokens of the longest sequence that is read
    has_masked_lm: bool  # False if the model came without a masked-LM head

    @property
    def config(self) -> AlbertConfig:
        """AlbertConfig. The shape of the model."""
        return self.model.config

    @property
    def encoder(self):
        """AlbertEncoder."""
        return self.model.encoder

    def describe(self) -> dict[str, Any]:
        """Returns what the model is, plain JSON."""
        config = self.config
        names = ("num_hidden_layers", "hidden_size", "embedding_size", "sharing")
        return {
            "model": self.label,
            "step": self.step,
            "random_weights": self.is_random,
            **{name: getattr(config, name) for name in names},
        }


def open_models(
    paths: str | Path | Sequence[str | Path],
    step: int | str | None = None,
    random_weights: bool = False,
    seed: int = 0,
) -> list[AnalyzedModel]:
    """Loads models to analyse.

    Args:
        paths: A trained model or several, see `TextEncoder`; models in a format that `convert`
            reads will do, too.
        step: Checkpoint of a run, or "best". None takes the newest one, or the best one of a
            fine-tuned run.
        random_weights: Whether each shape is added once more with its initial, random weights.
        seed: Determines the random weights.

    Raises:
        InputError: If there is no such model, or one is given twice.
    """
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    labels = [str(path) for path in paths]
    if not paths or len(set(labels)) < len(labels):
        received = ", ".join(labels) or "none"
        raise InputError(
            f"The models to analyse must be at least one, each given once. Received: {received}."
        )
    found = []
    for label, path in zip(labels, paths, strict=True):
        weights = open_model(path, step)
        found.append(_build(label, weights))
        shapes = [one.config for one in found if one.is_random]
        if random_weights and weights.albert_config not in shapes:
            found.append(_build(f"{label}, random weights", weights, seed))
    return found


def _build(label: str, weights: OpenedModel, seed: int | None = None) -> AnalyzedModel:
    """Builds a model and loads its weights, or with a `seed` leaves them random."""
    config, is_random = weights.albert_config, seed is not None
    model = AlbertForPretraining(config, sentence_head=False, seed=seed or 0, dtype="float32")
    if not is_random:
        weights.load(model, heads=HEADS["masked_lm"])
    longest = config.max_position_embeddings
    return AnalyzedModel(
        label,
        None if is_random else weights.step,
        is_random,
        model,
        weights.tokenizer,
        min(weights.max_seq_length or _USUAL_LENGTH, longest),
        is_random or "masked_lm" in weights.heads,
    )
