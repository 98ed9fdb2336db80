"""The folder of a run: what it was told, what it made.

run.json            configuration, data, versions
albert_config.json  shape of the model
tokenizer/          copy of the data's tokenizer
log.jsonl           one line per report
checkpoints/        see `checkpoints.py`
tensorboard/        the log's numbers for TensorBoard
curves.png          loss and accuracies over steps
"""

import json
import platform
import shutil
from importlib import metadata
from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.training.checkpoints import CheckpointFolder
from data_pipeline.dataset_info import TOKENIZER_FOLDER
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_file
from data_pipeline.tokenization import Tokenizer

_PACKAGES = ("albert-keras", "tensorflow", "keras", "tensorflow-text", "tensorflow-addons", "numpy")
#: Settings of `training` that do not change what is computed.
_FREE_TO_CHANGE = (
    "strategy",
    "checkpoint_every",
    "keep_checkpoints",
    "report_every",
    "time_limit_seconds",
)


class Run:
    """A run on disk; `Run.open` reads one that is there, `Run.begin` makes or continues one.

    Args:
        path: Path. Folder of the run.
        record: dict. What `run.json` holds.
    """

    def __init__(self, path, record):
        self.path = Path(path)
        self.record = record

    @classmethod
    def open(cls, path):
        """Opens a run.

        Raises:
            InputError: If the folder holds no run.
        """
        path = Path(path)
        if not (path / "run.json").is_file():
            raise InputError(
                f"`{path}` is not the folder of a run: it has no run.json. "
                "Make one with `albert-keras pretrain --out`."
            )
        return cls(path, json.loads((path / "run.json").read_text(encoding="utf-8")))

    @classmethod
    def begin(cls, path, config, albert_config, data):
        """Makes the folder of a run, or opens it when the same command is given again.

        Args:
            path: str or Path.
            config: PretrainingConfig.
            albert_config: AlbertConfig.
            data: RecordFiles.

        Raises:
            InputError: If the folder holds another run, or other things.
        """
        path = Path(path)
        record = {
            "config": config.model_dump(mode="json"),
            "albert_config": albert_config.to_dict(),
            "data": {
                "path": str(data.folder.absolute()),
                "fingerprint": data.info.fingerprint,
                "max_seq_length": data.info.max_seq_length,
            },
            "tokenizer_digest": data.info.tokenizer_digest,
            "versions": {name: _version(name) for name in _PACKAGES}
            | {"python": platform.python_version()},
        }
        if (path / "run.json").is_file():
            run = cls.open(path)
            run._refuse_changes(record)
            return run
        check_output_folder(path)
        path.mkdir(parents=True, exist_ok=True)
        albert_config.save(path / "albert_config.json")
        if (data.folder / TOKENIZER_FOLDER).is_dir():
            shutil.copytree(data.folder / TOKENIZER_FOLDER, path / TOKENIZER_FOLDER)
        with whole_file(path / "run.json") as temporary:
            temporary.write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
        return cls(path, record)

    @property
    def albert_config(self):
        """AlbertConfig of the run's model."""
        return AlbertConfig.from_json_file(self.path / "albert_config.json")

    @property
    def checkpoints(self):
        """CheckpointFolder of the run."""
        return CheckpointFolder(
            self.path / "checkpoints", self.record["config"]["training"]["keep_checkpoints"]
        )

    @property
    def tokenizer(self):
        """Tokenizer of the run's data.

        Raises:
            InputError: If the run was trained on records without one.
        """
        return Tokenizer.load(self.path / TOKENIZER_FOLDER)

    def _refuse_changes(self, record):
        """A run goes on only as what it was begun; where it runs may change."""
        free = {f"config.training.{key}" for key in _FREE_TO_CHANGE}
        old, new = _flat(self.record), _flat(record)
        changed = [
            f"{key}: {old.get(key)!r} then, {new.get(key)!r} now"
            for key in sorted(old.keys() | new.keys())
            if old.get(key) != new.get(key)
            and key not in free
            and key != "data.path"
            and not key.startswith("versions.")
        ]
        if changed:
            listing = "\n  ".join(changed)
            raise InputError(
                f"`{self.path}` holds a run begun with other settings:\n  {listing}\n"
                "Give the same command to go on with it, or choose another --out."
            )


def _flat(tree, path=""):
    if not isinstance(tree, dict):
        return {path: tree}
    items = (_flat(value, f"{path}.{key}" if path else key) for key, value in tree.items())
    return {key: value for item in items for key, value in item.items()}


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
