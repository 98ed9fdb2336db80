"""Checkpoints under the tensor names of google-research/albert, each written whole or not at all.

`<run>/checkpoints/step-00000500/` contains
model.ckpt.*  a checkpoint that TensorFlow 1 and 2 read, prefix `model.ckpt`: each weight under its
              name, its two moments as `<name>/adam_m` and `<name>/adam_v`, `global_step`, and what
              else the training step needs
state.json    further state: `state`, as the caller gave it, `score` and `scored_on`
digests.json  `step`, and SHA-256 and size of each other file; written last: a folder without it is
              not a checkpoint
"""

import json
import logging
import math
import os
import re
import shutil
from pathlib import Path

import numpy as np
import tensorflow as tf

from albert_keras.runs.tensors import (
    CheckpointTensors,
    assign_all,
    is_training_state,
    weight_names,
    write_tensors,
)
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import (
    DIGESTS,
    find_damage,
    fsync_folder,
    naming,
    whole_folder,
    write_digests,
)
from data_pipeline.limits import read_json

logger = logging.getLogger(__name__)

_PREFIX = "model.ckpt"
_STATE = "state.json"
#: Name in the state of the only checkpoint of a finished training: the number of its steps. The
#: checkpoint has the weights of the best step, and nothing to train on with.
FINISHED_AT = "finished_at"
#: Marks a checkpoint that is being replaced by another of the same step; it counts until then.
_REPLACED = ".replaced"
_FOLDER_NAME = re.compile(rf"step-(\d{{8,}})({re.escape(_REPLACED)})?")


class CheckpointFolder:
    """The checkpoints of one run, a folder each; a single process may write to it at a time.

    The `keep` newest checkpoints are kept, and the one with the best score.
    """

    def __init__(self, path: str | Path, keep: int = 3):
        self.path = Path(path)
        self.keep = keep
        self._skipped = set()

    def steps(self) -> list[int]:
        """Lists the steps that have a checkpoint, valid or damaged, ascending."""
        return sorted({step for step, folder in self._folders() if _is_finished(folder)})

    def prefix(self, step):
        """Returns the prefix of a checkpoint, as TensorFlow's readers take it; see `folder`."""
        return str(self.folder(step) / _PREFIX)

    def folder(self, step: int) -> Path:
        """Returns the folder of a checkpoint; raises InputError if there is none."""
        folder = self._folder(step)
        if not _is_finished(folder):
            listing = ", ".join(map(str, self.steps())) or "none"
            raise InputError(
                f"`{self.path.parent}` has no checkpoint of step {step}. It has: {listing}.",
                Mistake.NO_CHECKPOINT,
            )
        return folder

    def latest(self):
        """Returns the newest step; raises InputError if there is none."""
        steps = self.steps()
        if not steps:
            raise InputError(
                f"`{self.path}` contains no checkpoint: none was saved yet, or it is the random "
                "baseline of a finished fine-tuning (see `training.keep_optimizer_state`)."
            )
        return steps[-1]

    def best(self):
        """Returns the step with the lowest score, the newest of equals; None without scores.

        Only scores on the same data as the newest one are compared.
        """
        found = self._scores()
        newest = next((data for _, data in found.values()), None)
        scores = _on_data(found, newest)
        return min(scores, key=scores.get, default=None)

    def best_score(self, data: str) -> float | None:
        """Returns the lowest score on some data, see `save`; None without scores on it."""
        return min(_on_data(self._scores(), data).values(), default=None)

    def _scores(self):
        """Returns score and data of the steps that have a score, the newest first."""
        steps = [step for step in reversed(self.steps()) if step not in self._skipped]
        found = {step: _score(self._folder(step), step) for step in steps}
        return {step: score for step, score in found.items() if score[0] is not None}

    def newest_valid(self) -> int | None:
        """Finds the newest undamaged checkpoint; warns of each damaged one that it skips.

        It is None if there is no checkpoint at all; if all are damaged, InputError is raised.
        """
        valid, damaged = None, []
        for step in sorted({step for step, _ in self._folders()}, reverse=True):
            damage = find_damage(self._folder(step), step=step)
            if damage is None:
                valid = step
                break
            damaged.append((self._folder(step), damage))
            self._skipped.add(step)
        if valid is None and any(_is_finished(folder) for folder, _ in damaged):
            listing = "\n  ".join(f"{folder.name}: {damage}" for folder, damage in damaged)
            raise InputError(f"All checkpoints in `{self.path}` are damaged:\n  {listing}")
        instead = "there is no other" if valid is None else f"step {valid} is used instead"
        for folder, damage in damaged:
            logger.warning("checkpoint `%s` is damaged: %s; %s", folder, damage, instead)
        return valid

    def choose(self, step: int | str | None = None) -> int:
        """Returns the step of a checkpoint: as given, of the "best", or None for the newest valid.

        Raises:
            InputError: If there is no such checkpoint.
        """
        if step in (None, "best") and not self.steps():
            self.latest()  # raises the error
        if step == "best":
            step = self.best()
            if step is None:
                raise InputError(f"`{self.path}` contains no checkpoint with a score.")
            return step
        if step is None:
            return self.newest_valid()
        try:
            return int(step)
        except ValueError:
            raise InputError(f'A step must be a number or "best". Received: {step}.') from None

    def save(
        self,
        step: int,
        variables,
        state: dict | None = None,
        score: float | None = None,
        scored_on: str | None = None,
    ):
        """Writes a checkpoint, then removes old ones; one of the same step is replaced.

        Later steps, from which a run has gone back, and damaged checkpoints that `newest_valid`
        has skipped do not count among the newest.

        Args:
            variables: dict of tensor name -> variable or array. Each variable must have the same
                value on all workers, see `_state_variable` in `models/step_state.py`, so that the
                worker that saves can read it alone.
            state: JSON values that `load` returns.
            score: Lower is better; one that is not finite is ignored.
            scored_on: Names the data of the score; scores on other data are not compared with it.

        Raises:
            OSError: If it cannot be written, with the path; earlier checkpoints stay as they were.
        """
        score = None if score is None or not math.isfinite(score) else float(score)
        state = {"state": state or {}, "score": score, "scored_on": scored_on}
        state = json.dumps(state, indent=2) + "\n"
        tensors = {
            name: variable.numpy() if hasattr(variable, "numpy") else np.asarray(variable)
            for name, variable in variables.items()
        }
        tensors["global_step"] = np.int64(step)
        folder = self._named(step)
        replaced = self._named(step, _REPLACED)
        with naming(folder):
            self._tidy()
            try:
                with whole_folder(folder) as temporary:
                    write_tensors(temporary / _PREFIX, tensors)
                    (temporary / _STATE).write_text(state, encoding="utf-8")
                    fsync_folder(temporary)  # the digests say that all else is on the disk
                    members = {path.name: path for path in sorted(temporary.iterdir())}
                    write_digests(temporary, members, step=step)
                    if folder.exists():
                        os.replace(folder, replaced)
            except BaseException:
                if replaced.exists() and not folder.exists():
                    os.replace(replaced, folder)
                raise
        self._remove_old(step)

    def keep_weights(self, step: int, finished_at: int):
        """Leaves the weights of one checkpoint, without what only training needs.

        Args:
            finished_at: The number of steps of the training, which is at its end.
        """
        if self.steps() == [step] and FINISHED_AT in self.state(step):
            return
        tensors = CheckpointTensors(self.prefix(step))
        names = [name for name in tensors.shapes if not is_training_state(name)]
        self.save(
            step,
            {name: tensors.read(name) for name in names},
            self.state(self.latest()) | {FINISHED_AT: finished_at},
            *_score(self.folder(step), step),
        )
        for other in set(self.steps()) - {step}:
            _remove(self._named(other))

    def load(self, step: int, variables: dict[str, tf.Variable]) -> dict:
        """Assigns a checkpoint to variables, all or none, and returns the state saved with it.

        Raises:
            InputError: If there is no such checkpoint, it is damaged, or tensors are missing or
                have another shape or type; it names all of them.
        """
        check_undamaged(self.folder(step), step)
        prefix = self.prefix(step)
        assign_all(CheckpointTensors(prefix), variables, prefix)
        return self.state(step)

    def state(self, step: int) -> dict:
        """Reads the state that was saved with a checkpoint; raises InputError if it is damaged."""
        return read_state(self.folder(step), step)

    def restore(self, step: int, model):
        """Reads a checkpoint into a model; raises as `load`."""
        self.load(step, weight_names(model))

    def _named(self, step, ending=""):
        return self.path / f"step-{step:08d}{ending}"

    def _folder(self, step):
        folder, replaced = self._named(step), self._named(step, _REPLACED)
        return replaced if not _is_finished(folder) and _is_finished(replaced) else folder

    def _folders(self):
        paths = self.path.iterdir() if self.path.is_dir() else []
        matches = ((_FOLDER_NAME.fullmatch(path.name), path) for path in paths)
        return [(int(match[1]), path) for match, path in matches if match]

    def _remove_old(self, saved):
        self._skipped.discard(saved)
        steps, best = self.steps(), self.best()
        counted = [step for step in steps if step <= saved and step not in self._skipped]
        oldest = counted[-self.keep :][0]
        for step in steps:
            if step < oldest and step != best:
                _remove(self._named(step))
        if self._named(saved, _REPLACED).exists():
            _remove(self._named(saved, _REPLACED))

    def _tidy(self):
        """Cleans up after killed processes that were writing, removing or replacing."""
        for path in self.path.glob(".step-*.tmp-*"):
            _remove(path)
        for step, path in self._folders():
            if path.name.endswith(_REPLACED):
                if _is_finished(self._named(step)):
                    _remove(path)
                    continue
                if self._named(step).exists():
                    _remove(self._named(step))
                os.replace(path, self._named(step))


