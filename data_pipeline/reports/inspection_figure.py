"""The picture of a sample of records: panels of histograms."""

import numpy as np

from data_pipeline.reports.figures import Histogram
from data_pipeline.reports.record_sample import ORDERS

_PLACES_DRAWN = 32
_NOTHING = np.zeros(0)


def histograms(seen, inspection):
    """Makes the panels of the picture of a sample."""
    panels = [
        Histogram.of_values(
            "Length of sequences",
            seen.real.sum(axis=1),
            x_label="pieces, special ones included",
            y_label="share of sequences",
            note=f"{inspection.padding:.1%} of all places are padding",
        ),
        _order_panel(inspection),
    ]
    if inspection.masks is None:
        names = "Predictions per sequence", "Words masked together"
        names += "What stands at a prediction", "Masked pieces over the sequence"
        return panels + [Histogram(name, _NOTHING, note="drawn by the reader") for name in names]
    masks = inspection.masks
    return panels + [
        Histogram.of_values(
            "Predictions per sequence",
            seen.predicted.sum(axis=1),
            x_label="predictions",
            y_label="share of sequences",
            note=f"{masks.quota_reached:.1%} reach their quota",
        ),
        _runs_panel(masks.run_words, 2 * seen.masking.max_ngram),
        Histogram(
            "What stands at a prediction",
            np.array([masks.mask, masks.kept, masks.random]),
            labels=("[MASK]", "the piece itself", "another piece"),
            y_label="share of predictions",
            expected=np.array([0.8, 0.1, 0.1]),
        ),
        _places_panel(seen),
    ]


def _order_panel(inspection):
    if (label_1 := inspection.label_1) is None:
        return Histogram("Order of segments", _NOTHING, note="there is no order to predict")
    share, low, high = label_1
    return Histogram(
        "Order of segments",
        np.array([1 - share, share]),
        labels=ORDERS[inspection.objective],
        y_label="share of sequences",
        expected=np.array([0.5, 0.5]),
        ranges=np.array([[1 - high, 1 - low], [low, high]]),
        note="with 95 % intervals",
    )


def _runs_panel(run_words, longest):
    title = "Words masked together"
    if run_words is None:
        return Histogram(title, _NOTHING, note="where words begin is not known")
    heights = [run_words.get(size, 0) for size in range(1, longest)]
    heights.append(sum(share for size, share in run_words.items() if size >= longest))
    return Histogram(
        title,
        np.array(heights),
        labels=(*map(str, range(1, longest)), f"{longest}+"),
        x_label="words",
        y_label="share of runs",
        note="n-grams side by side count as one run",
    )


def _places_panel(seen):
    size = seen.text.shape[1]
    edges = np.unique(np.linspace(0, size, _PLACES_DRAWN + 1).astype(int))
    masked = np.add.reduceat((seen.predicted & seen.text).sum(axis=0), edges[:-1])
    pieces = np.add.reduceat(seen.text.sum(axis=0), edges[:-1])
    return Histogram(
        "Masked pieces over the sequence",
        masked / np.maximum(pieces, 1),
        edges=edges,
        x_label="place",
        y_label="share of the pieces there",
        note=f"{masked.sum() / max(pieces.sum(), 1):.1%} of all pieces of text",
    )
