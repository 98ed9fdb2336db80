"""Inspects a folder of records: statistics of a sample, and examples to read.

Everything is computed from the records alone, as a reader would see them, not from what the build
counted or intended.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.config import MaskingConfig
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import unmask
from data_pipeline.randomness import key_of, permute
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER, DatasetInfo
from data_pipeline.records.examples import PRETRAINING_FEATURES, decode_instance, schema_fault
from data_pipeline.records.record_folder import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import SPACE

#: Names of the labels 0 and 1, by objective.
ORDERS = {"sop": ("in order", "swapped"), "nsp": ("in order", "random second")}
_TOP_PIECES = 10
#: Normal quantile of a 95 % interval.
_Z = 1.959964
_QUANTILES = {"min": 0, "5%": 5, "25%": 25, "median": 50, "75%": 75, "95%": 95, "max": 100}


class Share(NamedTuple):
    """A fraction and its 95 % interval (Wilson's), each in [0, 1]."""

    share: float
    low: float
    high: float

    @classmethod
    def of(cls, count, total):
        """Estimates a fraction from `count` of `total` observations; total > 0."""
        share, spread = count / total, _Z * _Z / total
        middle = (share + spread / 2) / (1 + spread)
        half = _Z * np.sqrt(share * (1 - share) / total + spread / total / 4) / (1 + spread)
        return cls(share, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


class Masks(NamedTuple):
    """Statistics of the masks of a sample; fractions refer to all predictions.

    A run of masked words is an n-gram, or several side by side, which cannot be distinguished.
    """

    per_sequence: float  # mean number of predictions
    quota_reached: float  # fraction of sequences with the intended number of predictions
    mask: float  # shown as [MASK]
    kept: float  # shown unchanged, or replaced by a random token that equals the original
    random: float  # shown as another token
    run_words: dict[int, float] | None  # fractions of runs by number of words, if they are known
    top_pieces: list[tuple[str, int]]  # most frequent masked entries (or ids), and how often


class Example(NamedTuple):
    """A record as text; a prediction is shown as `[shown token→original token]`."""

    record: int  # its number among all records
    order: str  # "in order", "swapped", "random second", or "none"
    segments: list[str]  # text of each segment, with special tokens
    padding: int  # number of padding positions


class Inspection(NamedTuple):
    """The result of `inspect_records`; fractions and quantiles describe the sample."""

    folder: Path
    num_records: int
    num_sampled: int
    max_seq_length: int  # S
    max_predictions_per_seq: int  # P
    objective: str  # meaning of a label of 1, see DatasetInfo
    input_format: str | None  # see PretrainingDataConfig; None for foreign records
    padding: float  # fraction of all positions
    lengths: dict[str, int]  # quantiles of the tokens of a record, including special ones
    label_1: Share | None  # None if the objective is "none"
    word_starts: float | None  # fraction of tokens of text that start a word
    masks: Masks | None  # None if the reader samples them
    examples: list[Example]

    def findings(self) -> Iterator[tuple[str, str]]:
        """Yields what the sample shows as (name, text), for the screen and for reports."""
        yield (
            "length, predictions",
            f"S = {self.max_seq_length}, P = {self.max_predictions_per_seq}",
        )
        yield "input format", f"{self.input_format or 'unknown'}, objective {self.objective}"
        lengths = ", ".join(f"{name} {length}" for name, length in self.lengths.items())
        yield "length of sequences", lengths
        yield "padding", f"{_percent(self.padding)} of positions"
        if self.label_1:
            share, low, high = map(_percent, self.label_1)
            yield "label 1", f"{share} (95 % interval {low} to {high})"
        if self.word_starts is not None:
            yield "word starts", f"{_percent(self.word_starts)} of tokens"
        masks = self.masks
        if masks is None:
            yield "masks", "sampled by the reader"
            return
        yield (
            "predictions",
            f"{masks.per_sequence:.1f} per sequence, {_percent(masks.quota_reached)} of sequences "
            "have the expected number",
        )
        yield (
            "replaced by",
            f"[MASK] {_percent(masks.mask)}, the token itself {_percent(masks.kept)}, a random "
            f"token {_percent(masks.random)}",
        )
        runs = "unknown: the records do not mark starts of words"
        if masks.run_words is not None:
            parts = [f"{size}: {_percent(part)}" for size, part in masks.run_words.items()]
            runs = f"{', '.join(parts)} of runs (adjacent n-grams count as one run)"
        yield "masked words", runs
        yield "most often masked", ", ".join(f"{piece} {n}" for piece, n in masks.top_pieces)


def inspect_records(
    folder: str | Path,
    examples: int = 3,
    seed: int = 0,
    sample: int = 2000,
) -> Inspection:
    """Inspects a random sample of the records of a folder.

    Args:
        folder: str or Path.
        examples: int. Number of records to show as text.
        seed: int. Selects the sample; the examples are its first records.
        sample: int. Number of records to inspect; they are held in memory.

    Returns:
        Inspection.

    Raises:
        InputError: As `RecordFiles`; if there is no record or one of the sample is damaged.
    """
    files = RecordFiles(folder)
    folder, info = files.folder, files.info
    if sample < 1 or examples < 0 or not info.num_records:
        raise InputError(
            "`sample` must be at least 1 and `examples` not negative, and the folder must contain "
            f"records. Received: sample={sample}, examples={examples}, and {info.num_records} "
            f"records in `{folder}`."
        )
    size = min(sample, info.num_records)
    numbers = permute(np.arange(size), info.num_records, key_of("inspection", seed))
    has_tokenizer = (folder / TOKENIZER_FOLDER).is_dir()
    tokenizer = Tokenizer.load(folder / TOKENIZER_FOLDER) if has_tokenizer else None
    seen = Sample(read_sample(files, numbers), numbers, info, tokenizer)
    lengths, in_text = seen.real.sum(axis=1), int(seen.text.sum())
    return Inspection(
        folder=folder,
        num_records=info.num_records,
        num_sampled=size,
        max_seq_length=info.max_seq_length,
        max_predictions_per_seq=info.max_predictions_per_seq,
        objective=info.objective,
        input_format=info.config.get("input_format"),
        padding=float(1 - seen.real.mean()),
        lengths={
            name: int(np.percentile(lengths, percentage, method="inverted_cdf"))
            for name, percentage in _QUANTILES.items()
        },
        label_1=None if info.objective == "none" else Share.of(int(seen.labels.sum()), size),
        word_starts=None if seen.opens is None else int(seen.opens.sum()) / max(in_text, 1),
        masks=seen.masks() if info.static_masks else None,
        examples=[seen.example(row) for row in range(min(examples, size))],
    )


def read_sample(files: RecordFiles, numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Reads the features of N records by their numbers: arrays [N, length]."""
    rows = []
    for number, record in zip(numbers.tolist(), files.read(numbers), strict=True):
        try:
            features = files.info.with_our_names(decode_instance(record))
            fault = schema_fault(features, files.info)
        except InputError as error:
            fault = f"cannot be read: {error}"
        if fault:
            raise InputError(
                f"`{files.folder}` is damaged: record {number} {fault}. "
                "`albert-keras data verify` reports everything that is wrong."
            )
        rows.append(features)
    common = set(PRETRAINING_FEATURES).intersection(*rows)
    return {name: np.stack([row[name] for row in rows]) for name in common}


class _SpecialIds(NamedTuple):
    cls: int
    sep: int
    mask: int
    pad: int


class Sample:
    """N records as arrays, and the statistics derived from them.

    Args:
        records: dict of arrays [N, length] with the names of `PRETRAINING_FEATURES`.
        numbers: int64 [N]. The numbers of the records.
    """

    def __init__(self, records, numbers, info: DatasetInfo, tokenizer: Tokenizer | None):
        self.numbers, self._info, self._tokenizer = numbers, info, tokenizer
        #: The defaults for foreign records.
        self.masking = MaskingConfig(**info.config.get("masking", {}))
        #: int [N, S]. Ids as a model sees them.
        self.shown = records["input_ids"]
        #: bool [N, S]. Tokens that are not padding.
        self.real = records["input_mask"] != 0
        #: bool [N]. The order of the segments.
        self.labels = records["next_sentence_labels"][:, 0] != 0
        self._positions = records["masked_lm_positions"]
        self._weights = records["masked_lm_weights"] > 0
        self._segments = records["segment_ids"]
        #: int [N, S]. Ids before masking.
        self.original = unmask(self.shown, self._positions, records["masked_lm_ids"], self._weights)
        rows, predictions = np.nonzero(self._weights)
        #: Rows and positions of all predictions of the sample.
        self._predictions = rows, self._positions[rows, predictions]
        #: bool [N, S]. Tokens to be predicted.
        self.predicted = np.zeros(self.real.shape, bool)
        self.predicted[self._predictions] = True
        self.special = self._find_special()
        #: bool [N, S]. Tokens that are not padding, [CLS] or [SEP].
        self.text = self.real & ~np.isin(self.original, (self.special.cls, self.special.sep))
        #: bool [N, S] or None. Tokens of text that start a word, if that is known.
        self.opens = self._find_words(records.get("token_boundary"))

    def _find_special(self):
        if (known := self._tokenizer) is not None:
            return _SpecialIds(known.cls_id, known.sep_id, known.mask_id, known.pad_id)
        # Every record is `[CLS] ... [SEP]` and padding, and [MASK] is the most common replacement.
        last = np.maximum(self.real.sum(axis=1) - 1, 0)
        shown = self.shown[self.predicted]
        changed = shown[shown != self.original[self.predicted]]
        return _SpecialIds(
            cls=_most_common(self.original[:, 0]),
            sep=_most_common(self.original[np.arange(len(last)), last]),
            mask=_most_common(changed),
            pad=_most_common(self.original[~self.real]),
        )

    def _find_words(self, boundary):
        if boundary is None and self._tokenizer is None:
            return None
        if boundary is None:
            boundary = self._tokenizer.word_starts(self.masking.word_start)[self.original]
        return self.text & ((boundary != 0) | ~_previous(self.text))

    def masks(self):
        """Returns the Masks of the sample."""
        counts, probability = self._weights.sum(axis=1), self.masking.masked_lm_prob
        wanted = np.rint(self.real.sum(axis=1) * probability)
        limit = self._info.max_predictions_per_seq
        wanted = np.clip(wanted, 1 if probability else 0, limit)
        shown, original = self.shown[self._predictions], self.original[self._predictions]
        masked = shown == self.special.mask
        kept = ~masked & (shown == original)
        kinds = masked, kept, ~masked & ~kept
        ids, occurrences = np.unique(original, return_counts=True)
        top = np.argsort(-occurrences, kind="stable")[:_TOP_PIECES]
        return Masks(
            float(counts.mean()),
            float((counts >= wanted).mean()),
            *(float(kind.sum() / max(len(kind), 1)) for kind in kinds),
            self._run_words(),
            [(self._name(ids[index]), int(occurrences[index])) for index in top],
        )

    def _run_words(self):
        if self.opens is None:
            return None
        words = np.cumsum(self.opens)  # number of the word at each position, flat, from 1 on
        masked = np.zeros(words[-1] + 1, bool)
        masked[words[(self.predicted & self.text).ravel()]] = True
        begins_segment = (self.opens & ~_previous(self.text))[self.opens]
        masked, before = masked[1:], masked[:-1]
        runs = np.cumsum(masked & ~(before & ~begins_segment))[masked]
        sizes, counts = np.unique(np.bincount(runs)[1:], return_counts=True)
        return dict(zip(sizes.tolist(), (counts / counts.sum()).tolist(), strict=True))

    def example(self, row):
        """Returns a row as an Example."""
        real, orders = self.real[row], ORDERS.get(self._info.objective)
        order = orders[int(self.labels[row])] if orders else "none"
        segments = []
        for number in np.unique(self._segments[row][real]):
            positions = np.flatnonzero(real & (self._segments[row] == number))
            text = "".join(self._readable(row, position) for position in positions)
            segments.append(text.strip())
        return Example(int(self.numbers[row]), order, segments, int((~real).sum()))

    def _readable(self, row, position):
        original, shown = int(self.original[row, position]), int(self.shown[row, position])
        has_space, name = self._shown(original)
        joined = not has_space and original not in self.special
        if self.predicted[row, position]:
            hidden = self._tokenizer and shown == self.special.mask
            before = "MASK" if hidden else self._shown(shown)[1] or SPACE
            name = f"[{before}→{name or SPACE}]"
        return name if joined else f" {name}"

    def _shown(self, id):
        return self._tokenizer.shown(int(id)) if self._tokenizer else (True, str(id))

    def _name(self, id):
        return self._tokenizer.piece_of(int(id)) if self._tokenizer else str(id)


def _previous(flags):
    """Returns at each position the flag of the position before it, False at the beginning."""
    return np.pad(flags, ((0, 0), (1, 0)))[:, :-1]


def _most_common(ids):
    return int(np.bincount(ids).argmax()) if ids.size else -1


def _percent(fraction):
    return f"{100 * fraction:.1f} %"
