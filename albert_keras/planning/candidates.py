"""Models that a machine can train in a given time, and what each is expected to learn."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field

from albert_keras.models.weight_count import count_weights
from albert_keras.planning.batch_fit import choose_fit, fit_batch, least_memory_text
from albert_keras.planning.devices import Device, find_device
from albert_keras.planning.ladder import LADDER, Rung, Stage
from albert_keras.planning.measured_runs import read_runs, weights_at_all_depths
from albert_keras.planning.plan import RECOMPUTE_COST
from albert_keras.planning.scaling import LEAST_UPDATES, Expectation, fit_law
from albert_keras.report import bytes_text
from albert_keras.training.cost.flops import training_flops
from data_pipeline.errors import InputError
from data_pipeline.settings import Settings

#: Fraction of the training time for checkpoints, evaluations and the log.
_SAVING = 0.03
#: Fraction of the measured peak of a CPU that training reaches, by hidden size: 38 % of 2x128 and
#: 45 % of 6x256 on two hyperthreads of a Zen 4 core in mixed_bfloat16.
_CPU_MFU, _CPU_MFU_OF_128 = 0.45, 0.38
#: Difference of two expected losses that is taken as noise: a third of a point of accuracy.
_NOISE = 0.03
#: Most weights of a model for each token of the text, as a larger model learns the text by
#: heart: the ratio of RoBERTa-base on the 10 million words of BabyLM
#: (https://aclanthology.org/2023.conll-babylm.1).
MOST_WEIGHTS_PER_TOKEN = 10


class BudgetRequest(Settings):
    """What is planned for."""

    seconds: float = Field(gt=0)  # from text to a trained model
    corpus_bytes: float = Field(ge=0)
    device: str = "cpu"  # a key of `DEVICES`
    devices: int | None = Field(None, ge=1)  # replicas; None takes as many as the device has
    tflops: float | None = Field(None, gt=0)  # peak of a replica, in 10^12 operations per second
    mfu: float | None = Field(None, gt=0, le=1)  # fraction of the peak that useful work reaches
    memory_bytes: float | None = Field(None, gt=0)  # of a replica; None takes it from the device
    precision: str | None = None  # None takes the usual precision of the device
    bytes_per_piece: float | None = Field(None, gt=0)  # None takes the value for English text


class Candidate(NamedTuple):
    """A model, and what it is expected to learn within the budget."""

    rung: Rung
    weights: int  # of the whole model
    mfu: float  # fraction of the peak that useful work reaches
    positions_per_second: float  # over all replicas
    steps: int
    tokens: int  # positions seen
    epochs: float  # how often each token is seen
    expected: Expectation
    training: dict[str, Any]  # settings with which it fits into memory

    @property
    def objection(self) -> str:
        """str. Why the model is not to be chosen, "too few updates" or "too little text", or ""."""
        if self.steps < LEAST_UPDATES:
            return "too few updates"
        text_tokens = self.tokens / self.epochs
        return "too little text" if self.weights > MOST_WEIGHTS_PER_TOKEN * text_tokens else ""

    def to_dict(self) -> dict:
        """Returns plain values for JSON."""
        values = self._asdict() | {"model": self.rung.name, "expected": self.expected._asdict()}
        del values["rung"]
        return values


def candidates_for(
    request: BudgetRequest,
    stages: Sequence[Stage],
    vocab_size: int,
    text_positions: float,
    seconds: float,
) -> list[Candidate]:
    """Returns the models of `LADDER` that fit into memory, from the smallest up.

    Args:
        request: The machine; what is planned for.
        stages: Stages of the training.
        vocab_size: Pieces of the vocabulary, V.
        text_positions: Positions of one pass over the text, in records as in the measured runs.
        seconds: Time of the training, in which checkpoints are saved, too.

    Raises:
        InputError: If the replicas do not divide the batch, or no model fits.
    """
    device = find_device(request.device)
    replicas = request.devices or device.replicas
    if stages[-1].batch_size % replicas:
        raise InputError(
            f"`--devices` must divide the batch of {stages[-1].batch_size}. Received: {replicas}."
        )
    law = fit_law(read_runs())
    found = []
    for rung in LADDER:
        training = _settings_to_fit(request, device, rung, stages, vocab_size, replicas)
        if training is None:
            continue
        config = rung.config(vocab_size)
        tflops = (request.tflops or device.tflops) * replicas
        mfu = request.mfu or _utilization(device, rung)
        rate = tflops * 1e12 * mfu
        if training.get("recompute"):
            rate /= RECOMPUTE_COST
        times = [  # seconds of a step, by stage
            training_flops(
                config, stage.batch_size, stage.max_seq_length, stage.max_predictions_per_seq
            )
            / rate
            for stage in stages
        ]
        usable = (1 - _SAVING) * seconds
        counts = [stage.share * usable / time for stage, time in zip(stages, times, strict=True)]
        steps = max(1, int(sum(counts)))
        positions = stages[0].batch_size * stages[0].max_seq_length
        found.append(
            Candidate(
                rung=rung,
                weights=count_weights(config).total,
                mfu=mfu,
                positions_per_second=steps * positions / usable,
                steps=steps,
                tokens=steps * positions,
                epochs=steps * positions / text_positions,
                expected=law.expect(
                    weights_at_all_depths(config), steps * positions, text_positions
                ),
                training=training,
            )
        )
    if not found:
        batches = [
            (stage.batch_size // replicas, stage.max_seq_length, stage.max_predictions_per_seq)
            for stage in stages
        ]
        memory_bytes, settings = _memory_of(request, device)
        least = least_memory_text(LADDER[0].config(vocab_size), batches, **settings)
        raise InputError(
            f"`--memory` must be at least {least} for the smallest model. Received: "
            f"{bytes_text(memory_bytes, digits=6)}."
        )
    return found


def choose_candidate(candidates: Sequence[Candidate]) -> Candidate:
    """Returns the smallest model about as good as the best of those with enough updates and text.

    It is the smallest of all if none has enough of both.
    """
    suitable = [one for one in candidates if not one.objection] or candidates[:1]
    lowest = min(one.expected.loss for one in suitable)
    return next(one for one in suitable if one.expected.loss <= lowest + _NOISE)


def _utilization(device: Device, rung: Rung) -> float:
    if device.kind != "cpu":
        return device.mfu
    return _CPU_MFU_OF_128 if rung.hidden_size < 256 else _CPU_MFU


def _memory_of(request, device):
    """Returns the memory of a replica in bytes, and the settings that determine what fits."""
    settings = {
        "precision": request.precision or device.precision,
        "process_bytes": round(device.process_bytes),
    }
    return request.memory_bytes or device.memory_bytes, settings


def _settings_to_fit(request, device, rung, stages: Sequence[Stage], vocab_size, replicas):
    """Returns the settings with which a model fits into memory; None if it does not fit."""
    memory_bytes, memory_settings = _memory_of(request, device)
    fits = []
    for stage in stages:
        share = stage.batch_size // replicas
        pair = fit_batch(
            rung.config(vocab_size),
            share,
            memory_bytes,
            stage.max_seq_length,
            stage.max_predictions_per_seq,
            **memory_settings,
        )
        if not any(fit.memory for fit in pair):
            return None
        fits.append(choose_fit(pair, share, stage.max_seq_length))
    settings: dict[str, Any] = {}
    parts = max(fit.accumulation_steps for fit in fits)
    if any(stage.batch_size // replicas % parts for stage in stages):
        return None
    if parts > 1:
        settings["accumulation_steps"] = parts
    if any(fit.recompute for fit in fits):
        settings["recompute"] = True
    if request.precision or device.kind != "cpu":  # on a CPU `auto` knows better
        settings["precision"] = memory_settings["precision"]
    if device.kind == "tpu":
        settings["steps_per_execution"] = 50
    return settings
