"""What to run: a model, its settings and the commands, for a text, a machine and a time."""

import logging
import math
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.machine.candidates import (
    RECORD_FILL,
    Candidate,
    PlanRequest,
    candidates_for,
    choose,
)
from albert_keras.machine.corpus import Text, examine_text, text_of_size
from albert_keras.machine.devices import find_device, measured_tflops, rounded_up
from albert_keras.machine.ladder import (
    LADDER,
    MASK_RATE,
    Stage,
    run_settings,
    rung,
    stages_for,
    vocabulary_size,
)
from albert_keras.models.weight_count import model_line
from albert_keras.report import bytes_text
from albert_keras.runs.run_record import read_record
from albert_keras.training.config import PretrainingConfig, TrainingConfig
from albert_keras.training.epoch_report import copies_for
from data_pipeline.errors import InputError
from data_pipeline.progress import format_duration, parse_duration
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

#: Less text does not train a vocabulary and a model from random weights.
_LEAST_CORPUS_BYTES = 1e6
#: Bytes per second of `vocab`, of `data build`, and of each further copy of the text: 52 MB took
#: 9 s on 2 CPU cores, and 32 s in 7 copies.
_VOCABULARY_RATE, _BUILD_RATE, _COPY_RATE = 0.5e6, 5e6, 13e6
#: Bytes of a corpus of which a part is enough for the vocabulary.
LARGE_CORPUS = 300e6
#: Seconds until a command has loaded its libraries, and until a run has built its graph.
_START_SECONDS, _RUN_START_SECONDS = 5, 30
#: Least training time of a plan.
_LEAST_SECONDS = 60


class Plan(NamedTuple):
    """The plan of a run."""

    request: PlanRequest  # with the measured peak
    text: Text
    vocab_size: int
    stages: tuple[Stage, ...]
    copies: int  # of the text in the records of each stage, with other segments
    parts: dict[str, float]  # seconds of each part, "training" the last
    chosen: Candidate
    candidates: tuple[Candidate, ...]
    config: dict[str, Any]  # settings of the run


def make_plan(request: PlanRequest, given: TrainingConfig | None = None) -> Plan:
    """Plans a run; the peak of a CPU is measured for two seconds unless `tflops` is given.

    The model is the smallest of `LADDER` whose expected loss is about the lowest, among those that
    are trained for enough updates on enough text.

    Args:
        request: What is planned for.
        given: Settings of a run on records, of which batch size, mask rate and masks are kept.

    Raises:
        InputError: If a name is unknown, text or time are too little, or no model fits into memory.
    """
    if not (request.corpus or request.corpus_bytes or request.data):
        raise InputError(
            "A plan needs a text: give `--corpus`, or `--corpus-size` if the text is not on this "
            "machine, or `--data` for records."
        )
    device, seconds = find_device(request.device), 3600 * request.hours
    given = given or TrainingConfig()
    stages = stages_for(seconds, device.kind)
    if request.data is not None:
        info = DatasetInfo.read(request.data)
        text, vocab_size = _text_of_records(info), info.vocab_size
        positions = stages[0].batch_size * stages[0].max_seq_length
        stages = (_stage_of_records(info, given, positions, device.replicas),)
    else:
        text, vocab_size = _text_of(request)
    if device.kind == "cpu" and request.tflops is None:
        request = request.replace(tflops=measured_tflops("auto"))
    longest = stages[-1].max_seq_length
    models = {f"{one[0]}x{one[1]}": rung(*one, vocab_size, longest) for one in LADDER}
    copies, wanted = 0, 1
    while copies < wanted:  # more copies take time from the training, so that fewer are wanted
        copies = wanted
        parts = _seconds_before(request, text, len(stages), copies)
        before = sum(parts.values())
        if seconds < before + _LEAST_SECONDS:
            raise InputError(
                f"`--hours` must be at least {rounded_up((before + _LEAST_SECONDS) / 3600):g}: "
                f"vocabulary and records take {format_duration(before)}. "
                f"Received: {request.hours:g}."
            )
        candidates = candidates_for(request, models, stages, text, seconds - before)
        chosen = choose(candidates)
        if request.data is None:
            wanted = copies_for(chosen.epochs / len(stages))
            later = sum(_seconds_before(request, text, len(stages), wanted).values())
            if seconds < later + _LEAST_SECONDS:
                break  # so many copies would leave no time for the training
    parts["training"] = seconds - before
    budget = {"time_budget": f"{int(parts['training'])}s"}
    config = run_settings(chosen.config, chosen.steps, stages, **budget, **chosen.training)
    if request.data is not None and given.masks != "dynamic" and info.static_masks:
        config["training"].pop("mask_rate", None)  # the rate of dynamic masks
    PretrainingConfig.of(config)  # what is printed must be accepted
    found = tuple(candidates)
    return Plan(request, text, vocab_size, stages, copies, parts, chosen, found, config)


