"""The models that a time is divided between, and the settings with which each of them is trained.

Every choice that was measured is described in docs/measured.md; the others are marked here.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.optimization.config import OptimizerConfig

#: Positions of a batch, as in all measured runs: 64 records of 64 tokens.
POSITIONS = 4096
#: Positions of a batch on a GPU, which computes small batches as slowly as large ones: 512 records
#: of 128 tokens, as in the recipe albert-gpu-5-minutes, with its fraction of tokens to predict.
GPU_POSITIONS, _GPU_LENGTH, _GPU_MASK_RATE = 65_536, 128, 0.2
#: Fraction of the tokens to predict, of a run or of its first stage.
MASK_RATE = 0.3
#: Runs of at least this length have two stages.
_STAGES_FROM = 3600.0
#: Largest vocabulary by size of the corpus in bytes: 8,000 and 16,000 were measured on 52 MB of
#: novels, and 16,000 was better; 30,000 is the size in ALBERT, trained on 16 GB.
_VOCABULARIES = ((10e6, 8000), (1e9, 16_000), (math.inf, 30_000))
#: Bytes of text for each piece; 2 MB give 8,000 pieces.
_BYTES_FOR_A_PIECE = 250

#: Layers and hidden sizes, the smallest first.
LADDER = ((2, 128), (6, 256), (8, 256), (6, 384), (12, 512), (12, 768))


class Stage(NamedTuple):
    """A part of a run with records of one length."""

    max_seq_length: int  # S
    max_predictions_per_seq: int  # P
    share: float  # of the training time
    batch_size: int
    mask_rate: float

    @property
    def records(self) -> str:
        """str. Name of the folder of its records."""
        return f"records-{self.max_seq_length}"


def rung(layers: int, hidden_size: int, vocab_size: int, max_seq_length: int = 512) -> AlbertConfig:
    """Returns a model of the ladder: layers that share one set of weights, and rotary positions.

    An attention head has 64 units.
    """
    return AlbertConfig.from_name(
        "albert-tiny" if hidden_size < 256 else "albert-mini",
        vocab_size=vocab_size,
        num_hidden_layers=layers,
        hidden_size=hidden_size,
        num_attention_heads=hidden_size // 64,
        intermediate_size=4 * hidden_size,
        # Leaves the first plateau sooner (docs/papers.md).
        position_embedding="rotary",
        # Rotary positions have no table, so that a larger number costs nothing.
        max_position_embeddings=max(512, max_seq_length),
    )


def stages_for(seconds: float, on_gpu: bool = False) -> tuple[Stage, ...]:
    """Returns the stages of a run.

    On a CPU short records come first, and a run of less than an hour has no others. On a GPU, where
    short records save less, there is one stage with large batches.
    """
    if on_gpu:
        predictions = math.ceil(_GPU_LENGTH * _GPU_MASK_RATE)
        batch_size = GPU_POSITIONS // _GPU_LENGTH
        return (Stage(_GPU_LENGTH, predictions, 1.0, batch_size, _GPU_MASK_RATE),)
    lengths = ((64, 0.55, MASK_RATE), (128, 0.45, 0.2))
    if seconds < _STAGES_FROM:
        lengths = ((64, 1.0, MASK_RATE),)
    return tuple(
        Stage(length, math.ceil(length * rate), share, POSITIONS // length, rate)
        for length, share, rate in lengths
    )


def vocabulary_size(corpus_bytes: float) -> int:
    """Returns the number of pieces that a corpus of this size can train."""
    largest = next(size for limit, size in _VOCABULARIES if corpus_bytes < limit)
    return min(largest, int(corpus_bytes / _BYTES_FOR_A_PIECE) // 1000 * 1000)


def run_settings(
    config: AlbertConfig, steps: int, stages: Sequence[Stage], **training: Any
) -> dict:
    """Returns the configuration of a run, as `PretrainingConfig.of` reads it.

    Args:
        config: The model.
        steps: Length of the run.
        stages: Its stages.
        **training: Further settings of the section `training`.
    """
    first = stages[0]
    training = {
        "steps": steps,
        "batch_size": first.batch_size,
        "mask_rate": first.mask_rate,
        "checkpoint_every": 500,
        "evaluate_every": 2000,
    } | training
    chosen = OptimizerConfig().resolved(first.batch_size, config.hidden_size)
    optimizer = {
        "name": chosen.name,
        "lr": chosen.lr,
        "warmup_steps": min(steps // 10, max(300, steps // 100)),
        "decay_from_warmup_end": True,
    }
    if chosen.name == "muon":
        optimizer |= {"weight_decay": 0.05, "beta_2": chosen.beta_2}
    # The nearest named model and the differences; the vocabulary follows from the records.
    settings = {"model": config.as_settings(), "training": training, "optimizer": optimizer}
    if len(stages) > 1:
        *earlier, last = stages
        settings["stages"] = [
            *({"data": stage.records, "share": stage.share} for stage in earlier),
            {"share": last.share, "batch_size": last.batch_size, "mask_rate": last.mask_rate},
        ]
    return settings
