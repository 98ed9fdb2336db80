"""The plan of a pre-training run: what fits, how much text, how long, which commands."""

import math
from typing import NamedTuple

from pydantic import Field

from albert_keras.config import AlbertConfig
from albert_keras.planning.devices import find_device
from albert_keras.planning.fitting import Fit, choose_fit, fit_share, least_memory_text
from albert_keras.planning.recipe import choose_recipe, commands, recipe_config
from albert_keras.planning.sizes import bytes_text
from albert_keras.training.cost.flops import training_flops
from albert_keras.training.cost.memory import COMPUTE_BYTES
from albert_keras.training.cost.weight_count import count_weights
from data_pipeline.errors import InputError
from data_pipeline.settings import Settings

#: Bytes of English text in a piece, at a vocabulary of 30,000; measured 4.0 at 8000.
BYTES_PER_PIECE = 4.3
#: Bytes of a record: measured 552, 910 and 2994 at S 64, 128 and 512 with V 8000, whose pieces
#: take a little less room than those of 30,000.
RECORD_BYTES, RECORD_BYTES_PER_POSITION = 200, 6
#: Blocks computed again cost a second forward pass: four thirds of the work.
RECOMPUTE_COST = 4 / 3
#: [CLS] and two [SEP].
_SPECIAL_PIECES = 3


class PlanRequest(Settings):
    """What is planned for.

    Attributes:
        size: str. Name of an AlbertConfig.
        memory_bytes: float or None. Memory of a replica; None takes that of the device.
        batch_size: int or None. Global batch size; None takes the recipe's.
        corpus_bytes: float or None. Text; without it nothing is said about epochs and disk.
        max_seq_length: int. S.
        device: str. A key of `DEVICES`.
        devices: int or None. Replicas; None takes those of the device.
        tflops: float or None. Peak of a replica, in 10^12 operations a second.
        mfu: float or None. Share of the peak that useful work reaches.
        precision: str or None. None takes the usual one of the device.
        steps: int or None. None takes as much text as the recipe.
        vocab_size: int. V.
        bytes_per_piece: float.
    """

    size: str = "albert-base"
    memory_bytes: float | None = Field(None, gt=0)
    batch_size: int | None = Field(None, ge=1, le=1_000_000)
    corpus_bytes: float | None = Field(None, gt=0)
    max_seq_length: int = Field(512, ge=8, le=512)
    device: str = "cpu"
    devices: int | None = Field(None, ge=1)
    tflops: float | None = Field(None, gt=0)
    mfu: float | None = Field(None, gt=0, le=1)
    precision: str | None = None
    steps: int | None = Field(None, ge=1)
    vocab_size: int = Field(30_000, ge=1)
    bytes_per_piece: float = Field(BYTES_PER_PIECE, gt=0)


class Plan(NamedTuple):
    """What a run takes, with what each number rests on in `assumptions`.

    Attributes:
        size, device, precision, recipe: str.
        weights: int. How many the model has.
        max_seq_length, max_predictions_per_seq: int. S and P.
        batch_size: int. Global.
        replicas: int.
        share: int. Sequences of a replica and step.
        memory_bytes: float. Memory of a replica.
        fits: tuple of Fit. With blocks kept, and computed again.
        chosen: Fit.
        steps: int.
        sequences: int. Seen in all steps.
        records: int or None. What the corpus gives.
        epochs: float or None. How often each is seen.
        disk_bytes: float or None. Of the records.
        flops_per_step: int. Useful operations, all replicas.
        seconds_per_step, seconds: float.
        commands: list of str.
        assumptions: dict of str to str.
    """

    size: str
    device: str
    precision: str
    recipe: str
    weights: int
    max_seq_length: int
    max_predictions_per_seq: int
    batch_size: int
    replicas: int
    share: int
    memory_bytes: float
    fits: tuple[Fit, Fit]
    chosen: Fit
    steps: int
    sequences: int
    records: int | None
    epochs: float | None
    disk_bytes: float | None
    flops_per_step: int
    seconds_per_step: float
    seconds: float
    commands: list
    assumptions: dict

    def to_dict(self):
        """Returns plain values for JSON (dict)."""
        return self._asdict() | {
            "fits": [_fit_to_dict(fit) for fit in self.fits],
            "chosen": _fit_to_dict(self.chosen),
        }


