"""Inspects a folder of records: statistics of a sample, examples to read, and a figure.

Everything is computed from the records alone, as a reader would see them, not from what the build
counted or intended.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.randomness import key_of, permute
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_folder import RecordFiles
from data_pipeline.reports.figures import Histogram, check_figure_path, draw_histograms
from data_pipeline.reports.record_sample import ORDERS, Example, Masks, Sample, Share, read_sample
from data_pipeline.tokenizers.tokenization import Tokenizer

_QUANTILES = {"min": 0, "5%": 5, "25%": 25, "median": 50, "75%": 75, "95%": 95, "max": 100}
_POSITION_BARS = 32
_NOTHING = np.zeros(0)
_TITLES = (
    "Predictions per sequence",
    "Words masked together",
    "Tokens shown at predictions",
    "Masked tokens by position",
)


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
    problems: list[str]
    examples: list[Example]


def inspect_records(
    folder: str | Path,
    examples: int = 3,
    seed: int = 0,
    sample: int = 2000,
    figure: str | Path | None = None,
) -> Inspection:
    """Inspects a random sample of the records of a folder.

    Args:
        folder: str or Path.
        examples: int. Number of records to show as text.
        seed: int. Selects the sample; the examples are its first records.
        sample: int. Number of records to inspect; they are held in memory.
        figure: str, Path or None. PNG file to draw the distributions to.

    Returns:
        Inspection.

    Raises:
        InputError: As `RecordFiles`; if there is no record or one of the sample is damaged;
            or as `check_figure_path`.
    """
    if figure is not None:
        check_figure_path(figure)
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
    inspection = Inspection(
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
        problems=seen.problems(),
        examples=[seen.example(row) for row in range(min(examples, size))],
    )
    if figure is not None:
        title = f"{folder.absolute().name}: {size} of {info.num_records} records"
        draw_histograms(figure, title, _panels(seen, inspection))
    return inspection


def _panels(seen, inspection):
    """Returns the panels of the figure of a sample: list of Histogram."""
    panels = [
        Histogram.of_values(
            "Length of sequences",
            seen.real.sum(axis=1),
            x_label="tokens, including special ones",
            y_label="fraction of sequences",
            note=f"{inspection.padding:.1%} of all positions are padding",
        ),
        _order_panel(inspection),
    ]
    if (masks := inspection.masks) is None:
        return panels + [Histogram(t, _NOTHING, note="sampled by the reader") for t in _TITLES]
    unmasked, random = seen.masking.leave_unmasked, seen.masking.replace_random
    return panels + [
        Histogram.of_values(
            _TITLES[0],
            seen.predicted.sum(axis=1),
            x_label="predictions",
            y_label="fraction of sequences",
            note=f"{masks.quota_reached:.1%} have the intended number",
        ),
        _runs_panel(_TITLES[1], masks.run_words, 2 * seen.masking.max_ngram),
        Histogram(
            _TITLES[2],
            np.array([masks.mask, masks.kept, masks.random]),
            labels=("[MASK]", "the original", "another token"),
            y_label="fraction of predictions",
            expected=np.array([1 - unmasked - random, unmasked, random]),
        ),
        _positions_panel(_TITLES[3], seen),
    ]


def _order_panel(inspection):
    if (label_1 := inspection.label_1) is None:
        return Histogram("Order of segments", _NOTHING, note="there is no order to predict")
    share, low, high = label_1
    return Histogram(
        "Order of segments",
        np.array([1 - share, share]),
        labels=ORDERS[inspection.objective],
        y_label="fraction of sequences",
        expected=np.array([0.5, 0.5]),
        ranges=np.array([[1 - high, 1 - low], [low, high]]),
        note="with 95 % intervals",
    )


def _runs_panel(title, run_words, longest):
    if run_words is None:
        return Histogram(title, _NOTHING, note="word starts are not known")
    heights = [run_words.get(size, 0) for size in range(1, longest)]
    heights.append(sum(share for size, share in run_words.items() if size >= longest))
    return Histogram(
        title,
        np.array(heights),
        labels=(*map(str, range(1, longest)), f"{longest}+"),
        x_label="words",
        y_label="fraction of runs",
        note="n-grams side by side count as one run",
    )


def _positions_panel(title, seen):
    size = seen.text.shape[1]
    edges = np.unique(np.linspace(0, size, _POSITION_BARS + 1).astype(int))
    masked = np.add.reduceat((seen.predicted & seen.text).sum(axis=0), edges[:-1])
    tokens = np.add.reduceat(seen.text.sum(axis=0), edges[:-1])
    return Histogram(
        title,
        masked / np.maximum(tokens, 1),
        edges=edges,
        x_label="position",
        y_label="fraction of the tokens there",
        note=f"{masked.sum() / max(tokens.sum(), 1):.1%} of all tokens of text",
    )
