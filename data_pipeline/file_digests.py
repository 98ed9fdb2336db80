"""`digests.json`: SHA-256 and size of the files of a folder, by which damage is noticed."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from data_pipeline.files import sha256_of
from data_pipeline.limits import parse_json, read_limited

#: Name of the file that lists the digests of the others.
DIGESTS = "digests.json"


def digest_of(path: Path) -> dict[str, Any]:
    """Returns the entry of one file."""
    return {"sha256": sha256_of(path), "bytes": path.stat().st_size}


def write_digests(folder: Path, files: dict[str, dict[str, Any]], **facts: Any) -> None:
    """Writes `digests.json`: further facts, and `files`, name relative to the folder -> entry."""
    text = json.dumps(facts | {"files": files}, indent=2) + "\n"
    (folder / DIGESTS).write_text(text, encoding="utf-8")


def find_damage(folder: Path, only: Iterable[str] | None = None, **facts: Any) -> str | None:
    """Returns what is wrong with the files of a folder that has a `digests.json`, or None.

    Args:
        folder: Path.
        only: Names of files to compare. None means all that are listed.
        **facts: What `digests.json` must contain besides the files.
    """
    try:
        digests = parse_json(read_limited(folder / DIGESTS))
        found = {name: digests[name] for name in facts}
        saved = {name: (file["bytes"], file["sha256"]) for name, file in digests["files"].items()}
    except FileNotFoundError:
        return f"`{DIGESTS}` is missing"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"`{DIGESTS}` cannot be read ({error})"
    for name, value in found.items():
        if value != facts[name]:
            return f"`{DIGESTS}` belongs to {name} {value}"
    for name in saved if only is None else only:
        try:
            saved_size, saved_digest = saved[name]
            size = (folder / name).stat().st_size
            if size != saved_size:
                return f"`{name}` has {size} bytes, but {saved_size} were saved"
            digest = sha256_of(folder / name)
        except KeyError:
            return f"`{DIGESTS}` does not list `{name}`"
        except OSError as error:
            return f"`{name}` cannot be read ({error.strerror})"
        if digest != saved_digest:
            return f"`{name}` has SHA-256 {digest}, but was saved with {saved_digest}"
    return None
