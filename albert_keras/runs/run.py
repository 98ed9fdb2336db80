"""The folder of a run: its settings and its results.

run.json            configuration, data and versions
albert_config.json  shape of the model
model.json          class and settings of the model, see `model_record.py`
tokenizer/          copy of the data's tokenizer
trained_on/         digests of the training data, see `trained_data.py`
log.jsonl           one line per report
checkpoints/        see `checkpoints.py`
tensorboard/        the log's numbers for TensorBoard
"""

import contextlib
import errno
import functools
import json
from collections.abc import Callable
from pathlib import Path

import keras

from albert_keras.config import AlbertConfig, check_same_shape
from albert_keras.report import shortened
from albert_keras.runs.checkpoints import CheckpointFolder, read_state
from albert_keras.runs.model_record import ModelRecord, record_of
from albert_keras.runs.run_record import (
    check_tokenizer,
    command_of,
    describe_program,
    find_changes,
    read_record,
)
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_output_folder, whole_folder, write_json
from data_pipeline.folder_lock import FolderLock
from data_pipeline.limits import reading_json, with_digest
from data_pipeline.settings import Settings
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER

_RECORD = "run.json"
_SHAPE = "albert_config.json"
MODEL = "model.json"


class Run:
    """A run on disk: `Run.open` opens an existing one, `Run.prepare` is for training."""

    def __init__(self, path: Path, record: dict):
        self.path = path
        self.record = record  # content of `run.json`
        self._write: Callable[[], None] | None = None  # see `write`
        self._checkpoints = CheckpointFolder(path / "checkpoints")

    @classmethod
    def open(cls, path):
        """Opens an existing run.

        Raises:
            InputError: If the folder contains no run, or `run.json` or the tokenizer was damaged
                or edited.
        """
        path = Path(path)
        if not (path / _RECORD).is_file():
            raise InputError(
                f"`{path}` is not the folder of a run: it has no run.json. "
                "Create one with `albert-keras pretrain`."
            )
        record = read_record(path / _RECORD)
        if (path / _SHAPE).is_file():
            shape, recorded = (
                AlbertConfig.from_json_file(path / _SHAPE),
                AlbertConfig.from_dict(record["albert_config"]),
            )
            check_same_shape(
                {f"`{path / _RECORD}`": recorded, f"`{path / _SHAPE}`": shape}, f"`{path}`"
            )
        check_tokenizer(
            path / TOKENIZER_FOLDER,
            record["tokenizer_digest"],
            source="run.json",
            repair=f"Remove that folder and repeat the `{command_of(record)}` command, which "
            "writes it again.",
        )
        return cls(path, record)

    @classmethod
    def prepare(
        cls,
        path: str | Path,
        config: Settings,  # PretrainingConfig or FinetuneConfig
        albert_config: AlbertConfig,
        source,
        lock: FolderLock | None = None,
    ) -> "Run":
        """Returns the run that a command creates or resumes, of which `write` saves the changes.

        Args:
            source: RecordSource, or another class with its methods.
            lock: FolderLock of the folder, which is taken before anything is changed; None if the
                caller has locked it.

        Raises:
            InputError: If the folder contains a different run or other files, or another process
                trains there; and as `open`.
        """
        path = Path(path)
        record = {
            "kind": source.kind,
            "config": config.model_dump(mode="json"),
            "albert_config": albert_config.to_dict(),
            "data": source.describe(),
            "tokenizer_digest": source.tokenizer_digest,
        } | describe_program()
        record = json.loads(json.dumps(record))
        source.check_tokenizer()
        if (path / _RECORD).is_file():
            if lock is not None:
                lock.take()
            run = cls.open(path)
            run._check_same(record)
            run._write = functools.partial(run._rewrite, run.record, source)
            run.record = record
            return run
        check_output_folder(path)
        run = cls(path, record)
        run._write = functools.partial(run._create, source, lock)
        return run

    def write(self):
        """Saves what `prepare` has changed; later calls do nothing.

        Call it once weights and state have been loaded: a run whose checkpoints do not fit its
        `run.json` is lost to every command.
        """
        if self._write is not None:
            self._write()
            self._write = None

    def _create(self, source, lock):
        path = self.path
        # An existing folder may be a mount point, which cannot be replaced.
        is_mounted = path.is_dir()
        try:
            with contextlib.nullcontext(path) if is_mounted else whole_folder(path) as folder:
                if lock is not None:
                    lock.take(folder)
                self._write_missing(folder, source)
                self._write_record(folder)
        except OSError as error:
            if lock is not None and error.errno in (errno.ENOTEMPTY, errno.EEXIST):
                raise lock.refusal() from error  # another process was faster
            raise

    def _rewrite(self, old, source):
        if self.record | {"command": None} != old | {"command": None}:
            self._write_record(self.path)
        self._write_missing(self.path, source)

    def save_model(self, model: keras.Model):
        """Saves the class and the settings of a model, with which `open_weights` builds it."""
        write_json(self.path / MODEL, with_digest(record_of(model)))

    def model_record(self) -> ModelRecord | None:
        """Reads what `save_model` saved; None without, InputError if it is damaged."""
        path = self.path / MODEL
        if not path.is_file():
            return None
        with reading_json(path) as content:
            return ModelRecord.of_json(content, path)

    def trained_length(self, checkpoint: Path, step: int) -> int | None:
        """Returns the longest sequence that a checkpoint of this run has seen, if that is known.

        It raises InputError if the state in the folder of the checkpoint is damaged.
        """
        data = self.record["data"]
        stage = read_state(checkpoint, step).get("stages", {}) if "stages" in data else {}
        return stage.get("max_seq_length", data.get("max_seq_length"))

    @property
    def kind(self) -> str:
        """Either "pretraining" or "finetuning"."""
        return self.record["kind"]

    @property
    def albert_config(self) -> AlbertConfig:
        return AlbertConfig.from_dict(self.record["albert_config"])

    @property
    def checkpoints(self) -> CheckpointFolder:
        """Always the same object, which remembers damaged checkpoints."""
        self._checkpoints.keep = self.record["config"]["training"]["keep_checkpoints"]
        return self._checkpoints

    @property
    def tokenizer(self) -> Tokenizer:
        """Tokenizer of the run's data."""
        return Tokenizer.load(self.path / TOKENIZER_FOLDER)

    def _check_same(self, record):
        """Raises InputError if a new call would make it a different run."""
        if self.kind != record["kind"]:
            raise InputError(
                f"`{self.path}` contains a {self.kind} run, not a {record['kind']} run. Choose "
                "another `out`."
            )
        changes = find_changes(self.record, record)
        if changes:
            listing = "\n  ".join(
                f"{key}: was {shortened(repr(old), 60)}, is now {shortened(repr(new), 60)}"
                for key, (old, new) in changes.items()
            )
            raise InputError(
                f"`{self.path}` was started with other settings or data:\n  {listing}\n"
                "To resume it, give the original settings. To start a new run, choose another "
                "`out`.",
                Mistake.OTHER_SETTINGS,
            )

    def _write_record(self, folder):
        write_json(folder / _RECORD, with_digest(self.record))

    def _write_missing(self, folder, source):
        if not (folder / _SHAPE).is_file():
            self.albert_config.save(folder / _SHAPE)
        copy = folder / TOKENIZER_FOLDER
        if not copy.is_dir():
            with whole_folder(copy) as temporary:
                source.save_tokenizer(temporary)
