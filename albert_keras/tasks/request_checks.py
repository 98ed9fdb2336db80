"""Checks of what is to be predicted or scored, before TensorFlow is imported."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from data_pipeline.errors import InputError


def check_required(settings: Mapping[str, Any], source: str, value: Any):
    """Raises InputError if settings are given, but not what they are for.

    Args:
        settings: By name; None if not given.
        source: The name of the argument that they require.
        value: Its value, None if not given.
    """
    given = [name for name, setting in settings.items() if setting is not None]
    if given and value is None:
        raise InputError(
            f"`{given[0]}` requires `{source}`. Received: {settings[given[0]]!r} and no `{source}`."
        )


def check_request(
    sources: Mapping[str, Any], data_dir: str | Path | None, of_file: Mapping[str, Any]
):
    """Raises InputError unless there is one source of examples, and the settings suit it.

    Args:
        sources: `inputs`, `file` and `split` by name.
        data_dir: As in `predict_task`.
        of_file: How to read `file`, by name: columns, delimiter, encoding, ...
    """
    given = [name for name, value in sources.items() if value]
    if len(given) != 1:
        raise InputError(
            "Give exactly one of `inputs`, `file` and `split` to predict. Received: "
            f"{' and '.join(given) or 'none'}."
        )
    check_required({"data_dir": data_dir}, "split", sources["split"])
    check_required(of_file, "file", sources["file"])
