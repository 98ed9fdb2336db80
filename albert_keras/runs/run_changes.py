"""What may differ when a run goes on, and what was changed on purpose.

A record is what `run.json` holds; its keys are dotted here, as in `config.training.seed`.
"""

import difflib

from albert_keras.config import AlbertConfig
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

#: What has to stay the same. The model's settings are those that `albert_config` follows from.
_COMPARED = (
    "config.training",
    "config.optimizer",
    "config.task",
    "config.model.head_dropout",
    "albert_config",
    "data.fingerprint",
    "data.dev_fingerprint",
    "data.origin_digest",
    "data.max_seq_length",
    "data.max_predictions_per_seq",
    "tokenizer_digest",
)
#: Settings that do not change what is computed. Files of a task count by what is in them.
_FREE = tuple(
    f"config.training.{name}"
    for name in (
        "strategy",
        "accumulation_steps",
        "recompute",
        "padding",
        "steps_per_execution",
        "checkpoint_every",
        "keep_checkpoints",
        "report_every",
        "evaluate_every",
        "time_limit_seconds",
        "peak_tflops",
        "epochs",  # follows from `steps`, which is compared
        "eval_batch_size",
    )
) + ("config.task.data_dir", "config.task.train", "config.task.dev")
#: Parts of a record that an override may name.
_PARTS = ("config", "albert_config", "data", "tokenizer_digest")
#: Parts that differ between calls without anything being changed.
_NOT_HISTORY = ("command", "changes")


def find_changes(old, new, defaults):
    """Compares two records.

    Args:
        old: dict. The record of an earlier call, perhaps by an older version: settings that it
            lacks have their defaults, other values that it lacks are as they are now.
        new: dict.
        defaults: dict. Values of `config` that are taken where `old` lacks them.

    Returns:
        dict of dotted key -> (old value, new value).
    """
    old = _with_defaults(old, defaults)
    known = _flat(old)
    return {
        key: values
        for key, values in differences(old, new).items()
        if (key in known or _is_below(key, ("config",))) and not _is_below(key, _NOT_HISTORY)
    }


def find_refused(changes, allowed=()):
    """Returns those of the changes that would make another run of it: dict."""
    return {
        key: values
        for key, values in changes.items()
        if _is_below(key, _COMPARED) and not _is_below(key, (*_FREE, *allowed))
    }


def differences(old, new):
    """Compares two trees of values: dict of dotted key -> (old value, new value)."""
    old, new = _flat(old), _flat(new)
    return {
        key: (old.get(key), new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    }


def complete_shape(values):
    """Returns a model's settings (dict) with the defaults of those that did not exist yet."""
    return AlbertConfig().to_dict() | values


def check_overrides(keys, *records):
    """Refuses overrides that name nothing.

    Args:
        keys: iterable of str. Dotted keys; each stands for all below it, too.
        *records: dict. The keys there are.

    Raises:
        InputError: If a key is not known.
    """
    leaves = {
        key for record in records for key in _flat({part: record.get(part) for part in _PARTS})
    }
    sections = {
        ".".join(words[:end])
        for words in (key.split(".") for key in leaves)
        for end in range(1, len(words))
    }
    known = sorted(leaves | sections)
    for key in keys:
        if key not in known:
            near = [name for name in known if name.endswith(f".{key}")]
            near = near or difflib.get_close_matches(key, known, n=1)
            raise InputError(
                f"`--allow-change {key}` should name a setting of the run"
                f"{did_you_mean(key, near or sections)}"
            )


def _with_defaults(record, defaults):
    config = {
        name: values if name == "model" else defaults.get(name, {}) | values
        for name, values in record["config"].items()
    }
    shape = complete_shape(record["albert_config"])
    data = record["data"]
    if record.get("kind", "pretraining") == "pretraining":  # began with random weights, all of them
        data = {"origin_digest": None} | data
    return record | {"config": config, "albert_config": shape, "data": data}


def _is_below(key, sections):
    return any(key == section or key.startswith(f"{section}.") for section in sections)


def _flat(tree, path=""):
    if not isinstance(tree, dict):
        return {path: tree}
    items = (_flat(value, f"{path}.{key}" if path else key) for key, value in tree.items())
    return {key: value for item in items for key, value in item.items()}