def make_plan(request, is_measured=False):
    """Plans a run.

    Args:
        request: PlanRequest.
        is_measured: bool. Whether `tflops` was measured on this machine, for the assumptions.

    Returns:
        Plan.

    Raises:
        InputError: If a name is not known, the batch is not a multiple of the replicas, or not even
            one sequence fits.
    """
    device = find_device(request.device)
    config = AlbertConfig.from_name(request.size, vocab_size=request.vocab_size)
    precision = request.precision or device.precision
    if precision not in COMPUTE_BYTES:
        raise InputError(
            f"`precision` should be one of {', '.join(COMPUTE_BYTES)}. Received: {precision!r}."
        )
    recipe_name = choose_recipe(request.size, device.kind)
    recipe = recipe_config(recipe_name).training
    replicas = request.devices or device.replicas
    batch_size = request.batch_size or recipe.batch_size
    if batch_size % replicas:
        raise InputError(
            f"`batch` should be a multiple of the {replicas} replicas. Received: {batch_size}."
        )
    share = batch_size // replicas
    predictions = math.ceil(0.15 * request.max_seq_length)
    memory_bytes = request.memory_bytes or device.memory_bytes
    lengths = request.max_seq_length, predictions
    settings = {"precision": precision, "process_bytes": round(device.process_bytes)}
    fits = fit_share(config, share, memory_bytes, *lengths, **settings)
    if not any(fit.memory for fit in fits):
        raise InputError(
            f"`memory` should be at least {least_memory_text(config, *lengths, **settings)} for "
            f"{request.size} at S {request.max_seq_length} in {precision}, one sequence at a time. "
            f"Received: {bytes_text(memory_bytes)}."
        )
    chosen = choose_fit(fits, share, request.max_seq_length)
    steps = request.steps or max(1, round(recipe.steps * recipe.batch_size / batch_size))
    flops = training_flops(config, batch_size, *lengths)
    rate = (request.tflops or device.tflops) * 1e12 * (request.mfu or device.mfu) * replicas
    seconds_per_step = flops * (RECOMPUTE_COST if chosen.recompute else 1) / rate
    records = epochs = disk_bytes = None
    if request.corpus_bytes is not None:
        pieces = request.corpus_bytes / request.bytes_per_piece
        records = max(1, round(pieces / (request.max_seq_length - _SPECIAL_PIECES)))
        epochs = steps * batch_size / records
        per_record = RECORD_BYTES + RECORD_BYTES_PER_POSITION * request.max_seq_length
        disk_bytes = records * per_record
    return Plan(
        size=request.size,
        device=request.device,
        precision=precision,
        recipe=recipe_name,
        weights=count_weights(config).total,
        max_seq_length=request.max_seq_length,
        max_predictions_per_seq=predictions,
        batch_size=batch_size,
        replicas=replicas,
        share=share,
        memory_bytes=memory_bytes,
        fits=fits,
        chosen=chosen,
        steps=steps,
        sequences=steps * batch_size,
        records=records,
        epochs=epochs,
        disk_bytes=disk_bytes,
        flops_per_step=flops,
        seconds_per_step=seconds_per_step,
        seconds=steps * seconds_per_step,
        commands=commands(
            recipe_name,
            request.size,
            batch_size,
            steps,
            chosen,
            precision,
            device.kind,
            request.max_seq_length,
            request.vocab_size,
        ),
        assumptions=_assumptions(request, device, recipe, recipe_name, is_measured),
    )


def _assumptions(request, device, recipe, recipe_name, is_measured):
    peak = "measured here" if is_measured else "given" if request.tflops else "data sheet"
    if peak == "data sheet" and device.kind == "cpu":
        peak = "eight cores of 80 GFLOP/s; --measure tells this machine's"
    return {
        "memory": "formula of training/memory.py, measured on a CPU; 10 % left free"
        + ("" if request.memory_bytes else f"; {bytes_text(device.memory_bytes)} of the device"),
        "peak": f"{request.tflops or device.tflops:.3g} TFLOP/s per replica, {peak}",
        "mfu": f"{request.mfu or device.mfu:.0%} of the peak in useful work, "
        + ("given" if request.mfu else "assumed"),
        "recompute": "blocks computed again take 4/3 of the time",
        "steps": "given"
        if request.steps
        else f"as many sequences as {recipe_name}: {recipe.steps:,} of {recipe.batch_size:,}",
        "text": f"{request.bytes_per_piece:.3g} bytes a piece (English, V 30,000: 4.3), one copy, "
        "S - 3 pieces a record",
        "disk": f"{RECORD_BYTES} bytes and {RECORD_BYTES_PER_POSITION} for each position a record",
    }


def _fit_to_dict(fit):
    memory = fit.memory and fit.memory._asdict() | {"total": fit.memory.total}
    return fit._asdict() | {"memory": memory}
