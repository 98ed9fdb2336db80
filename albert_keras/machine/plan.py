"""What to run on this machine: a model, its settings and the commands, for a text and a time."""

import logging
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

from pydantic import Field

from albert_keras.config import AlbertConfig
from albert_keras.machine.corpus import Text, examine_text, text_of_size
from albert_keras.machine.doctor import ask_driver, gpu_memory, read_memory
from albert_keras.machine.ladder import (
    GPU_POSITIONS,
    LADDER,
    MASK_RATE,
    POSITIONS,
    Stage,
    run_settings,
    rung,
    stages_for,
    vocabulary_size,
)
from albert_keras.machine.law import (
    LEAST_UPDATES,
    Expectation,
    measured_law,
    weights_at_all_depths,
)
from albert_keras.machine.step_memory import GPU_PROCESS_BYTES, step_memory
from albert_keras.models.weight_count import count_weights, model_line
from albert_keras.report import bytes_text
from albert_keras.runs.run_record import read_record
from albert_keras.training.config import PretrainingConfig, TrainingConfig
from albert_keras.training.flops import training_flops
from data_pipeline.errors import InputError
from data_pipeline.progress import format_duration, parse_duration
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.settings import Settings
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

#: Less text does not train a vocabulary and a model from random weights.
_LEAST_CORPUS_BYTES = 1e6
#: Bytes per second of `vocab`, of `data build`, and of each further copy of the text: 52 MB took
#: 9 s on 2 CPU cores, and 32 s in 7 copies.
_VOCABULARY_RATE, _BUILD_RATE, _COPY_RATE = 0.5e6, 5e6, 13e6
#: Bytes of a corpus of which a part is enough for the vocabulary.
_LARGE_CORPUS = 300e6
#: The most copies of the text in records; seven passes were measured (docs/measured.md).
_MOST_COPIES = 10
#: Seconds until a command has loaded its libraries, and until a run has built its graph.
_START_SECONDS, _RUN_START_SECONDS = 5, 30
#: Least training time of a plan.
_LEAST_SECONDS = 60
#: Fraction of the memory that a step may use: the formula is not exact, and unmeasured on GPUs.
_USED_MEMORY = {"CPU": 0.9, "GPU": 0.5}
#: Text tokens of a record are this fraction of S: the others are special tokens and padding.
_RECORD_FILL = 0.9
#: Fraction of the training time for checkpoints, evaluations and the log.
_SAVING = 0.03
#: Fraction of its measured peak that a CPU reaches, with layers narrower than 256 and with others:
#: 2x128, and 6x256 in mixed_bfloat16 on two hyperthreads of a Zen 4 core.
_NARROW_MFU, _MFU = 0.38, 0.45
#: Difference of two expected losses that is taken as noise: a third of a point of accuracy.
_NOISE = 0.03
#: Most weights of a model for each token of the text, as a larger model learns the text by heart:
#: the ratio of RoBERTa-base on BabyLM (https://aclanthology.org/2023.conll-babylm.1).
_MOST_WEIGHTS_PER_TOKEN = 10


class PlanRequest(Settings):
    """What is planned for: a text or records, and a time."""

    corpus: tuple[str, ...] = ()  # files, folders or patterns
    corpus_format: str = "auto"
    corpus_bytes: float | None = Field(None, gt=0)  # if the text is not on this machine
    language: str | None = None  # code of the language of the text; None is English
    tokenizer: str | None = None  # None trains a vocabulary
    data: str | None = None  # folder of records that exist
    hours: float = Field(8, gt=0, allow_inf_nan=False)  # from text to a trained model
    tflops: float | None = Field(None, gt=0)  # peak of a CPU; None measures this machine


class Device(NamedTuple):
    """What the run is planned for."""

    name: str  # "CPU" or "GPU"
    tflops: float  # peak
    is_measured: bool  # whether the peak was measured and not given
    memory: float | None  # bytes, if they are known

    def step_seconds(self, config: AlbertConfig, stage: Stage) -> float:
        """Returns the time of an update; on a GPU, it is measured."""
        if self.name == "GPU":
            from albert_keras.machine.step_time import step_seconds

            logger.info("timing an update of %s on the GPU", model_line(config))
            return step_seconds(config, stage)
        rate = self.tflops * 1e12 * (_NARROW_MFU if config.hidden_size < 256 else _MFU)
        return training_flops(config, stage.batch_size, *stage[:2]) / rate

    def step_bytes(self, config: AlbertConfig, stage: Stage) -> int:
        """Returns the memory of an update, by formula."""
        batch = stage.batch_size, *stage[:2]
        if self.name == "GPU":
            return step_memory(config, *batch, value_bytes=2, process_bytes=GPU_PROCESS_BYTES).total
        return step_memory(config, *batch).total


class Candidate(NamedTuple):
    """A model, and what it is expected to learn in the time."""

    name: str  # such as "6x256"
    config: AlbertConfig
    weights: int  # of the whole model
    memory_bytes: int  # of the training
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
    device: Device


