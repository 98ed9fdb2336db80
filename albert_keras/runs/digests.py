"""The digests of a checkpoint's files: whether they are what was saved."""

import json
import os

from data_pipeline.files import sha256_of

#: Name of the file that lists them.
DIGESTS = "digests.json"


def write_digests(folder, step):
    """Writes what each file of a checkpoint is, as the last of its files."""
    files = {}
    for path in sorted(folder.iterdir()):
        with open(path, "rb") as file:
            os.fsync(file.fileno())
        files[path.name] = {"sha256": sha256_of(path), "bytes": path.stat().st_size}
    text = json.dumps({"step": step, "files": files}, indent=2) + "\n"
    (folder / DIGESTS).write_text(text, encoding="utf-8")


def damage_of(folder, step, only=None):
    """Says what is wrong with the files of a checkpoint; None if they are what was saved.

    Args:
        folder: Path.
        step: int.
        only: str or None. The one file to look at besides the digests; None looks at all.
    """
    try:
        digests = json.loads((folder / DIGESTS).read_text(encoding="utf-8"))
        saved_step = digests["step"]
        saved = {name: (file["bytes"], file["sha256"]) for name, file in digests["files"].items()}
    except FileNotFoundError:
        return f"it has no `{DIGESTS}`"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        return f"`{DIGESTS}` cannot be read ({error})"
    if saved_step != step:
        return f"`{DIGESTS}` is of step {saved_step}"
    for name in saved if only is None else [only]:
        try:
            saved_size, saved_digest = saved[name]
            size = (folder / name).stat().st_size
            if size != saved_size:
                return f"`{name}` has {size} bytes, {saved_size} were saved"
            digest = sha256_of(folder / name)
        except KeyError:
            return f"`{DIGESTS}` does not have `{name}`"
        except OSError as error:
            return f"`{name}` cannot be read ({error.strerror})"
        if digest != saved_digest:
            return f"`{name}` has SHA-256 {digest}, {saved_digest} was saved"
    return None
