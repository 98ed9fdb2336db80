"""The plan for a number of hours: which model a text can train in that time, and how well."""

from typing import Any, NamedTuple

from albert_keras.planning.candidates import (
    BudgetRequest,
    Candidate,
    candidates_for,
    choose_candidate,
)
from albert_keras.planning.devices import find_device
from albert_keras.planning.ladder import (
    ACCELERATOR_POSITIONS,
    CPU_POSITIONS,
    PIECES_PER_RECORD,
    Stage,
    bytes_per_piece,
    run_settings,
    stages_for,
    vocabulary_size,
)
from albert_keras.planning.plan import RECORD_BYTES, RECORD_BYTES_PER_POSITION
from albert_keras.planning.sizes import rounded_up
from albert_keras.report import bytes_text, number_text
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.epoch_report import copies_for
from data_pipeline.errors import InputError
from data_pipeline.progress import format_duration

#: Less text does not train a vocabulary and a model from random weights.
LEAST_CORPUS_BYTES = 1e6
#: Bytes of text for the vocabulary: more changes it little.
VOCABULARY_BYTES = 300e6
#: Bytes per second of `vocab`, which announces its duration at this rate, of `data build`, and of
#: each further copy of the text: 52 MB took 9 s on 2 CPU cores, and 32 s in 7 copies.
VOCABULARY_RATE, BUILD_RATE, COPY_RATE = 0.5e6, 5e6, 13e6
#: Seconds until a command has loaded its libraries, and until a run has built its graph.
_START_SECONDS, _RUN_START_SECONDS = 5, 30
#: Least training time of a plan.
_LEAST_SECONDS = 60
#: Bytes of a checkpoint per weight, with two moments, and the number of checkpoints on disk.
_CHECKPOINT_BYTES, _CHECKPOINTS = 12, 4


class BudgetPlan(NamedTuple):
    """The plan of a run for a number of hours."""

    seconds: float
    corpus_bytes: float
    device: str
    replicas: int
    vocab_size: int
    text_tokens: int  # tokens of the corpus
    stages: tuple[Stage, ...]
    copies: int  # of the text in the records of each stage, with other segments
    parts: dict[str, float]  # seconds of the vocabulary, the records, the start and the training
    disk_bytes: float
    chosen: Candidate
    candidates: tuple[Candidate, ...]
    config: dict[str, Any]  # settings of the run

    def to_dict(self) -> dict:
        """Returns plain values for JSON."""
        return self._asdict() | {
            "stages": [stage._asdict() for stage in self.stages],
            "chosen": self.chosen.to_dict(),
            "candidates": [candidate.to_dict() for candidate in self.candidates],
        }


def plan_budget(request: BudgetRequest) -> BudgetPlan:
    """Chooses vocabulary, model and stages for a corpus, a machine and a number of hours.

    The model is the smallest one of `LADDER` whose expected loss is about the lowest, among those
    that are trained for enough updates.

    Raises:
        InputError: If the corpus or the time is too small, a name is unknown, or no model fits.
    """
    device = find_device(request.device)
    if request.corpus_bytes < LEAST_CORPUS_BYTES:
        raise InputError(
            "The corpus must have at least 1 MB of text for a model from random weights. Received: "
            f"{bytes_text(request.corpus_bytes)}. Add text, or continue with a trained model: "
            "albert-keras pretrain --init-from albert-mini-en --config continue."
        )
    vocab_size = vocabulary_size(request.corpus_bytes)
    text_tokens = request.corpus_bytes / (request.bytes_per_piece or bytes_per_piece(vocab_size))
    text_positions = text_tokens / PIECES_PER_RECORD[64] * 64
    positions = CPU_POSITIONS if device.kind == "cpu" else ACCELERATOR_POSITIONS
    _check_time(request)
    stages = stages_for(request.seconds, positions)
    copies, wanted = 0, 1
    # More copies take time from the training, so that fewer are wanted.
    while copies < wanted:
        copies = wanted
        parts = _seconds_before(request, len(stages), copies)
        parts["training"] = request.seconds - sum(parts.values())
        candidates = candidates_for(request, stages, vocab_size, text_positions, parts["training"])
        chosen = choose_candidate(candidates)
        wanted = copies_for(chosen.epochs / len(stages))
        if request.seconds < _seconds_needed(request, len(stages), wanted):
            break  # so many copies would leave no time for the training
    disk = copies * sum(
        text_tokens
        / PIECES_PER_RECORD[stage.max_seq_length]
        * (RECORD_BYTES + RECORD_BYTES_PER_POSITION * stage.max_seq_length)
        for stage in stages
    )
    settings = {"time_budget": _duration(parts["training"])} | chosen.training
    config = run_settings(chosen.rung, chosen.steps, stages, **settings)
    PretrainingConfig.of(config)  # what is printed must be accepted
    return BudgetPlan(
        seconds=request.seconds,
        corpus_bytes=request.corpus_bytes,
        device=request.device,
        replicas=request.devices or device.replicas,
        vocab_size=vocab_size,
        text_tokens=round(text_tokens),
        stages=stages,
        copies=copies,
        parts=parts,
        disk_bytes=disk + _CHECKPOINTS * _CHECKPOINT_BYTES * chosen.weights,
        chosen=chosen,
        candidates=tuple(candidates),
        config=config,
    )


def _check_time(request):
    """Raises InputError if no time is left for the training, even of one copy of the text."""
    if request.seconds >= _seconds_needed(request, len(stages_for(request.seconds))):
        return
    hours = request.seconds / 3600
    for _ in range(2):  # the least time may have more stages, which take longer
        num_stages = len(stages_for(3600 * hours))
        hours = rounded_up(max(hours, _seconds_needed(request, num_stages) / 3600))
    before = sum(_seconds_before(request, num_stages).values())
    raise InputError(
        f"`--hours` must be at least {number_text(hours)}: the vocabulary and the records of "
        f"{bytes_text(request.corpus_bytes)} take {format_duration(before)}. Received: "
        f"{number_text(request.seconds / 3600, digits=6)}. Allow more time, or give less text."
    )


def _seconds_needed(request, num_stages, copies=1):
    return sum(_seconds_before(request, num_stages, copies).values()) + _LEAST_SECONDS


def _seconds_before(request, num_stages, copies=1):
    """Returns how long each part takes that comes before the training (dict of str -> float)."""
    vocabulary = min(request.corpus_bytes, VOCABULARY_BYTES) / VOCABULARY_RATE
    records = request.corpus_bytes * (1 / BUILD_RATE + (copies - 1) / COPY_RATE)
    return {
        "vocabulary": _START_SECONDS + vocabulary,
        "records": num_stages * (_START_SECONDS + records),
        "start": float(_RUN_START_SECONDS),
    }


def _duration(seconds):
    """Returns a duration as `training.time_budget` has it, such as "7h40m"."""
    if seconds < 600:
        return f"{int(seconds)}s"
    hours, minutes = divmod(int(seconds // 60), 60)
    return (f"{hours}h" if hours else "") + (f"{minutes}m" if minutes else "")