def make_plan(
    request: PlanRequest, given: TrainingConfig | None = None, device: Device | None = None
) -> Plan:
    """Plans a run on the GPU of this machine, or else on its CPU; on a CPU if `tflops` is given.

    The peak of a CPU is measured for two seconds, on a GPU an update of each model for a minute.

    The model is the smallest of `LADDER` whose expected loss is about the lowest, among those that
    are trained for enough updates on enough text.

    Args:
        request: What is planned for.
        given: Settings of a run on records, of which batch size, mask rate and masks are kept.
        device: What is planned for; None is this machine.

    Raises:
        InputError: If text or time are too little, or no model fits into memory.
    """
    if not (request.corpus or request.corpus_bytes or request.data):
        raise InputError(
            "A plan needs a text: give `corpus`, or `corpus_size` if the text is not on this "
            "machine, or `data` for records."
        )
    seconds = 3600 * request.hours
    given = given or TrainingConfig()
    device = device or this_device(request.tflops)
    on_gpu = device.name == "GPU"
    if request.data is not None:
        info = DatasetInfo.read(request.data)
        text, vocab_size = _text_of_records(info), info.vocab_size
        stages: tuple[Stage, ...] = (_stage_of_records(info, given, on_gpu),)
    else:
        stages = stages_for(seconds, on_gpu)
        text, vocab_size = _text_of(request)
    request = request.replace(tflops=device.tflops)
    longest = stages[-1].max_seq_length
    models = {f"{one[0]}x{one[1]}": rung(*one, vocab_size, longest) for one in LADDER}
    needs = _fitting(device, models, stages)
    times = {
        name: tuple(device.step_seconds(models[name], stage) for stage in stages) for name in needs
    }
    copies, wanted = 0, 1
    while copies < wanted:  # more copies take time from the training, so that fewer are wanted
        copies = wanted
        parts = _seconds_before(request, text, len(stages), copies)
        before = sum(parts.values())
        if seconds < before + _LEAST_SECONDS:
            least = math.ceil(1000 * (before + _LEAST_SECONDS) / 3600) / 1000
            raise InputError(
                f"`hours` must be at least {least:g}: vocabulary and records take "
                f"{format_duration(before)}. Received: {request.hours:g}."
            )
        candidates = _candidates(models, needs, times, stages, text, seconds - before)
        chosen = _choose(candidates)
        if request.data is None:
            wanted = _copies_for(chosen.epochs / len(stages))
            later = sum(_seconds_before(request, text, len(stages), wanted).values())
            if seconds < later + _LEAST_SECONDS:
                break  # so many copies would leave no time for the training
    parts["training"] = seconds - before
    config = run_settings(
        chosen.config, chosen.steps, stages, time_budget=f"{int(parts['training'])}s"
    )
    if request.data is not None and given.masks != "dynamic" and info.static_masks:
        config["training"].pop("mask_rate", None)  # the rate of dynamic masks
    PretrainingConfig.of(config)  # what is printed must be accepted
    found = tuple(candidates)
    return Plan(request, text, vocab_size, stages, copies, parts, chosen, found, config, device)


def _fitting(device, models, stages):
    """Returns the bytes that each training needs, of the models that fit into the memory."""
    needs = {
        name: max(device.step_bytes(config, stage) for stage in stages)
        for name, config in models.items()
    }
    share = _USED_MEMORY[device.name]
    fitting = {
        name: need
        for name, need in needs.items()
        if device.memory is None or need <= share * device.memory
    }
    if not fitting:
        raise InputError(
            f"The smallest model needs {bytes_text(min(needs.values()) / share)} of memory. "
            f"Received: a machine with {bytes_text(device.memory)}."
        )
    return fitting


def _candidates(
    models: dict[str, AlbertConfig],  # the smallest first
    needs: dict[str, int],  # of those that fit into the memory, in bytes
    step_times: dict[str, tuple[float, ...]],  # of the same ones, by stage
    stages: Sequence[Stage],
    text: Text,
    seconds: float,  # of the training
) -> list[Candidate]:
    """Returns what the models are expected to learn."""
    first, positions, found = stages[0], text.tokens / _RECORD_FILL, []
    for name, times in step_times.items():
        config, shares = models[name], zip(stages, times, strict=True)
        usable = (1 - _SAVING) * seconds
        steps = max(1, int(sum(stage.share * usable / time for stage, time in shares)))
        tokens = steps * first.batch_size * first.max_seq_length
        size = weights_at_all_depths(config.num_hidden_layers, config.hidden_size)
        found.append(
            Candidate(
                name=name,
                config=config,
                weights=count_weights(config).total,
                memory_bytes=needs[name],
                step_seconds=times,
                steps=steps,
                tokens=tokens,
                epochs=tokens / positions,
                expected=measured_law().expect(size, tokens, positions),
            )
        )
    return found


def _choose(candidates: Sequence[Candidate]) -> Candidate:
    """Returns the smallest model about as good as the best of those with enough updates and text.

    It is the smallest of all if none has enough of both.
    """
    suitable = [one for one in candidates if not one.objection] or list(candidates[:1])
    lowest = min(one.expected.loss for one in suitable)
    return next(one for one in suitable if one.expected.loss <= lowest + _NOISE)


