"""Names that become folders, addresses and metric labels: which ones are taken."""

import re

from data_pipeline.errors import InputError

#: Largest version `tensorflow_model_server` reads: an int64.
MAX_VERSION = 2**63 - 1

_MODEL = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_LABEL = re.compile(r"[A-Za-z0-9_]{1,64}")


def check_model_name(name):
    """Returns the name of a model, a folder name that is safe in an address, too.

    Args:
        name: str.

    Raises:
        InputError: If it has other characters, begins with `-` or `_`, or is too long.
    """
    if not isinstance(name, str) or not _MODEL.fullmatch(name):
        raise InputError(
            "The name of a model should be 1 to 64 of `a-z`, `0-9`, `_` and `-`, beginning with a "
            f"letter or digit. Received: {name!r}."
        )
    return name


def check_version(version):
    """Returns a version: an int from 1 to the largest int64; else raises InputError."""
    if isinstance(version, bool) or not isinstance(version, int) or not 0 < version <= MAX_VERSION:
        raise InputError(f"A version should be an int from 1 to 2^63 - 1. Received: {version!r}.")
    return version


def check_label(label):
    """Returns the label of a version: 1 to 64 letters, digits and `_`; else raises InputError."""
    if not isinstance(label, str) or not _LABEL.fullmatch(label):
        raise InputError(
            "The label of a version should be 1 to 64 of `A-Z`, `a-z`, `0-9` and `_`. "
            f"Received: {label!r}."
        )
    return label
