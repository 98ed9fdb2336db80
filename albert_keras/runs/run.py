"""The folder of a run: what it was told, what it made.

run.json            configuration, data, versions, and what was changed since
albert_config.json  shape of the model
tokenizer/          copy of the data's tokenizer
log.jsonl           one line per report
checkpoints/        see `checkpoints.py`
tensorboard/        the log's numbers for TensorBoard
curves.png          loss and accuracies over steps
"""

import contextlib
import json
import shutil
from datetime import datetime, timezone
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.runs.checkpoints import CheckpointFolder
from albert_keras.runs.provenance import describe_program
from albert_keras.runs.run_changes import check_overrides, find_changes, find_refused
from albert_keras.runs.run_files import check_shape, check_tokenizer, read_record
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_file, whole_folder
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer

_RECORD = "run.json"
_SHAPE = "albert_config.json"
_SEED = "config.training.seed"
#: Characters of a setting that are shown where it is refused.
_LONGEST_VALUE = 60


class Run:
    """A run on disk; `Run.open` reads one that is there, `Run.begin` makes or continues one.

    Args:
        path: Path. Folder of the run.
        record: dict. What `run.json` holds.

    Attributes:
        overridden: tuple of str. Keys that were allowed to change, and did, in this call.
    """

    def __init__(self, path, record):
        self.path = Path(path)
        self._checkpoints = CheckpointFolder(self.path / "checkpoints")
        self.record = record
        self.overridden = ()

    @classmethod
    def open(cls, path):
        """Opens a run.

        Raises:
            InputError: If the folder holds no run, or `run.json`, `albert_config.json` or the
                tokenizer were damaged or edited.
        """
        path = Path(path)
        if not (path / _RECORD).is_file():
            raise InputError(
                f"`{path}` is not the folder of a run: it has no run.json. "
                "Make one with `albert-keras pretrain --out`."
            )
        record = read_record(path / _RECORD)
        check_shape(path / _SHAPE, record)
        check_tokenizer(
            path / TOKENIZER_FOLDER,
            record["tokenizer_digest"],
            source="run.json",
            repair="Remove that folder and `pretrain` copies it again from the records.",
        )
        return cls(path, record)

    @classmethod
    def begin(cls, path, config, albert_config, source, allow_changes=()):
        """Makes the folder of a run, or opens it when the same command is given again.

        Args:
            path: str or Path.
            config: PretrainingConfig or FinetuneConfig.
            albert_config: AlbertConfig.
            source: RecordSource or another with its methods.
            allow_changes: iterable of str. Keys of `run.json` that may differ from those the run
                was begun with, such as "config.training.seed"; "data" stands for all below it. What
                changes is kept in `changes` of `run.json`.

        Raises:
            InputError: If the folder holds another run, or other things; if a key that may change
                is not known; and as `open`.
        """
        path = Path(path)
        allowed = (allow_changes,) if isinstance(allow_changes, str) else tuple(allow_changes)
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
            run = cls.open(path)
            run._go_on_as(record, allowed, config.defaults())
            run._write_missing(path, source)
            return run
        check_overrides(allowed, record)
        check_output_folder(path)
        run = cls(path, record)
        # A folder that is there may be one that cannot be replaced: where a disk is mounted.
        with contextlib.nullcontext(path) if path.is_dir() else whole_folder(path) as folder:
            run._write_missing(folder, source)
            run._write_record(folder)
        return run

    def check_kind(self, kind, command):
        """Raises InputError if a command (str), which takes runs of one kind, cannot take this."""
        if self.kind != kind:
            raise InputError(
                f"`{self.path}` holds a run of {self.kind}. `albert-keras {command}` takes those "
                f"of {kind}."
            )

    @property
    def kind(self):
        """str. What was done in it: "pretraining" or "finetuning"."""
        return self.record.get("kind", "pretraining")

    @property
    def albert_config(self):
        """AlbertConfig of the run's model."""
        return AlbertConfig.from_dict(self.record["albert_config"])

    @property
    def checkpoints(self):
        """CheckpointFolder of the run, always the same: it knows which ones it found damaged."""
        self._checkpoints.keep = self.record["config"]["training"]["keep_checkpoints"]
        return self._checkpoints

    @property
    def tokenizer(self):
        """Tokenizer of the run's data.

        Raises:
            InputError: If the run was trained on records without one.
        """
        return Tokenizer.load(self.path / TOKENIZER_FOLDER)

    @property
    def matched(self):
        """list of str. What is as it was when the run was begun."""
        config, data = self.record["config"], self.record["data"]
        tokenizer = self.record["tokenizer_digest"]
        changed = {key.split(".")[0] for key in self.overridden if key != _SEED}
        same = []
        if "data" not in changed:
            count = f" ({data['num_records']:,} records)" if "num_records" in data else ""
            same.append(f"data {data['fingerprint'][:8]}{count}")
        if tokenizer is not None and "tokenizer_digest" not in changed:
            same.append(f"tokenizer {tokenizer[:8]}")
        if "albert_config" not in changed:
            same.append(f"model {config['model'].get('size', '')}".strip())
        if _SEED not in self.overridden:
            same.append(f"seed {config['training']['seed']}")
        if "config" not in changed:
            same.append("settings")
        return same

    def banner(self):
        """Says in one line that a run goes on, and as what (str)."""
        *most, last = self.matched or ["nothing"]
        same = f"{', '.join(most)} and {last}" if most else last
        changed = f"; changed: {', '.join(self.overridden)}" if self.overridden else ""
        return f"going on with `{self.path}`: same {same}{changed}"

    def _go_on_as(self, record, allowed, defaults):
        """A run goes on only as what it was begun, but for what is free or allowed to change."""
        if self.kind != record["kind"]:
            raise InputError(
                f"`{self.path}` holds a run of {self.kind}, not of {record['kind']}. Choose "
                "another --out."
            )
        check_overrides(allowed, self.record, record)
        changes = find_changes(self.record, record, defaults)
        refused = find_refused(changes, allowed)
        if refused:
            listing = "\n  ".join(
                f"{key}: {_short(old)} then, {_short(new)} now (--allow-change {key})"
                for key, (old, new) in refused.items()
            )
            raise InputError(
                f"`{self.path}` holds a run begun with other settings:\n  {listing}\n"
                "Give the same command to go on with it, allow what should change, or choose "
                "another --out."
            )
        self.overridden = tuple(find_refused(changes))
        history = self.record.get("changes", [])
        if changes:
            steps = self.checkpoints.steps()
            entry = {
                "at_step": steps[-1] if steps else 0,
                "when": datetime.now(timezone.utc).isoformat(timespec="seconds"),
                "changes": {key: list(values) for key, values in changes.items()},
            }
            history = [*history, entry]
        current = self.record | record | ({"changes": history} if history else {})
        if current | {"command": None} == self.record | {"command": None}:
            return
        # A missing file is written again from the record; an old one would contradict it.
        if any(key.startswith("albert_config.") for key in self.overridden):
            (self.path / _SHAPE).unlink(missing_ok=True)
        if "tokenizer_digest" in self.overridden:
            shutil.rmtree(self.path / TOKENIZER_FOLDER, ignore_errors=True)
        self.record = current
        self._write_record(self.path)

    def _write_record(self, folder):
        with whole_file(folder / _RECORD) as temporary:
            temporary.write_text(json.dumps(self.record, indent=2) + "\n", encoding="utf-8")

    def _write_missing(self, folder, source):
        if not (folder / _SHAPE).is_file():
            self.albert_config.save(folder / _SHAPE)
        copy = folder / TOKENIZER_FOLDER
        if source.has_tokenizer and not copy.is_dir():
            with whole_folder(copy) as temporary:
                source.save_tokenizer(temporary)


def _short(value):
    text = repr(value)
    return text if len(text) <= _LONGEST_VALUE else f"{text[:_LONGEST_VALUE]}..."
