"""Checkpoints under the tensor names of google-research/albert, whole or not at all.

`<run>/checkpoints/step-00000500/` holds
model.ckpt.*  a checkpoint that TensorFlow 1 and 2 read, prefix `model.ckpt`: each weight under its
              name, its two moments as `<name>/adam_m` and `<name>/adam_v`, `global_step`, and what
              else the step needs
state.json    what the program needs besides: `state`, as the caller gave it, and `score`
digests.json  `step`, and of each other file SHA-256 and size; written last: a folder without it is
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

from albert_keras.interop.checkpoint_tensors import write_tensors
from albert_keras.runs.digests import DIGESTS, damage_of, write_digests
from albert_keras.runs.tensors import (
    load_weights,
    read_variables,
    training_variables,
)
from data_pipeline.errors import InputError
from data_pipeline.files import naming, whole_folder

logger = logging.getLogger(__name__)

_PREFIX = "model.ckpt"
_STATE = "state.json"
#: A checkpoint that is being replaced by another of the same step: it counts until that is there.
_REPLACED = ".replaced"
_FOLDER_NAME = re.compile(rf"step-(\d{{8,}})({re.escape(_REPLACED)})?")
_TEMPORARY_NAME = re.compile(r"\.step-.*\.tmp-(\d{1,9})")


class CheckpointFolder:
    """The checkpoints of one run; a single process may write to it at a time.

    Args:
        path: str or Path. Folder that holds one folder per checkpoint.
        keep: int. How many of the newest stay; the one with the best score always does.
    """

    def __init__(self, path, keep=3):
        self.path = Path(path)
        self.keep = keep
        self._passed_over = set()

    def steps(self):
        """Lists the steps that have a checkpoint, sound or damaged, ascending."""
        return sorted({step for step, folder in self._folders() if _is_finished(folder)})

    def prefix(self, step):
        """Returns the checkpoint's prefix, as TensorFlow's readers take it."""
        return str(self._folder(step) / _PREFIX)

    def latest(self):
        """Returns the newest step.

        Raises:
            InputError: If there is no checkpoint.
        """
        steps = self.steps()
        if not steps:
            raise InputError(f"`{self.path}` holds no checkpoint yet.")
        return steps[-1]

    def best(self):
        """Returns the step with the lowest score, the newest of equals; None if none has one."""
        steps = [step for step in reversed(self.steps()) if step not in self._passed_over]
        scores = {step: _score(self._folder(step), step) for step in steps}
        scores = {step: score for step, score in scores.items() if score is not None}
        return min(scores, key=scores.get, default=None)

    def newest_sound(self):
        """Finds the newest checkpoint whose files are what was saved; warns of each passed over.

        Returns:
            int. The step, or None if there is no checkpoint at all.

        Raises:
            InputError: If there are checkpoints and all of them are damaged.
        """
        sound, damaged = None, []
        for step in sorted({step for step, _ in self._folders()}, reverse=True):
            damage = damage_of(self._folder(step), step)
            if damage is None:
                sound = step
                break
            damaged.append((self._folder(step), damage))
            self._passed_over.add(step)
        if sound is None and any(_is_finished(folder) for folder, _ in damaged):
            listing = "\n  ".join(f"{folder.name}: {damage}" for folder, damage in damaged)
            raise InputError(f"All checkpoints in `{self.path}` are damaged:\n  {listing}")
        instead = "there is no other" if sound is None else f"step {sound} is taken instead"
        for folder, damage in damaged:
            logger.warning("checkpoint `%s` is damaged: %s; %s", folder, damage, instead)
        return sound

    def choose(self, step=None):
        """Returns the step that is meant (int).

        Args:
            step: int, "best" or None. None means the newest sound one.

        Raises:
            InputError: If there is no such checkpoint.
        """
        if step == "best":
            step = self.best()
            if step is None:
                raise InputError(f"`{self.path}` holds no checkpoint with a score.")
            return step
        if step is None:
            step = self.newest_sound()
            return self.latest() if step is None else step  # which says that there is none
        try:
            return int(step)
        except ValueError:
            raise InputError(f'A step should be a number or "best". Received: {step}.') from None

    def save(self, step, variables, state=None, score=None):
        """Writes a checkpoint, then drops old ones; one of the same step is replaced.

        Not counted as newest: those of later steps, which a run that saves an earlier one has gone
        back from, and those that `newest_sound` has passed over.

        Args:
            step: int.
            variables: dict of tensor name -> variable or array. Values on several workers have to
                be read by all of them, see `read_variables`.
            state: dict or None. JSON values to get back from `load`.
            score: float or None. Lower is better; one that is not finite does not count.

        Raises:
            OSError: If it cannot be written, with the path; earlier checkpoints are as before.
        """
        if score is not None and not math.isfinite(score):
            logger.warning("checkpoint of step %d: score %s does not count", step, score)
            score = None
        state = {"state": state or {}, "score": None if score is None else float(score)}
        state = json.dumps(state, indent=2) + "\n"
        tensors = read_variables(variables) | {"global_step": np.int64(step)}
        folder = self._named(step)
        replaced = self._named(step, _REPLACED)
        with naming(folder):
            self._tidy()
            try:
                with whole_folder(folder) as temporary:
                    write_tensors(temporary / _PREFIX, tensors)
                    (temporary / _STATE).write_text(state, encoding="utf-8")
                    write_digests(temporary, step)
                    if folder.exists():
                        os.replace(folder, replaced)
            except BaseException:
                if replaced.exists() and not folder.exists():
                    os.replace(replaced, folder)
                raise
        self._drop(step)

    def load(self, step, variables):
        """Assigns the tensors of a checkpoint to variables, all or none.

        Args:
            step: int.
            variables: dict of tensor name -> variable.

        Returns:
            dict. The state that was saved with it.

        Raises:
            InputError: If there is no such checkpoint, it is damaged, or a tensor is missing or has
                another shape or type.
        """
        folder = self._folder(step)
        if not folder.is_dir():
            listing = ", ".join(map(str, self.steps())) or "none"
            raise InputError(f"`{self.path}` has no checkpoint of step {step}. It has: {listing}.")
        damage = damage_of(folder, step)
        if damage is not None:
            raise InputError(f"Checkpoint `{folder}` is damaged: {damage}.")
        load_weights(str(folder / _PREFIX), variables)
        return json.loads((folder / _STATE).read_text(encoding="utf-8"))["state"]

    def restore(self, step, model, optimizer=None):
        """Reads a checkpoint into a model, and into its optimizer if one is given.

        Raises:
            InputError: As `load`.
        """
        self.load(step, training_variables(model, optimizer))
        if optimizer is not None:
            optimizer.iterations.assign(step)

    def _named(self, step, ending=""):
        return self.path / f"step-{step:08d}{ending}"

    def _folder(self, step):
        folder, replaced = self._named(step), self._named(step, _REPLACED)
        return replaced if not _is_finished(folder) and _is_finished(replaced) else folder

    def _folders(self):
        paths = self.path.iterdir() if self.path.is_dir() else []
        matches = ((_FOLDER_NAME.fullmatch(path.name), path) for path in paths)
        return [(int(match[1]), path) for match, path in matches if match]

    def _drop(self, saved):
        self._passed_over.discard(saved)
        steps, best = self.steps(), self.best()
        counted = [step for step in steps if step <= saved and step not in self._passed_over]
        oldest = counted[-self.keep :][0]
        for step in steps:
            if step < oldest and step != best:
                _remove(self._named(step))
        if self._named(saved, _REPLACED).exists():
            _remove(self._named(saved, _REPLACED))

    def _tidy(self):
        """Ends what killed processes began: writing, removing and replacing."""
        for path in self.path.glob(".step-*"):
            match = _TEMPORARY_NAME.fullmatch(path.name)
            if match and not _is_alive(int(match[1])):
                _remove(path)
        for step, path in self._folders():
            if path.name.endswith(_REPLACED):
                if _is_finished(self._named(step)):
                    _remove(path)
                    continue
                if self._named(step).exists():
                    _remove(self._named(step))
                os.replace(path, self._named(step))


def _score(folder, step):
    damage = damage_of(folder, step, only=_STATE)
    if damage is not None:
        logger.warning("checkpoint `%s` is damaged: %s; its score does not count", folder, damage)
        return None
    return json.loads((folder / _STATE).read_text(encoding="utf-8"))["score"]


def _is_finished(folder):
    return (folder / DIGESTS).is_file()


def _is_alive(process):
    """Whether a process is running, other than this one, which never saves twice at a time."""
    if process == os.getpid():
        return False
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        pass
    return True


def _remove(folder):
    """Removes a folder; under its own name it is there as a whole or not at all."""
    hidden = folder
    try:
        if not folder.name.startswith("."):
            hidden = folder.with_name(f".{folder.name}.tmp-{os.getpid()}")
            os.replace(folder, hidden)
        shutil.rmtree(hidden)
    except OSError as error:
        logger.warning("`%s` could not be removed: %s", folder, error)
