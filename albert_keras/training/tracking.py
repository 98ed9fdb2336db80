"""Trackers of experiments, to which the log of a run can be sent: MLflow and Weights & Biases.

They are optional packages (`pip install 'albert-keras[track]'`), imported only for a run that asks
for one. TensorBoard needs no tracker: its files are part of every run. Nothing leaves this machine
unless an environment variable of the tracker says where to.
"""

import importlib.util
import os
import time
from pathlib import Path
from typing import Any, Protocol

from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import write_json
from data_pipeline.limits import reading_json

#: Values of `training.track`. The first one is what every run writes.
TRACKERS = ("tensorboard", "mlflow", "wandb")

#: The tracked runs of a run, beside `run.json`: {tracker: {"id": ..., "step": ...}}.
TRACKING = "tracking.json"

_NAMES = {"mlflow": "MLflow", "wandb": "Weights & Biases"}
#: Experiment of MLflow and project of Weights & Biases, unless the environment names another.
_PROJECT = "albert-keras"
#: Longest value of a setting, in characters. MLflow refuses longer ones.
_LONGEST_VALUE = 250


class Tracker(Protocol):
    """A run as a tracker knows it; opened again by its `id`, it is continued."""

    id: str
    where: str  # how to look at it

    def log(self, step: int, values: dict[str, float]) -> None:
        """Sends numbers of a step."""

    def close(self, is_complete: bool) -> None:
        """Ends the tracked run: complete, or interrupted and perhaps resumed later."""


def check_tracker(name: str) -> None:
    """Raises InputError if the package of a tracker, one of `TRACKERS`, is not installed."""
    if name != TRACKERS[0] and importlib.util.find_spec(name) is None:
        raise InputError(
            f"`--track {name}` requires {_NAMES[name]}, which is not installed. Install it with "
            "`pip install 'albert-keras[track]'`, or omit `--track`.",
            Mistake.EXTRA_MISSING,
        )


def open_tracker(
    name: str, folder: Path, store: Path, title: str, settings: dict[str, Any]
) -> Tracker:
    """Opens the tracked run of the run in `folder`, or creates one.

    Args:
        name: "mlflow" or "wandb".
        folder: The folder of the run. `TRACKING` there names the tracked run to continue.
        store: Folder for what the tracker keeps on this machine.
        title: Name of the run for people.
        settings: Settings by dotted key.

    Raises:
        InputError: If the package is not installed, or the tracker refuses to start.
    """
    check_tracker(name)
    known = read_tracking(folder).get(name, {}).get("id")
    shown = {key: str(value)[:_LONGEST_VALUE] for key, value in settings.items()}
    try:
        return _TRACKERS[name](known, store, title, shown)
    except InputError:
        raise
    except Exception as error:  # each tracker has errors of its own
        which = f"the tracked run `{known}` of `{folder}`" if known else f"a run for `{folder}`"
        raise InputError(
            f"{_NAMES[name]} could not open {which}: {type(error).__name__}: {error}. Check its "
            f"settings in the environment, remove `{folder / TRACKING}` to begin another tracked "
            "run, or omit `--track`."
        ) from error


def read_tracking(folder: Path) -> dict[str, dict[str, Any]]:
    """Reads the tracked runs of a run: dict of tracker -> `id` and the last `step` sent."""
    path = folder / TRACKING
    if not path.is_file():
        return {}
    with reading_json(path, "Remove it to begin another tracked run.") as found:
        return {
            name: {"id": str(one["id"]), "step": int(one["step"])} for name, one in found.items()
        }


def save_tracking(folder: Path, name: str, tracked_id: str, step: int) -> None:
    """Notes that the lines of the log up to a step were sent to a tracker."""
    found = read_tracking(folder) | {name: {"id": tracked_id, "step": step}}
    write_json(folder / TRACKING, found)


class _MLflow:
    """A run in `MLFLOW_TRACKING_URI`, or by default in files below the folder of the run."""

    def __init__(self, known, store, title, settings):
        os.environ.setdefault("MLFLOW_DISABLE_TELEMETRY", "true")
        address = os.environ.get("MLFLOW_TRACKING_URI")
        if not address:
            # Newer versions refuse stores of files, which need no server and no other packages.
            os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"
            address = (store / "mlruns").absolute().as_uri()
        from mlflow import MlflowClient
        from mlflow.entities import Metric, Param

        self._metric = Metric
        self._client = MlflowClient(tracking_uri=address)
        if known is not None:
            self.id = self._client.get_run(known).info.run_id
            self._client.update_run(self.id, status="RUNNING")
        else:
            name = os.environ.get("MLFLOW_EXPERIMENT_NAME", _PROJECT)
            experiment = self._client.get_experiment_by_name(name)
            number = (
                experiment.experiment_id if experiment else self._client.create_experiment(name)
            )
            self.id = self._client.create_run(number, run_name=title).info.run_id
            params = [Param(key, value) for key, value in settings.items()]
            for first in range(0, len(params), 100):  # the most that a server accepts at once
                self._client.log_batch(self.id, params=params[first : first + 100])
        self.where = f"mlflow ui --backend-store-uri {address}"

    def log(self, step, values):
        now = int(time.time() * 1000)
        metrics = [self._metric(name, value, now, step) for name, value in values.items()]
        self._client.log_batch(self.id, metrics=metrics)

    def close(self, is_complete):
        self._client.set_terminated(self.id, "FINISHED" if is_complete else "KILLED")


class _WeightsAndBiases:
    """A run in files below the folder of the run; `WANDB_MODE=online` sends it while it grows."""

    def __init__(self, known, store, title, settings):
        mode = os.environ.get("WANDB_MODE", "offline")
        if mode != "online":
            os.environ.setdefault("WANDB_ERROR_REPORTING", "false")
        import wandb

        if mode == "online" and not wandb.api.api_key:
            raise InputError(
                "WANDB_MODE=online requires that you are logged in to Weights & Biases. Use "
                "`wandb login`, or `unset WANDB_MODE` to keep the run on this machine."
            )
        self._run = wandb.init(
            project=os.environ.get("WANDB_PROJECT", _PROJECT),
            id=known,
            resume="allow" if mode == "online" else None,  # offline, `wandb sync` joins the parts
            name=title,
            dir=str(store),
            config=settings,
            mode=mode,
            settings=wandb.Settings(
                console="off", silent=True, save_code=False, disable_code=True, disable_git=True
            ),
        )
        self.id = self._run.id
        # Steps may repeat after an interruption, which its own counter does not allow.
        self._run.define_metric("*", step_metric="step")
        folder = store / "wandb"
        self.where = f"wandb sync --append {folder}/offline-run-*-{self.id}"
        if mode == "online":
            self.where = str(self._run.url)

    def log(self, step, values):
        self._run.log(values | {"step": step})

    def close(self, is_complete):
        self._run.finish(exit_code=0 if is_complete else 1)


_TRACKERS = {"mlflow": _MLflow, "wandb": _WeightsAndBiases}