def this_device(tflops: float | None = None, precision: str = "auto") -> Device:
    """Returns the GPU of this machine or else its CPU, whose peak is measured for two seconds.

    Args:
        tflops: The peak of its CPU, if that is planned for.
        precision: In which the peak is measured; "auto" is what this machine would choose.
    """
    memory = read_memory()
    total = None if memory is None else float(memory.total)
    if tflops is not None:
        return Device("CPU", tflops, False, total)
    import tensorflow as tf

    from albert_keras.training import peak
    from albert_keras.training.strategy import choose_precision

    precision = choose_precision(None) if precision == "auto" else precision
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    measured = peak.measure_peak(precision, seconds=2, on_cpu=not on_gpu)
    tflops = cast(float, measured) / 1e12  # only a TPU is not measured
    if on_gpu:
        return Device("GPU", tflops, True, gpu_memory(ask_driver()))
    return Device("CPU", tflops, True, total)


def suggest_config(
    data: str | Path, config: PretrainingConfig, out: str | Path | None = None
) -> PretrainingConfig:
    """Completes the settings of a run with a time budget by a model that suits time and records.

    The model, its optimizer and its batches are chosen as by `albert-keras plan` for this machine,
    whose speed is measured for two seconds. Settings that are given do not change.

    Args:
        data: str or Path. Folder of records.
        config: PretrainingConfig. It is returned unchanged if it names a model, has no
            `time_budget` or has stages, or if this machine trains on a TPU or on several devices.
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
    if not _trains_on_one_device(config.training.strategy):
        return config
    seconds = parse_duration(config.training.time_budget)
    hours = (max(seconds, _LEAST_SECONDS) + _RUN_START_SECONDS) / 3600
    device = this_device(precision=config.training.precision)
    plan = make_plan(PlanRequest(data=str(data), hours=hours), config.training, device)
    chosen = plan.chosen
    logger.info(
        "chosen for %s on this machine: %s, hidden size %d, batches of %d; expected masked-LM loss "
        "%.2f ± %.2f, as for English novels. `size` chooses another model.",
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


def _trains_on_one_device(strategy):
    import tensorflow as tf

    from albert_keras.training.strategy import find_tpu

    if strategy not in ("auto", "single"):
        return False
    return not find_tpu() and len(tf.config.list_physical_devices("GPU")) < 2


def _text_of(request):
    """Returns the Text and the size of the vocabulary."""
    tokenizer = None if request.tokenizer is None else Tokenizer.load(request.tokenizer)
    size = request.corpus_bytes
    if request.corpus:
        from data_pipeline.text.text_files import corpus_bytes

        size = corpus_bytes(request.corpus)
    if size < _LEAST_CORPUS_BYTES:
        language = request.language or "en"
        model = "albert-mini-en" if language == "en" else f"MODEL, one for `{language}`"
        raise InputError(
            "The corpus must have at least 1 MB of text for a model from random weights. Received: "
            f"{bytes_text(size)}. Add text, or continue with a trained model: "
            f"albert-keras pretrain --config continue --init-from {model}."
        )
    vocab_size = tokenizer.vocab_size if tokenizer else vocabulary_size(size)
    if not request.corpus:
        return text_of_size(size, vocab_size), vocab_size
    source = request.corpus, request.corpus_format
    text = examine_text(*source, vocab_size, tokenizer, request.language)
    return text, vocab_size if tokenizer else max(vocab_size, text.least_pieces)


def _text_of_records(info):
    copies, language = info.config.get("copies", 1), info.config.get("language", "en")
    tokens = round(info.num_records * info.max_seq_length * _RECORD_FILL / copies)
    return Text(math.nan, language, math.nan, tokens, "records that are there")


def _stage_of_records(info, given, on_gpu):
    """Returns the Stage of a run with these records throughout."""
    length = info.max_seq_length
    rate = given.mask_rate or min(MASK_RATE, info.max_predictions_per_seq / length)
    batch_size = max(1, (GPU_POSITIONS if on_gpu else POSITIONS) // length)
    if "batch_size" in given.model_fields_set:
        batch_size = given.batch_size
    return Stage(length, math.ceil(rate * length), 1.0, batch_size, round(rate, 3))


def _seconds_before(request, text, num_stages, copies):
    """Returns how long each part takes that comes before the training (dict of str -> float)."""
    parts = {}
    if request.data is None:
        if request.tokenizer is None:
            parts["vocabulary"] = (
                _START_SECONDS + min(text.num_bytes, _LARGE_CORPUS) / _VOCABULARY_RATE
            )
        build = text.num_bytes * (1 / _BUILD_RATE + (copies - 1) / _COPY_RATE)
        parts["records"] = num_stages * (_START_SECONDS + build)
    return parts | {"start": float(_RUN_START_SECONDS)}


def _copies_for(passes: float) -> int:
    """Returns the copies of the text for so many passes over it: one for each, and at most ten."""
    return min(_MOST_COPIES, math.ceil(passes))
