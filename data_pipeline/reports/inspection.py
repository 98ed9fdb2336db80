"""What is in a folder of records: numbers of a sample, and examples to read.

Everything is computed from the records alone, as a reader would see them, not from what the build
counted or meant to do.
"""

from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.randomness import key_of, permute
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_folder import RecordFiles
from data_pipeline.reports.figures import check_figure_path, draw_histograms
from data_pipeline.reports.inspection_figure import histograms
from data_pipeline.reports.record_sample import Example, Masks, Sample, Share, read_sample
from data_pipeline.tokenizers.tokenization import Tokenizer

_QUANTILES = {"min": 0, "5%": 5, "25%": 25, "median": 50, "75%": 75, "95%": 95, "max": 100}


class Inspection(NamedTuple):
    """What `inspect_records` found; shares and quantiles are those of the sample.

    Attributes:
        folder: Path.
        num_records, num_sampled: int.
        max_seq_length, max_predictions_per_seq: int. S and P.
        objective: str. What a label 1 means, see DatasetInfo.
        input_format: str or None. See PretrainingDataConfig; None for foreign records.
        padding: float. Share of all places.
        lengths: dict of str to int. Quantiles of the pieces of a record, special ones included.
        label_1: Share or None. None if the objective is "none".
        word_starts: float or None. Share of pieces of text that open a word.
        masks: Masks or None. None if they are drawn by the reader.
        problems: list of str.
        examples: list of Example.
    """

    folder: Path
    num_records: int
    num_sampled: int
    max_seq_length: int
    max_predictions_per_seq: int
    objective: str
    input_format: str | None
    padding: float
    lengths: dict[str, int]
    label_1: Share | None
    word_starts: float | None
    masks: Masks | None
    problems: list[str]
    examples: list[Example]


def inspect_records(folder, examples=3, seed=0, sample=2000, figure=None):
    """Looks at a random sample of the records of a folder.

    Args:
        folder: str or Path.
        examples: int. Records to make readable.
        seed: int. Decides the sample; the examples are its first.
        sample: int. Records to look at; they are held in memory.
        figure: str, Path or None. PNG file to draw the distributions into.

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
            "A sample should have one record or more, and `examples` should not be negative. "
            f"Received: sample={sample}, examples={examples}, and {info.num_records} records in "
            f"`{folder}`."
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
            name: int(np.percentile(lengths, at, method="inverted_cdf"))
            for name, at in _QUANTILES.items()
        },
        label_1=None if info.objective == "none" else Share.of(int(seen.labels.sum()), size),
        word_starts=None if seen.opens is None else int(seen.opens.sum()) / max(in_text, 1),
        masks=seen.masks() if info.static_masks else None,
        problems=seen.problems(),
        examples=[seen.example(row) for row in range(min(examples, size))],
    )
    if figure is not None:
        title = f"{folder.absolute().name}: {size} of {info.num_records} records"
        draw_histograms(figure, title, histograms(seen, inspection))
    return inspection