def read_state(folder: Path, step: int) -> dict:
    """Reads the state in the folder of a checkpoint; raises InputError if its file is damaged."""
    check_undamaged(folder, step, [_STATE])
    return read_json(folder / _STATE)["state"]


def check_undamaged(folder: Path, step: int, only: list[str] | None = None):
    """Raises InputError if the files of a checkpoint, or only some of them, are damaged."""
    damage = find_damage(folder, only, step=step)
    if damage is not None:
        raise InputError(f"Checkpoint `{folder}` is damaged: {damage}.")


def _on_data(scores, data):
    """Returns the scores on some data; None is data that never change in a run."""
    return {step: one for step, (one, on) in scores.items() if on == data}


def _score(folder, step):
    """Returns the score of a checkpoint and its data, None for each that is unknown."""
    damage = find_damage(folder, [_STATE], step=step)
    if damage is not None:
        logger.warning("checkpoint `%s` is damaged: %s; its score is ignored", folder, damage)
        return None, None
    state = read_json(folder / _STATE)
    return state["score"], state["scored_on"]


def _is_finished(folder):
    return (folder / DIGESTS).is_file()


def _remove(folder):
    """Removes a folder; it is renamed first, so that no part of it is left under its own name."""
    hidden = folder
    try:
        if not folder.name.startswith("."):
            hidden = folder.with_name(f".{folder.name}.tmp-{os.getpid()}")
            os.replace(folder, hidden)
        shutil.rmtree(hidden)
    except OSError as error:
        logger.warning("`%s` could not be removed: %s", folder, error)
