"""Models that a machine can train in a given time, and what each is expected to learn."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from pydantic import Field

from albert_keras.config import AlbertConfig
from albert_keras.machine.corpus import Text
from albert_keras.machine.devices import find_device, rounded_up
from albert_keras.machine.ladder import Stage
from albert_keras.machine.law import (
    LEAST_UPDATES,
    Expectation,
    measured_law,
    weights_at_all_depths,
)
from albert_keras.machine.step_memory import StepMemory, step_memory
from albert_keras.models.weight_count import count_weights
from albert_keras.report import bytes_text
from albert_keras.training.flops import training_flops
from data_pipeline.errors import InputError
from data_pipeline.settings import Settings

#: Fraction of the memory that stays free: the formula is not exact, and allocators leave gaps.
FREE_FRACTION = 0.1
#: Positions of a part from which products are large enough. Blocks are recomputed rather than
#: making parts smaller.
_ENOUGH_POSITIONS = 4096
#: Text tokens of a record are this fraction of S: the others are special tokens and padding.
RECORD_FILL = 0.9
#: Fraction of the training time for checkpoints, evaluations and the log.
_SAVING = 0.03
#: Fraction of its peak that a CPU reaches with layers narrower than 256; measured with 2x128.
_NARROW_CPU_MFU = 0.38
#: Recomputed blocks cost a second forward pass: four thirds of the work.
_RECOMPUTE_COST = 4 / 3
#: Difference of two expected losses that is taken as noise: a third of a point of accuracy.
_NOISE = 0.03
#: Most weights of a model for each token of the text, as a larger model learns the text by heart:
#: the ratio of RoBERTa-base on BabyLM (https://aclanthology.org/2023.conll-babylm.1).
_MOST_WEIGHTS_PER_TOKEN = 10


class PlanRequest(Settings):
    """What is planned for: a text or records, a time and a machine."""

    corpus: tuple[str, ...] = ()  # files, folders or patterns
    corpus_format: str = "auto"
    corpus_bytes: float | None = Field(None, gt=0)  # if the text is not on this machine
    language: str | None = None  # code of the language of the text; None detects it
    tokenizer: str | None = None  # None trains a vocabulary
    data: str | None = None  # folder of records that exist
    hours: float = Field(8, gt=0, allow_inf_nan=False)  # from text to a trained model
    device: str = "cpu"  # a key of `DEVICES`
    tflops: float | None = Field(None, gt=0)  # peak of a replica; None measures a CPU
    memory_bytes: float | None = Field(None, gt=0)  # of a replica; None takes it from the device


class Fit(NamedTuple):
    """A way to compute a replica's part of the batch."""

    recompute: bool  # whether blocks are recomputed
    parts: int  # computed one after the other
    memory: StepMemory


def fit_batch(
    config: AlbertConfig,
    batch_size: int,
    memory_bytes: float,
    max_seq_length: int,
    max_predictions_per_seq: int,
    **settings: Any,
) -> Fit | None:
    """Finds how the batch of a replica fits into its memory; None if it does not.

    10 % of the memory stays free. Blocks are kept, which is a quarter less work, unless parts would
    be smaller than the batch and 4096 positions. `settings` are arguments of `step_memory`.
    """
    usable, found = (1 - FREE_FRACTION) * memory_bytes, []
    lengths = max_seq_length, max_predictions_per_seq
    for recompute in (False, True):
        for parts in (number for number in range(1, batch_size + 1) if batch_size % number == 0):
            how = {"recompute": recompute, "accumulation_steps": parts}
            memory = step_memory(config, batch_size, *lengths, **how, **settings)
            if memory.total <= usable:
                found.append(Fit(recompute, parts, memory))
                break
    if len(found) < 2:
        return found[0] if found else None
    kept, recomputed = found
    is_enough = kept.parts == 1 or batch_size // kept.parts * max_seq_length >= _ENOUGH_POSITIONS
    return kept if is_enough or recomputed.parts >= kept.parts else recomputed


