"""A sample of records, side by side, and what follows from them."""

from typing import NamedTuple

import numpy as np

from data_pipeline.config import MaskingConfig
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import unmask
from data_pipeline.records.examples import decode_instance
from data_pipeline.records.schema import PRETRAINING_FEATURES, schema_fault
from data_pipeline.tokenizers.word_starts import SPACE

ORDERS = {"sop": ("in order", "swapped"), "nsp": ("in order", "random second")}
_TOP_PIECES = 10
#: Normal quantile of a 95 % interval.
_Z = 1.959964


class Share(NamedTuple):
    """A share and its 95 % interval (Wilson's), each in [0, 1]."""

    share: float
    low: float
    high: float

    @classmethod
    def of(cls, count, total):
        """Estimates the share of which `count` out of `total` were seen; total > 0."""
        share, spread = count / total, _Z * _Z / total
        middle = (share + spread / 2) / (1 + spread)
        half = _Z * np.sqrt(share * (1 - share) / total + spread / total / 4) / (1 + spread)
        return cls(share, max(0.0, float(middle - half)), min(1.0, float(middle + half)))


class Masks(NamedTuple):
    """How a sample is masked; shares are those of all predictions.

    Attributes:
        per_sequence: float. Predictions of a sequence on average.
        quota_reached: float. Share of sequences with as many predictions as they should have.
        mask, kept, random: float. Shares shown as [MASK], as they are, and as another piece. A
            random piece that happens to be the right one counts as kept.
        run_words: dict of int to float, or None if words are not known. Share of runs of masked
            words by the number of their words. A run is an n-gram, or several side by side: those
            cannot be told apart.
        top_pieces: list of tuple. The most frequent masked pieces (ids without a tokenizer), and
            how often they are masked.
    """

    per_sequence: float
    quota_reached: float
    mask: float
    kept: float
    random: float
    run_words: dict[int, float] | None
    top_pieces: list[tuple[str, int]]


class Example(NamedTuple):
    """A record made readable.

    Attributes:
        record: int. Its number among all records.
        order: str. "in order", "swapped", "random second", or "none".
        segments: list of str. Text of each segment: special pieces are visible, predictions are
            shown as `[what stands there→what stood there]`.
        padding: int. Places left empty.
    """

    record: int
    order: str
    segments: list[str]
    padding: int


def read_sample(files, numbers):
    """Reads the features of records of these numbers, int64 [N]: dict of arrays [N, length]."""
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
                "`albert-keras data verify` tells all that is wrong."
            )
        rows.append(features)
    common = set(PRETRAINING_FEATURES).intersection(*rows)
    return {name: np.stack([row[name] for row in rows]) for name in common}


class _Special(NamedTuple):
    """Ids of special pieces."""

    cls: int
    sep: int
    mask: int
    pad: int


