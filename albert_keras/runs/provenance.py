"""Where a run comes from: data, code, command."""

import platform
import sys
from importlib import metadata
from pathlib import Path

_PACKAGES = ("albert-keras", "tensorflow", "keras", "tensorflow-text", "tensorflow-addons", "numpy")
_CHECKOUT = Path(__file__).parents[2]


def describe_program():
    """Describes this process: dict of `versions`, `git_commit` and `command`."""
    return {
        "versions": {name: _version(name) for name in _PACKAGES}
        | {"python": platform.python_version()},
        "git_commit": git_commit(),
        "command": list(sys.argv),
    }


def describe_records(records):
    """Describes a folder of records, as `run.json` keeps it.

    Args:
        records: RecordFiles.

    Returns:
        dict.
    """
    info = records.info
    return {
        "path": str(records.folder.absolute()),
        "fingerprint": info.fingerprint,
        "num_records": len(records),
        "max_seq_length": info.max_seq_length,
        "max_predictions_per_seq": info.max_predictions_per_seq,
        "corpus_digest": info.corpus_digest,
        "builder_version": info.builder_version,
    }


def git_commit(checkout=_CHECKOUT):
    """Returns the commit that is checked out; changes since then do not show.

    Args:
        checkout: Path. The folder that holds the package's. A repository further up is another's.

    Returns:
        str, or None if that is no git repository.
    """
    git = checkout / ".git"
    try:
        if git.is_file():  # a worktree
            git = checkout / git.read_text().removeprefix("gitdir:").strip()
        head = (git / "HEAD").read_text().strip()
        if not head.startswith("ref:"):
            return head
        return _commit_of_branch(git, head.removeprefix("ref:").strip())
    except (OSError, ValueError):
        return None


def _commit_of_branch(git, branch):
    common = git / "commondir"
    shared = git / common.read_text().strip() if common.is_file() else git
    if (shared / branch).is_file():
        return (shared / branch).read_text().strip()
    for line in (shared / "packed-refs").read_text().splitlines():
        commit, _, name = line.partition(" ")
        if name == branch:
            return commit
    return None


def _version(package):
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None
