"""Settings for a run that has records and a time budget, but no model yet."""

import logging
import math
from pathlib import Path
from typing import Any

from albert_keras.models.weight_count import model_line
from albert_keras.planning.candidates import BudgetRequest, candidates_for, choose_candidate
from albert_keras.planning.devices import measured_tflops
from albert_keras.planning.ladder import CPU_POSITIONS, MASK_RATE, Stage, run_settings
from albert_keras.runs.run_record import read_record
from albert_keras.training.config import PretrainingConfig
from data_pipeline.progress import format_duration, parse_duration
from data_pipeline.records.dataset_info import DatasetInfo

logger = logging.getLogger(__name__)


def suggest_config(
    data: str | Path, config: PretrainingConfig, out: str | Path | None = None
) -> PretrainingConfig:
    """Completes the settings of a run with a time budget by a model that suits time and records.

    The model, its optimizer and its batches are chosen as by `albert-keras plan --hours` for this
    machine, whose speed is measured for two seconds. Settings that are given do not change.

    Args:
        data: str or Path. Folder of records.
        config: PretrainingConfig. It is returned unchanged if it names a model, has no
            `time_budget` or has stages, or if this machine does not train on a single CPU.
        out: str, Path or None. Folder of the run. If the run exists, its settings are used.

    Returns:
        PretrainingConfig.

    Raises:
        InputError: If the records or the run cannot be read.
    """
    if not _is_open(config):
        return config
    run_file = None if out is None else Path(out) / "run.json"
    if run_file is not None and run_file.is_file():
        return completed(config, read_record(run_file)["config"])
    info = DatasetInfo.read(data)
    if not _trains_on_one_cpu(config.training.strategy):
        return config
    seconds = parse_duration(config.training.time_budget)
    stage = _stage_of(info, config)
    request = BudgetRequest(
        seconds=seconds, corpus_bytes=0, tflops=measured_tflops(_precision(config), on_cpu=True)
    )
    chosen = choose_candidate(
        candidates_for(request, (stage,), info.vocab_size, _text_positions(info), seconds)
    )
    settings = run_settings(chosen.rung, chosen.steps, (stage,), **chosen.training)
    if not _has_dynamic_masks(info, config):
        del settings["training"]["mask_rate"]
    expected = chosen.expected
    logger.info(
        "chosen for %s on this machine: %s, hidden size %d, batches of %d; expected masked-LM loss "
        "%.2f ± %.2f, as for English novels. --size chooses another model.",
        format_duration(seconds),
        model_line(chosen.rung.config(info.vocab_size)),
        chosen.rung.hidden_size,
        stage.batch_size,
        expected.loss,
        expected.error,
    )
    return completed(config, settings)


def completed(config: PretrainingConfig, settings: dict[str, Any]) -> PretrainingConfig:
    """Fills in what a configuration that leaves the model open lacks, and returns the result.

    Args:
        config: PretrainingConfig. It is returned unchanged if it does not leave the model open.
        settings: dict of section -> dict. What to fill in, such as the settings of the run that is
            to be resumed.
    """
    if not _is_open(config):
        return config
    given = config.model_dump(exclude_unset=True)
    training = settings["training"] | given.get("training", {})
    # The settings of an optimizer belong together: a given one replaces the suggested one.
    return PretrainingConfig.of(settings | given | {"training": training})


def _is_open(config):
    given = config.model_fields_set
    return not {"model", "stages"} & given and config.training.time_budget is not None


def _trains_on_one_cpu(strategy):
    import tensorflow as tf

    from albert_keras.training.distributed.strategy import find_tpu

    if strategy not in ("auto", "single"):
        return False
    return not find_tpu() and not tf.config.list_physical_devices("GPU")


def _has_dynamic_masks(info, config):
    return not info.static_masks or config.training.masks == "dynamic"


def _stage_of(info, config):
    """Returns the Stage of a run with these records throughout."""
    length, training = info.max_seq_length, config.training
    is_given = "batch_size" in training.model_fields_set
    rate = training.mask_rate or min(MASK_RATE, info.max_predictions_per_seq / length)
    return Stage(
        max_seq_length=length,
        max_predictions_per_seq=math.ceil(rate * length),
        share=1.0,
        batch_size=training.batch_size if is_given else max(1, CPU_POSITIONS // length),
        mask_rate=round(rate, 3),
    )


def _text_positions(info):
    """Returns the positions of one copy of the text."""
    return info.num_records * info.max_seq_length / info.config.get("copies", 1)


def _precision(config):
    from albert_keras.training.distributed.strategy import choose_precision

    precision = config.training.precision
    return choose_precision(None) if precision == "auto" else precision
