"""The content of `run.json`: what describes a run, how it is read, and what may change in it.

Keys are dotted here, as in `config.training.seed`.
"""

import fnmatch
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.limits import reading_json
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer

_PACKAGES = ("albert-keras", "tensorflow", "keras", "tensorflow-text", "numpy")
_CHECKOUT = Path(__file__).parents[2]

#: Entry `fingerprint` of a run that was converted, instead of the hash of training examples.
CONVERTED = "converted"
#: What must stay the same when a run is resumed. Most settings of the model are compared as part of
#: `albert_config`.
_COMPARED = (
    "config.training",
    "config.optimizer",
    "config.task",
    "config.model.head_dropout",
    "config.model.freeze_encoder",
    "config.model.layers",
    "config.model.combine",
    "config.distillation",
    "albert_config",
    "data.fingerprint",
    "data.dev_fingerprint",
    "data.origin_digest",
    "data.teacher_digest",
    "data.max_seq_length",
    "data.max_predictions_per_seq",
    "config.stages",
    "data.stages.*.fingerprint",
    "tokenizer_digest",
)
#: Settings that do not change the result. The data of a task or a stage are compared by content.
_FREE = tuple(
    f"config.training.{name}"
    for name in (
        "strategy",
        "compile",
        "accumulation_steps",
        "recompute",
        "padding",
        "steps_per_execution",
        "checkpoint_every",
        "keep_checkpoints",
        "keep_optimizer_state",
        "report_every",
        "evaluate_every",
        "epochs",  # follows from `steps`, which is compared
        "eval_batch_size",
    )
) + (
    "config.task.data_dir",
    "config.task.train",
    "config.task.dev",
    "config.stages.*.data",
)


def describe_program() -> dict:
    """Describes this process: versions, git commit and command."""
    versions = {name: _version(name) for name in _PACKAGES}
    return {
        "versions": versions | {"python": platform.python_version()},
        "git_commit": git_commit(),
        "command": list(sys.argv),
    }


def describe_records(records: RecordFiles) -> dict:
    """Describes a folder of records for `run.json`."""
    info = records.info
    is_split_by_language = info.config.get("splitter") == "sentencex"
    return {
        "path": str(records.folder.absolute()),
        "fingerprint": info.fingerprint,
        "num_records": len(records),
        "max_seq_length": info.max_seq_length,
        "max_predictions_per_seq": info.max_predictions_per_seq,
        "corpus_digest": info.corpus_digest,
        "builder_version": info.builder_version,
        "language": info.config.get("language") if is_split_by_language else None,
    }


def git_commit() -> str | None:
    """Returns the commit that is checked out; uncommitted changes are not detected.

    It is None if the parent of the package's folder is not a git repository itself, or git is not
    installed.
    """
    if not (_CHECKOUT / ".git").exists():
        return None
    command = ["git", "-c", "safe.directory=*", "-C", _CHECKOUT, "rev-parse", "HEAD"]
    try:
        return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def read_record(path: Path) -> dict:
    """Reads `run.json`; raises InputError if it is not JSON or a part is missing."""
    repair = "Restore it from a copy, or start another run with another `out`."
    with reading_json(path, repair) as record:
        for section in ("model", "training", "optimizer"):
            dict(record["config"][section])
        for name in ("seed", "keep_checkpoints"):
            int(record["config"]["training"][name])
        dict(record["albert_config"])
        str.encode(record["kind"])
        str.encode(record["data"]["fingerprint"])
        str.encode(record["tokenizer_digest"] or "")
        return record


def command_of(record: dict) -> str:
    """Returns the name of the command that made a run."""
    if record["data"].get("fingerprint") == CONVERTED:
        return "convert"
    if "distillation" in record["config"]:
        return "distill"
    return "finetune" if record["kind"] == "finetuning" else "pretrain"


def check_tokenizer(folder: Path, digest: str | None, source: str, repair: str):
    """Raises InputError if a folder exists and has another tokenizer than a known digest says.

    The message names the file that states the digest (`source`), and what to do (`repair`).
    """
    if digest is None or not folder.is_dir():
        return
    try:
        found = Tokenizer.load(folder).digest
    except InputError as error:
        raise InputError(f"`{folder}` is damaged: {error} {repair}") from error
    if found != digest:
        raise InputError(
            f"The digest of the tokenizer `{folder}` must be {digest}, as {source} states. "
            f"Received: {found}. {repair}"
        )


def find_changes(old: dict, new: dict) -> dict[str, tuple]:
    """Returns what would make it a different run: dotted key -> (old value, new value).

    A value is None if it is missing.
    """
    before, now = flat_values(old), flat_values(new)
    return {
        key: (before.get(key), now.get(key))
        for key in sorted(before.keys() | now.keys())
        if before.get(key) != now.get(key)
        and _is_below(key, _COMPARED)
        and not _is_below(key, _FREE)
    }


def _is_below(key, sections):
    """Returns whether a key is one of the sections or in one; `*` stands for any part."""
    return any(fnmatch.fnmatchcase(f"{key}.", f"{section}.*") for section in sections)


def flat_values(tree, path: str = "") -> dict:
    """Returns the leaves of nested dicts and of lists of dicts by dotted key."""
    if isinstance(tree, list) and tree and all(isinstance(item, dict) for item in tree):
        tree = {str(number): item for number, item in enumerate(tree)}
    if not isinstance(tree, dict):
        return {path: tree}
    items = (flat_values(value, f"{path}.{key}" if path else key) for key, value in tree.items())
    return {key: value for item in items for key, value in item.items()}


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
