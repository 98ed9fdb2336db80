"""Models of the hub of Hugging Face, by names such as `hf://albert/albert-base-v2`.

The client huggingface_hub downloads, continues what was interrupted, keeps a cache and shows its
progress; its variables apply: HF_HOME, HF_TOKEN, HF_HUB_OFFLINE, HF_ENDPOINT. It is imported only
for such a name. Only files that are read here are downloaded: no code, and no pickles.
"""

import fnmatch
import functools
import hashlib
import logging
import re
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import sha256_of

SCHEME = "hf://"
#: What is downloaded. `*` stands for folders, too: a model of sentence-transformers has several.
FILES = (
    "*.json",
    "*.safetensors",
    *("*spiece.model", "*30k-clean.model", "*vocab.txt"),
    *("*.ckpt*.index", "*.ckpt*.data-*"),  # checkpoints of google-research
    *("model.weights.h5", "assets/tokenizer/vocabulary.spm"),  # presets of KerasHub
)
#: `Path` makes one slash of two.
_NAME = re.compile(r"hf:/{1,2}([\w.-]+/[\w.-]+)(?:@([^\s@]+))?")

logger = logging.getLogger(__name__)


class Snapshot(NamedTuple):
    """The files of a model of the hub, in the cache of the client."""

    folder: Path
    name: str  #: `hf://OWNER/NAME@COMMIT`, which names the same files in future.


def is_hub_name(path: object) -> bool:
    """Returns whether a path, or a str, names a model of the hub."""
    return str(path).startswith("hf:")


def download(name: str | Path) -> Snapshot:
    """Downloads a model of the hub into the cache of the client, unless it is there already.

    Without a network, or with HF_HUB_OFFLINE, what is in the cache is used, if it is complete.
    Files are compared with the digests of the hub, once per process.

    Args:
        name: str or Path. `hf://OWNER/NAME` for the newest commit, or `hf://OWNER/NAME@REVISION`
            for a commit, a branch or a tag.

    Raises:
        InputError: If there is no such model or revision, it cannot be reached or downloaded, it
            has no file of `FILES`, or a file in the cache is damaged.
    """
    match = _NAME.fullmatch(str(name))
    if match is None:
        raise InputError(
            "A model of the hub must be given as hf://OWNER/NAME or hf://OWNER/NAME@REVISION. "
            f"Received: `{name}`.",
            Mistake.NO_MODEL_OF_THIS_NAME,
        )
    return _download(*match.groups())


def shared_name(path: str | Path) -> str:
    """Returns how a file that is given away calls a model: without the folders of this computer."""
    return str(path) if is_hub_name(path) else Path(path).name


@functools.cache
def _download(repository, revision):
    import huggingface_hub
    from huggingface_hub import errors

    wanted = f"{SCHEME}{repository}" + (f"@{revision}" if revision else "")
    try:
        folder = huggingface_hub.snapshot_download(
            repository, revision=revision, allow_patterns=list(FILES)
        )
        commit = Path(folder).name
        files = huggingface_hub.get_cached_repo_tree(repository, revision=commit)
    except errors.GatedRepoError as error:
        raise InputError(
            f"There is no access to `{wanted}`: its owner asks for an agreement. Accept it on the "
            "page of the model, and set HF_TOKEN to a token of your account.",
            Mistake.NO_MODEL_OF_THIS_NAME,
        ) from error
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise InputError(
            f"There is no model `{wanted}`, or it is private. Correct the name, or set HF_TOKEN to "
            "a token that may read it.",
            Mistake.NO_MODEL_OF_THIS_NAME,
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(
            f"There is no revision `{revision}` of `{SCHEME}{repository}`. Give a commit, a branch "
            "or a tag, or leave it out for the newest commit.",
            Mistake.NO_MODEL_OF_THIS_NAME,
        ) from error
    except (errors.LocalEntryNotFoundError, errors.CachedRepoTreeNotFoundError) as error:
        raise InputError(
            f"`{wanted}` cannot be reached, and the cache of huggingface_hub does not have all of "
            "it. Repeat the command with a network, and without HF_HUB_OFFLINE; or give a folder "
            "with its files.",
            Mistake.NO_WEIGHTS,
        ) from error
    except (errors.HTTPError, errors.XetDownloadError) as error:
        raise InputError(
            f"`{wanted}` cannot be downloaded: {str(error).splitlines()[0]}. Repeat the command: "
            "files that are complete are kept.",
            Mistake.NO_WEIGHTS,
        ) from error
    _check(Path(folder), files, wanted)
    logger.info("`%s` is commit %s, in `%s`", wanted, commit, folder)
    return Snapshot(Path(folder), f"{SCHEME}{repository}@{commit}")


def _check(folder, files, name):
    """Raises InputError unless there are files, all of them with the digests of the hub."""
    # Other programs may have downloaded more into the same cache.
    wanted = [file for file in files if any(fnmatch.fnmatch(file.path, one) for one in FILES)]
    downloaded = [file for file in wanted if (folder / file.path).is_file()]
    if not downloaded:
        listing = ", ".join(file.path for file in files[:10]) or "nothing"
        raise InputError(
            f"`{name}` has none of the files that are read here: {', '.join(FILES)}. It has: "
            f"{listing}.",
            Mistake.NO_WEIGHTS,
        )
    for file in downloaded:
        path = folder / file.path
        if file.lfs is not None:
            is_whole = sha256_of(path) == file.lfs.sha256
        else:
            content = path.read_bytes()
            # As git hashes a file; a server without git may hash its content alone.
            as_git = b"blob %d\0" % len(content) + content
            is_whole = file.blob_id in (hashlib.sha1(one).hexdigest() for one in (as_git, content))
        if not is_whole:
            raise InputError(
                f"`{path}` is damaged: it is not the file of the hub. Remove `{path.resolve()}` "
                "and repeat the command, which downloads it again."
            )
