"""Windows of passages as `Features` that a model is trained on or asked about, kept on disk."""

import numpy as np

from albert_keras.tasks.feature_cache import cached_features
from albert_keras.tasks.squad.window_features import (
    SquadFeatures,
    log_empty_passages,
    make_features,
)
from albert_keras.tasks.task import Features
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.offsets import AlignedPieces

# Arrays of SquadFeatures by their names there; those that are None are left out of a file.
_ARRAYS = (
    "unique_ids",
    "example_indices",
    "input_ids",
    "query_lengths",
    "passage_lengths",
    "passage_offsets",
    "is_max_context",
    "starts",
    "ends",
    "is_impossible",
)


class SpanFeatures(Features):
    """One row per window; a question may have several, or none if its passage is empty.

    Args:
        windows: SquadFeatures.

    Attributes:
        windows: SquadFeatures.
        lengths, max_seq_length: as in `Features`.
    """

    def __init__(self, windows: SquadFeatures):
        self.windows = windows
        self.lengths = windows.query_lengths + windows.passage_lengths + 3  # [CLS] and two [SEP]
        self.max_seq_length = windows.input_ids.shape[1]

    def batch(self, rows, length=None) -> dict[str, np.ndarray]:
        """Lays out some windows; see `Features.batch`.

        Raises:
            ValueError: If `length` is too short for a row, or more than S.
        """
        length = self.max_seq_length if length is None else length
        longest = int(self.lengths[rows].max(initial=0))
        if not longest <= length <= self.max_seq_length:
            raise ValueError(
                f"`length` should be from {longest}, the longest of the rows, to "
                f"{self.max_seq_length}. Received: {length}."
            )
        batch = self.windows.inputs(rows, length)
        return batch if self.windows.starts is None else batch | self.windows.targets(rows)


def span_features(examples, tokenizer, config, training=False, cache=None) -> SpanFeatures:
    """Cuts passages into windows, or takes those that were cut earlier.

    Args:
        examples: list of QuestionExample.
        tokenizer: Tokenizer.
        config: SquadWindowConfig.
        training: bool. Whether to place the answers.
        cache: path or None. Folder where windows are kept by their content; None keeps nothing.

    Returns:
        SpanFeatures. The same with and without a cache.

    Raises:
        InputError: As `make_features`; or if no passage leaves anything to be asked about.
    """
    windows = _windows(examples, tokenizer, config, training, cache)
    if not len(windows):
        raise InputError(
            "A passage should leave something after clean-up. "
            f"Received: {len(examples)} questions, all about passages that do not."
        )
    return SpanFeatures(windows)


def _windows(examples, tokenizer, config, training, cache):
    if cache is None:
        return make_features(examples, tokenizer, config, training)
    made = None

    def build():
        nonlocal made
        made = make_features(examples, tokenizer, config, training)
        return to_arrays(made)

    settings = {**config.model_dump(), "training": training}
    arrays = cached_features(cache, "spans", examples, tokenizer, settings, build)
    if made is None:
        made = from_arrays(arrays)
        log_empty_passages(examples, made)
    return made


def to_arrays(windows: SquadFeatures) -> dict[str, np.ndarray]:
    """Returns all there is of windows as arrays; a passage of many questions is in them once.

    Args:
        windows: SquadFeatures.

    Returns:
        dict of str to array, for `from_arrays`. The large ones are not copied.
    """
    different = list({id(passage): passage for passage in windows.passages}.values())
    numbers = {id(passage): number for number, passage in enumerate(different)}
    arrays = {name: getattr(windows, name) for name in _ARRAYS}
    arrays = {name: array for name, array in arrays.items() if array is not None}
    arrays["passage_numbers"] = np.array([numbers[id(one)] for one in windows.passages], np.int32)
    arrays["piece_counts"] = np.array([len(passage.ids) for passage in different], np.int64)
    for name in AlignedPieces._fields:
        arrays[f"piece_{name}"] = np.concatenate([getattr(one, name) for one in different])
    return arrays


def from_arrays(arrays) -> SquadFeatures:
    """Returns the windows that `to_arrays` was given."""
    cuts = arrays["piece_counts"].cumsum()[:-1]
    parts = [np.split(arrays[f"piece_{name}"], cuts) for name in AlignedPieces._fields]
    different = [AlignedPieces(*pieces) for pieces in zip(*parts, strict=True)]
    passages = tuple(different[number] for number in arrays["passage_numbers"].tolist())
    return SquadFeatures(passages=passages, **{name: arrays.get(name) for name in _ARRAYS})
