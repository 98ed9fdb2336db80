"""Models of the hub of Hugging Face, by names such as `hf://albert/albert-base-v2`.

The client huggingface_hub downloads, continues what was interrupted, keeps a cache and shows its
progress; its variables apply: HF_HOME, HF_TOKEN, HF_HUB_OFFLINE, HF_ENDPOINT. It is imported only
for such a name. Only files that are read here are downloaded: no code, and no pickles.
"""

import functools
import logging
import re
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError, Mistake

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

    Args:
        name: str or Path. `hf://OWNER/NAME` for the newest commit, or `hf://OWNER/NAME@REVISION`
            for a commit, a branch or a tag.

    Raises:
        InputError: If there is no such model or revision, or it cannot be reached or downloaded.
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
    except (errors.RepositoryNotFoundError, errors.HFValidationError) as error:
        raise InputError(
            f"There is no model `{wanted}`, or it is private, or its owner asks for an agreement. "
            "Correct the name, or set HF_TOKEN to a token that may read it.",
            Mistake.NO_MODEL_OF_THIS_NAME,
        ) from error
    except errors.RevisionNotFoundError as error:
        raise InputError(
            f"There is no revision `{revision}` of `{SCHEME}{repository}`. Give a commit, a branch "
            "or a tag, or leave it out for the newest commit.",
            Mistake.NO_MODEL_OF_THIS_NAME,
        ) from error
    except errors.LocalEntryNotFoundError as error:
        raise InputError(
            f"`{wanted}` cannot be reached, and the cache of huggingface_hub does not have it. "
            "Repeat the command with a network, and without HF_HUB_OFFLINE; or give a folder with "
            "its files.",
            Mistake.NO_WEIGHTS,
        ) from error
    except (errors.HTTPError, errors.XetDownloadError) as error:
        raise InputError(
            f"`{wanted}` cannot be downloaded: {str(error).splitlines()[0]}. Repeat the command: "
            "files that are complete are kept.",
            Mistake.NO_WEIGHTS,
        ) from error
    commit = Path(folder).name
    logger.info("`%s` is commit %s, in `%s`", wanted, commit, folder)
    return Snapshot(Path(folder), f"{SCHEME}{repository}@{commit}")
