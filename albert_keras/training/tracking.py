"""Sends the reports of a run to MLflow or Weights & Biases, packages that a run may ask for.

Nothing leaves this machine unless an environment variable of the tracker says where to. Each call
of a resumed run is a tracked run of its own. TensorBoard's files are a part of every run.
"""

import importlib.util
import logging
import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from data_pipeline.errors import InputError, Mistake

logger = logging.getLogger(__name__)

#: Values of `training.track`. The first one is what every run writes.
TRACKERS = ("tensorboard", "mlflow", "wandb")


def check_tracker(name: str) -> None:
    """Raises InputError if the package of a tracker, one of `TRACKERS`, is not installed."""
    if name != TRACKERS[0] and importlib.util.find_spec(name) is None:
        raise InputError(
            f"`track={name}` requires the package {name}, which is not installed. Install it "
            "with `pip install 'albert-keras[track]'`, or omit `track`.",
            Mistake.EXTRA_MISSING,
        )


def open_tracker(name: str, folder: Path, settings: dict[str, Any]) -> Callable | None:
    """Opens a tracked run for the run in `folder`, with settings by dotted key.

    Returns:
        Function that sends a line of the log, or for None ends the tracked run; it warns once if
        the tracker fails, and does nothing from then on. None for TensorBoard.
    """
    check_tracker(name)
    shown = {key: str(value)[:250] for key, value in settings.items()}  # MLflow refuses more
    if name == "mlflow":
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        address = os.environ.get("MLFLOW_TRACKING_URI")
        if not address:  # newer versions refuse stores of files unless this is set
            os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
            address = (folder / "mlruns").absolute().as_uri()
        import mlflow

        mlflow.set_tracking_uri(address)
        mlflow.start_run(run_name=folder.name)
        mlflow.log_params(shown)
        log, end = mlflow.log_metrics, mlflow.end_run
    elif name == "wandb":
        os.environ.setdefault("WANDB_MODE", "offline")
        os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        os.environ.setdefault("WANDB_PROJECT", "albert-keras")
        import wandb

        quiet = wandb.Settings(console="off", silent=True, save_code=False)
        run = wandb.init(name=folder.name, dir=str(folder), config=shown, settings=quiet)
        log, end = run.log, run.finish
    else:
        return None
    works = True

    def send(line):
        nonlocal works
        try:
            if works and line is None:
                end()
            elif works:
                numbers = {key: value for key, value in line.items() if isinstance(value, float)}
                log({key: x for key, x in numbers.items() if math.isfinite(x)}, step=line["step"])
        except Exception as error:  # each tracker has errors of its own
            works = False
            logger.warning("`track=%s` failed; training continues without it: %s", name, error)

    return send