class Candidate(NamedTuple):
    """A model, and what it is expected to learn in the time."""

    name: str  # such as "6x256"
    config: AlbertConfig
    weights: int  # of the whole model
    memory: StepMemory  # of a replica, at the end of the training
    training: dict[str, Any]  # settings with which it fits into memory
    step_seconds: tuple[float, ...]  # by stage
    steps: int
    tokens: int  # positions seen
    epochs: float  # how often each token is seen
    expected: Expectation

    @property
    def objection(self) -> str:
        """str. Why the model is not to be chosen, "too few updates" or "too little text", or ""."""
        if self.steps < LEAST_UPDATES:
            return "too few updates"
        is_large = self.weights > _MOST_WEIGHTS_PER_TOKEN * self.tokens / self.epochs
        return "too little text" if is_large else ""


def candidates_for(
    request: PlanRequest,
    models: dict[str, AlbertConfig],
    stages: Sequence[Stage],
    text: Text,
    seconds: float,
) -> list[Candidate]:
    """Returns the models that fit into memory; InputError if none does.

    Args:
        request: The machine; what is planned for.
        models: Name -> AlbertConfig, the smallest first.
        stages: Stages of the training.
        text: The text.
        seconds: Time of the training.
    """
    device = find_device(request.device)
    batches = [(stage.batch_size, *stage[:2]) for stage in stages]
    own = [(batch_size // device.replicas, *lengths) for batch_size, *lengths in batches]
    memory_bytes = request.memory_bytes or device.memory_bytes
    options = {"precision": device.precision, "process_bytes": round(device.process_bytes)}
    positions = text.tokens / RECORD_FILL
    found = []
    for name, config in models.items():
        fits = [fit_batch(config, one[0], memory_bytes, *one[1:], **options) for one in own]
        parts = max(fit.parts if fit else 0 for fit in fits)
        if None in fits or any(batch_size % parts for batch_size, _, _ in own):
            continue
        recompute = any(fit.recompute for fit in fits)
        how = {"recompute": recompute, "accumulation_steps": parts}
        memory = step_memory(config, *own[-1], **how, **options)
        training = {"accumulation_steps": parts} if parts > 1 else {}
        training |= {"recompute": True} if recompute else {}
        if device.kind != "cpu":  # on a CPU `auto` knows better
            training["precision"] = device.precision
        if device.kind == "tpu":
            training["steps_per_execution"] = 50
        is_narrow = device.kind == "cpu" and config.hidden_size < 256
        mfu = _NARROW_CPU_MFU if is_narrow else device.mfu
        rate = (request.tflops or device.tflops) * 1e12 * mfu * device.replicas
        rate /= _RECOMPUTE_COST if recompute else 1
        times = tuple(training_flops(config, *batch) / rate for batch in batches)
        shares = zip(stages, times, strict=True)
        usable = (1 - _SAVING) * seconds
        steps = max(1, int(sum(stage.share * usable / time for stage, time in shares)))
        tokens = steps * batches[0][0] * batches[0][1]
        size = weights_at_all_depths(config.num_hidden_layers, config.hidden_size)
        expected = measured_law().expect(size, tokens, positions)
        what = name, config, count_weights(config).total, memory, training, times
        found.append(Candidate(*what, steps, tokens, tokens / positions, expected))
    if not found:
        name, config = next(iter(models.items()))
        how = {"recompute": True, "accumulation_steps": min(one[0] for one in own)}
        least = max(step_memory(config, *one, **how, **options).total for one in own)
        raise InputError(
            f"`--memory` must be at least {bytes_text(rounded_up(least / (1 - FREE_FRACTION)))} "
            f"for {name}. Received: {bytes_text(memory_bytes)}."
        )
    return found


def choose(candidates: Sequence[Candidate]) -> Candidate:
    """Returns the smallest model about as good as the best of those with enough updates and text.

    It is the smallest of all if none has enough of both.
    """
    suitable = [one for one in candidates if not one.objection] or list(candidates[:1])
    lowest = min(one.expected.loss for one in suitable)
    return next(one for one in suitable if one.expected.loss <= lowest + _NOISE)