def suggest_config(
    data: str | Path, config: PretrainingConfig, out: str | Path | None = None
) -> PretrainingConfig:
    """Completes the settings of a run with a time budget by a model that suits time and records.

    The model, its optimizer and its batches are chosen as by `albert-keras plan` for this machine,
    whose speed is measured for two seconds. Settings that are given do not change.

    Args:
        data: str or Path. Folder of records.
        config: PretrainingConfig. It is returned unchanged if it names a model, has no
            `time_budget` or has stages, or if this machine does not train on a single CPU.
        out: str, Path or None. Folder of the run. If the run exists, its settings are used.

    Raises:
        InputError: If the records or the run cannot be read.
    """
    if {"model", "stages"} & config.model_fields_set or config.training.time_budget is None:
        return config
    run_file = None if out is None else Path(out) / "run.json"
    if run_file is not None and run_file.is_file():
        return completed(config, read_record(run_file)["config"])
    DatasetInfo.read(data)  # an error of the records comes first
    if not _trains_on_one_cpu(config.training.strategy):
        return config
    seconds = parse_duration(config.training.time_budget)
    hours = (max(seconds, _LEAST_SECONDS) + _RUN_START_SECONDS) / 3600
    tflops = measured_tflops(config.training.precision)
    plan = make_plan(PlanRequest(data=str(data), hours=hours, tflops=tflops), config.training)
    chosen = plan.chosen
    logger.info(
        "chosen for %s on this machine: %s, hidden size %d, batches of %d; expected masked-LM loss "
        "%.2f ± %.2f, as for English novels. --size chooses another model.",
        format_duration(seconds),
        model_line(chosen.config),
        chosen.config.hidden_size,
        plan.stages[0].batch_size,
        chosen.expected.loss,
        chosen.expected.error,
    )
    return completed(config, plan.config)


def completed(config: PretrainingConfig, settings: dict[str, Any]) -> PretrainingConfig:
    """Fills in what a configuration that leaves the model open lacks, and returns the result.

    Args:
        config: PretrainingConfig.
        settings: dict of section -> dict. What to fill in, such as the settings of the run that is
            to be resumed.
    """
    given = config.model_dump(exclude_unset=True)
    training = settings["training"] | given.get("training", {})
    # The settings of an optimizer belong together: a given one replaces the suggested one.
    return PretrainingConfig.of(settings | given | {"training": training})


def _trains_on_one_cpu(strategy):
    import tensorflow as tf

    from albert_keras.training.strategy import find_tpu

    if strategy not in ("auto", "single"):
        return False
    return not find_tpu() and not tf.config.list_physical_devices("GPU")


def _text_of(request):
    """Returns the Text and the size of the vocabulary."""
    tokenizer = None if request.tokenizer is None else Tokenizer.load(request.tokenizer)
    size = request.corpus_bytes
    if request.corpus:
        from data_pipeline.text.text_files import corpus_bytes

        size = corpus_bytes(request.corpus)
    if size < _LEAST_CORPUS_BYTES:
        raise InputError(
            "The corpus must have at least 1 MB of text for a model from random weights. Received: "
            f"{bytes_text(size)}. Add text, or continue with a trained model: "
            "albert-keras pretrain --init-from albert-mini-en --config continue."
        )
    vocab_size = tokenizer.vocab_size if tokenizer else vocabulary_size(size)
    if not request.corpus:
        return text_of_size(size, vocab_size), vocab_size
    source = request.corpus, request.corpus_format
    text = examine_text(*source, vocab_size, tokenizer, request.language)
    return text, vocab_size if tokenizer else max(vocab_size, text.least_pieces)


def _text_of_records(info):
    copies, language = info.config.get("copies", 1), info.config.get("language", "en")
    tokens = round(info.num_records * info.max_seq_length * RECORD_FILL / copies)
    return Text(math.nan, language, math.nan, tokens, "records that are there")


def _stage_of_records(info, given, positions, replicas):
    """Returns the Stage of a run with these records throughout."""
    length = info.max_seq_length
    rate = given.mask_rate or min(MASK_RATE, info.max_predictions_per_seq / length)
    batch_size = max(1, positions // length // replicas) * replicas
    if "batch_size" in given.model_fields_set:
        batch_size = given.batch_size
    return Stage(length, math.ceil(rate * length), 1.0, batch_size, round(rate, 3))


def _seconds_before(request, text, num_stages, copies):
    """Returns how long each part takes that comes before the training (dict of str -> float)."""
    parts = {}
    if request.data is None:
        if request.tokenizer is None:
            parts["vocabulary"] = (
                _START_SECONDS + min(text.num_bytes, LARGE_CORPUS) / _VOCABULARY_RATE
            )
        build = text.num_bytes * (1 / _BUILD_RATE + (copies - 1) / _COPY_RATE)
        parts["records"] = num_stages * (_START_SECONDS + build)
    return parts | {"start": float(_RUN_START_SECONDS)}
