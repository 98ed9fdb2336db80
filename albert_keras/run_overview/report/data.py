"""Statistics of the data that a run was trained on, as far as they are still there."""

from pathlib import Path
from typing import Any

from albert_keras.run_overview.report.tables import Table
from albert_keras.tasks.example_findings import findings
from albert_keras.tasks.example_report import report_task
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.reports.inspection import inspect_records
from data_pipeline.tokenizers.tokenization import Tokenizer

_HEADER = ("what", "value")
#: Names of the counts of a build, in the order of the table.
_COUNTS = {
    "documents": "documents",
    "sentences": "sentences",
    "bytes": "bytes of text",
    "pieces": "pieces",
    "predictions": "masked tokens",
}
#: The number of records, and of examples of a split, whose tokens are counted.
_SAMPLE = 2000


def record_tables(record: dict[str, Any]) -> list[Table]:
    """Returns tables of the records of a pre-training: one for each stage, if it has several.

    `record` is the content of `run.json`; what it does not contain comes from the folder of the
    records, and a line says if that is not there any more.
    """
    data = record["data"]
    stages = data.get("stages") or []
    described = [stage | {"stage": number} for number, stage in enumerate(stages, 1)] or [data]
    return [_records(one) for one in described if "path" in one] or [_records(data)]


def task_tables(record: dict[str, Any], tokenizer: Tokenizer | None) -> list[Table]:
    """Returns a table for each split of a fine-tuning; `record` is the content of `run.json`."""
    config = record["config"]["task"]
    try:
        task = build_task(TaskConfig(**config))
        report = report_task(task, tokenizer, most_encoded=_SAMPLE)
    except InputError as error:
        count = record["data"].get("num_records")
        cells = [("training examples", f"{count:,}")] if count else []
        return [Table(config["name"], _HEADER, [*cells, ("more", f"not available: {error}")])]
    tables = []
    for split, one in report.splits.items():
        cells = [(finding.name, finding.text) for finding in findings(report, split)]
        tables.append(Table(f"{split}: {one.examples:,} examples", _HEADER, cells))
    return tables


def _records(data):
    folder = Path(data.get("path", ""))
    name = f"stage {data['stage']}: {folder}" if "stage" in data else str(folder)
    cells = [
        (label, f"{data[key]:,}")
        for key, label in (
            ("num_records", "records"),
            ("max_seq_length", "tokens per record, padding included"),
            ("max_predictions_per_seq", "masked tokens per record, at most"),
        )
        if data.get(key) is not None
    ]
    if data.get("builder_version"):
        cells.append(("built by", f"albert-keras {data['builder_version']}"))
    try:
        info = DatasetInfo.load(folder)
        if info.fingerprint != data["fingerprint"]:
            raise InputError(f"`{folder}` contains other records now.")
        found = inspect_records(folder, examples=0, sample=_SAMPLE)
    except InputError as error:
        return Table(name, _HEADER, [*cells, ("more", f"not available: {error}")])
    counts = info.statistics
    cells += [(label, f"{counts[key]:,}") for key, label in _COUNTS.items() if counts.get(key)]
    return Table(name, _HEADER, [*cells, *_sampled(found)])


def _sampled(found):
    """Yields rows about a sample of records."""
    yield "objective of the segments", found.objective
    yield "padding", f"{found.padding:.1%} of the positions"
    lengths = ", ".join(f"{name} {value}" for name, value in found.lengths.items())
    yield "tokens of a record, without padding", lengths
    if found.label_1 is not None:
        share, low, high = found.label_1
        yield "records with label 1", f"{share:.1%} (95 % interval {low:.1%} to {high:.1%})"
    if found.masks is None:
        yield "masks", "sampled again in each epoch"
    else:
        yield "masked tokens per record", f"{found.masks.per_sequence:.1f}"
        most = ", ".join(piece for piece, _ in found.masks.top_pieces)
        yield "most frequent masked tokens", most
    yield from (("problem", problem) for problem in found.problems)