class Sample:
    """Records side by side, [N, S] and [N, P], and what follows from them.

    Attributes:
        numbers: int64 [N]. Which records.
        shown, original: int [N, S]. Ids as a model sees them, and before they were masked.
        real, text, predicted: bool [N, S]. Not padding; nor [CLS] or [SEP]; to be predicted.
        opens: bool [N, S] or None. Pieces of text that open a word; None if that is not known.
        labels: bool [N]. Of the order of the segments.
        masking: MaskingConfig. How it was masked; defaults for foreign records.
    """

    def __init__(self, records, numbers, info, tokenizer):
        self.numbers, self._info, self._tokenizer = numbers, info, tokenizer
        self.masking = MaskingConfig(**info.config.get("masking", {}))
        self.shown, self.real = records["input_ids"], records["input_mask"] != 0
        self.labels = records["next_sentence_labels"][:, 0] != 0
        self._positions = records["masked_lm_positions"]
        self._weights = records["masked_lm_weights"] > 0
        self._segments = records["segment_ids"]
        self.original = unmask(self.shown, self._positions, records["masked_lm_ids"], self._weights)
        # One row for each prediction of the sample.
        self._row, prediction = np.nonzero(self._weights)
        self._place = self._positions[self._row, prediction]
        self.predicted = np.zeros(self.real.shape, bool)
        self.predicted[self._row, self._place] = True
        self.special = self._find_special()
        self.text = self.real & ~np.isin(self.original, (self.special.cls, self.special.sep))
        self.opens = self._find_words(records.get("token_boundary"))

    def _find_special(self):
        if (known := self._tokenizer) is not None:
            return _Special(known.cls_id, known.sep_id, known.mask_id, known.pad_id)
        # Every record is `[CLS] ... [SEP]` and padding, and nothing replaces so much as [MASK].
        last = np.maximum(self.real.sum(axis=1) - 1, 0)
        shown = self.shown[self.predicted]
        changed = shown[shown != self.original[self.predicted]]
        return _Special(
            cls=_commonest(self.original[:, 0]),
            sep=_commonest(self.original[np.arange(len(last)), last]),
            mask=_commonest(changed),
            pad=_commonest(self.original[~self.real]),
        )

    def _find_words(self, boundary):
        if boundary is None and self._tokenizer is None:
            return None
        if boundary is None:
            boundary = self._tokenizer.word_starts(self.masking.word_start)[self.original]
        return self.text & ((boundary != 0) | ~_shifted(self.text))

    def masks(self):
        """Returns the Masks of the sample."""
        counts, share = self._weights.sum(axis=1), self.masking.masked_lm_prob
        wanted = np.rint(self.real.sum(axis=1) * share)
        quota = np.clip(wanted, 1 if share else 0, self._info.max_predictions_per_seq)
        shown = self.shown[self._row, self._place]
        original = self.original[self._row, self._place]
        masked = shown == self.special.mask
        kept = ~masked & (shown == original)
        shares = [float(kind.sum() / max(len(kind), 1)) for kind in (masked, kept)]
        pieces, occurrences = np.unique(original, return_counts=True)
        top = np.argsort(-occurrences, kind="stable")[:_TOP_PIECES]
        return Masks(
            float(counts.mean()),
            float((counts >= quota).mean()),
            *shares,
            float((~masked & ~kept).sum() / max(len(shown), 1)),
            self._run_words(),
            [(self._name(pieces[at]), int(occurrences[at])) for at in top],
        )

    def _run_words(self):
        if self.opens is None:
            return None
        words = np.cumsum(self.opens)  # number of the word at each place, flat, from 1 on
        masked = np.zeros(words[-1] + 1, bool)
        masked[words[(self.predicted & self.text).ravel()]] = True
        begins_segment = (self.opens & ~_shifted(self.text))[self.opens]
        masked, before = masked[1:], masked[:-1]
        runs = np.cumsum(masked & ~(before & ~begins_segment))[masked]
        sizes, counts = np.unique(np.bincount(runs)[1:], return_counts=True)
        total = counts.sum()
        return {
            int(size): count / total for size, count in zip(sizes, counts.tolist(), strict=True)
        }

    def problems(self):
        """Lists what stands where it may not, one line for each kind."""
        special, config = self.special, self._info.config
        last = self.real & ~_shifted(self.real, -1)
        ends = last | (self.real & (np.diff(self._segments, axis=1, append=0) > 0))
        may_end = ends | (config.get("input_format") == "full-sentences")
        first = np.arange(self.real.shape[1]) == 0
        inserted = np.isin(self.shown, (special.cls, special.sep, special.pad))
        repeated = np.zeros(self.real.shape, bool)
        repeated[:, : self._positions.shape[1] - 1] = self._weights[:, 1:] & (
            np.diff(self._positions, axis=1) <= 0
        )
        findings = {
            "no [CLS] at the beginning": first & (self.original != special.cls),
            "no [SEP] at the end of a segment": ends & (self.original != special.sep),
            "[CLS] inside the text": self.real & ~first & (self.original == special.cls),
            "[SEP] inside the text": self.real & ~may_end & (self.original == special.sep),
            "[MASK] where nothing is masked": self.real & (self.original == special.mask),
            "padding inside the text": self.real & (self.original == special.pad),
            "a piece under the padding": ~self.real & (self.original != special.pad),
            "padding before the end": self.real & ~first & ~_shifted(self.real),
            "a prediction of [CLS], [SEP] or padding": self.predicted & ~self.text,
            "predictions that do not ascend": repeated,
        }
        if not self._info.static_masks:
            findings["masks, which the reader should draw"] = self.predicted
        elif config and self.masking.random_pieces == "ordinary":
            findings["a special piece as a random one"] = self.predicted & inserted
        return [self._report(what, found) for what, found in findings.items() if found.any()]

    def _report(self, what, found):
        rows = np.flatnonzero(found.any(axis=1))
        return (
            f"{len(rows)} of {len(found)} records have {what}, such as record "
            f"{self.numbers[rows[0]]} at place {found[rows[0]].argmax()}"
        )

    def example(self, row):
        """Makes the Example of a row."""
        real, orders = self.real[row], ORDERS.get(self._info.objective)
        numbers = np.unique(self._segments[row][real])
        return Example(
            int(self.numbers[row]),
            orders[int(self.labels[row])] if orders else "none",
            [
                "".join(
                    self._readable(row, place)
                    for place in np.flatnonzero(real & (self._segments[row] == number))
                ).strip()
                for number in numbers
            ],
            int((~real).sum()),
        )

    def _readable(self, row, place):
        original, shown = int(self.original[row, place]), int(self.shown[row, place])
        has_space, name = self._shown(original)
        joined = not has_space and original not in self.special
        if self.predicted[row, place]:
            hidden = self._tokenizer and shown == self.special.mask
            before = "MASK" if hidden else self._shown(shown)[1] or SPACE
            name = f"[{before}→{name or SPACE}]"
        return name if joined else f" {name}"

    def _shown(self, id):
        return self._tokenizer.shown(int(id)) if self._tokenizer else (True, str(id))

    def _name(self, id):
        return self._tokenizer.piece_of(int(id)) if self._tokenizer else str(id)


def _shifted(flags, by=1):
    """Returns at each place what stands one place before it (or after it), False at the edge."""
    shifted = np.zeros_like(flags)
    if by > 0:
        shifted[:, 1:] = flags[:, :-1]
    else:
        shifted[:, :-1] = flags[:, 1:]
    return shifted


def _commonest(ids):
    return int(np.bincount(ids).argmax()) if ids.size else -1
