"""Checkpoints under the tensor names of google-research/albert, whole or not at all.

`<run>/checkpoints/step-00000500/` holds
model.ckpt.*  a checkpoint that TensorFlow 1 and 2 read, prefix `model.ckpt`: each weight under its
              name, its two moments as `<name>/adam_m` and `<name>/adam_v`, `global_step`, and what
              else the step needs
state.json    what the program needs besides: `state`, as the caller gave it, and `score`
digests.json  `step`, and of each other file SHA-256 and size; written last: a folder without it is
              not a checkpoint
"""

import contextlib
import errno
import json
import logging
import math
import os
import re
import shutil
from pathlib import Path

import numpy as np
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of, whole_folder

logger = logging.getLogger(__name__)

_PREFIX = "model.ckpt"
_STATE = "state.json"
_DIGESTS = "digests.json"
_SLOTS = {"m": "adam_m", "v": "adam_v"}
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
            damage = _damage(self._folder(step), step)
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
        with _naming(folder):
            self._tidy()
            try:
                with whole_folder(folder) as temporary:
                    _write_tensors(temporary / _PREFIX, tensors)
                    (temporary / _STATE).write_text(state, encoding="utf-8")
                    _write_digests(temporary, step)
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
        damage = _damage(folder, step)
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


def load_weights(prefix, variables):
    """Assigns the tensors of a checkpoint to variables, all or none.

    Args:
        prefix: str. As TensorFlow's checkpoint readers take it.
        variables: dict of tensor name -> variable.

    Raises:
        InputError: With all tensors that are missing or have another shape or type.
    """
    try:
        reader = tf.train.load_checkpoint(prefix)
        shapes, types = reader.get_variable_to_shape_map(), reader.get_variable_to_dtype_map()
        problems = []
        for name, variable in variables.items():
            if list(variable.shape) != shapes.get(name):
                found = shapes.get(name, "nothing")
                problems.append(f"{name}: {list(variable.shape)} wanted, {found} found")
            elif variable.dtype.base_dtype != types[name]:
                wanted, found = variable.dtype.base_dtype.name, types[name].name
                problems.append(f"{name}: {wanted} wanted, {found} found")
        if problems:
            listing = "\n  ".join(problems)
            raise InputError(f"`{prefix}` does not fit the model:\n  {listing}")
        values = {name: reader.get_tensor(name) for name in variables}
    except (tf.errors.OpError, ValueError) as error:
        if isinstance(error, InputError):
            raise
        raise InputError(f"`{prefix}` cannot be read: {error}") from error
    for name, variable in variables.items():
        variable.assign(values[name])


def weight_names(model):
    """Names a model's weights as checkpoints do: dict of name -> variable."""
    return {variable.name.split(":")[0]: variable for variable in model.weights}


def training_variables(model, optimizer=None):
    """Names a model's weights, and their moments if there is an optimizer, as checkpoints do.

    Args:
        model: keras.Model.
        optimizer: keras.optimizers.legacy.Optimizer or None. Its slots have to be there already.

    Returns:
        dict of tensor name -> variable.
    """
    weights = weight_names(model)
    variables = dict(weights)
    for name, variable in weights.items() if optimizer is not None else ():
        if variable.trainable:
            for slot, suffix in _SLOTS.items():
                variables[f"{name}/{suffix}"] = optimizer.get_slot(variable, slot)
    return variables


def read_variables(variables):
    """Reads the values of variables: dict of name -> array.

    With several workers all of them have to call this, even if one alone saves: a variable that
    each keeps for itself, such as a metric's, is summed over them.
    """
    return {
        name: variable.numpy() if hasattr(variable, "numpy") else np.asarray(variable)
        for name, variable in variables.items()
    }


def _write_tensors(prefix, tensors):
    try:
        with tf.device("CPU:0"):  # where else there is a GPU, all would be copied there and back
            tf.raw_ops.SaveV2(
                prefix=os.fspath(prefix),
                tensor_names=list(tensors),
                shape_and_slices=[""] * len(tensors),
                tensors=list(tensors.values()),
            )
    except tf.errors.OpError as error:
        # TensorFlow passes on the words of the operating system, and not its number.
        for number in errno.errorcode:
            if f"; {os.strerror(number)}" in error.message:
                raise OSError(number, os.strerror(number), os.fspath(prefix)) from error
        raise


def _write_digests(folder, step):
    files = {}
    for path in sorted(folder.iterdir()):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        files[path.name] = {"sha256": sha256_of(path), "bytes": path.stat().st_size}
    text = json.dumps({"step": step, "files": files}, indent=2) + "\n"
    (folder / _DIGESTS).write_text(text, encoding="utf-8")


def _damage(folder, step, only=None):
    """Says what is wrong with the files of a checkpoint; None if they are what was saved.

    Args:
        folder: Path.
        step: int.
        only: str or None. The one file to look at besides the digests; None looks at all.
    """
    try:
        digests = json.loads((folder / _DIGESTS).read_text(encoding="utf-8"))
        saved_step = digests["step"]
        saved = {name: (file["bytes"], file["sha256"]) for name, file in digests["files"].items()}
    except FileNotFoundError:
        return f"it has no `{_DIGESTS}`"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"`{_DIGESTS}` cannot be read ({error})"
    if saved_step != step:
        return f"`{_DIGESTS}` is of step {saved_step}"
    for name in saved if only is None else [only]:
        try:
            saved_size, saved_digest = saved[name]
            size = (folder / name).stat().st_size
            if size != saved_size:
                return f"`{name}` has {size} bytes, {saved_size} were saved"
            digest = sha256_of(folder / name)
        except KeyError:
            return f"`{_DIGESTS}` does not have `{name}`"
        except OSError as error:
            return f"`{name}` cannot be read ({error.strerror})"
        if digest != saved_digest:
            return f"`{name}` has SHA-256 {digest}, {saved_digest} was saved"
    return None


def _score(folder, step):
    damage = _damage(folder, step, only=_STATE)
    if damage is not None:
        logger.warning("checkpoint `%s` is damaged: %s; its score does not count", folder, damage)
        return None
    return json.loads((folder / _STATE).read_text(encoding="utf-8"))["score"]


def _is_finished(folder):
    return (folder / _DIGESTS).is_file()


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


@contextlib.contextmanager
def _naming(path):
    """Lets each OSError of the block say which file or folder it is about."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise
