"""The files of a run that people may edit: read, and refused if they contradict each other."""

import json

from albert_keras.runs.run_changes import complete_shape, differences
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer


def read_record(path):
    """Reads `run.json`, and makes sure that it holds what the program counts on.

    Args:
        path: Path. The file.

    Returns:
        dict.

    Raises:
        InputError: If it is no JSON, or lacks something.
    """
    repair = "Restore it from a copy, or begin another run with another --out."
    try:
        record = json.loads(path.read_bytes())
        for section in ("model", "training", "optimizer"):
            dict(record["config"][section])
        for name in ("seed", "keep_checkpoints"):
            int(record["config"]["training"][name])
        complete_shape(record["albert_config"])
        str.encode(record["data"]["fingerprint"])
        str.encode(record["tokenizer_digest"] or "")
    except KeyError as error:
        raise InputError(f"`{path}` is damaged: it lacks {error}. {repair}") from error
    except (ValueError, TypeError) as error:
        raise InputError(f"`{path}` is damaged: {error}. {repair}") from error
    return record


def check_shape(path, record):
    """Refuses an `albert_config.json` that is not the model of the run.

    Args:
        path: Path. The file; nothing is wrong if there is none.
        record: dict. What `run.json` holds.

    Raises:
        InputError: With all settings that differ.
    """
    if not path.is_file():
        return
    repair = (
        "Remove that file and `pretrain` writes it again from run.json. To change the model, "
        "give `pretrain` the setting and --allow-change."
    )
    try:
        found = complete_shape(json.loads(path.read_bytes()))
    except (ValueError, TypeError) as error:
        raise InputError(f"`{path}` should hold a JSON object: {error}. {repair}") from error
    edited = differences(complete_shape(record["albert_config"]), found)
    if edited:
        listing = "\n  ".join(
            f"{key}: {ours!r} in run.json, {theirs!r} in {path.name}"
            for key, (ours, theirs) in edited.items()
        )
        raise InputError(f"`{path}` was edited:\n  {listing}\n{repair}")


def check_tokenizer(folder, digest, source, repair):
    """Refuses a tokenizer that is not the one it should be.

    Args:
        folder: Path. Nothing is wrong if there is none.
        digest: str or None. What it should have; None if nobody knows.
        source: str. Where that stands.
        repair: str. What to do, a sentence.

    Raises:
        InputError: With both digests.
    """
    if digest is None or not folder.is_dir():
        return
    try:
        found = Tokenizer.load(folder).digest
    except InputError as error:
        raise InputError(f"`{folder}` is damaged: {error} {repair}") from error
    if found != digest:
        raise InputError(
            f"`{folder}` should have the digest {digest} that {source} tells. "
            f"Received: {found}. {repair}"
        )
