"""What an analysis writes: a folder of tables as CSV, all numbers as JSON, and figures."""

import csv
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from albert_keras.report import save_figure
from data_pipeline.files import check_output_folder, naming, whole_folder


def check_out(out: str | Path | None) -> None:
    """Raises InputError unless a new folder can be written at `out`, before any work is done."""
    if out is not None:
        check_output_folder(out)


def write_analysis(
    out: str | Path | None,
    record: Mapping[str, Any],
    tables: Mapping[str, Iterable[Mapping[str, Any]]],
    figures: Mapping[str, Callable[[], Any]],
) -> list[str]:
    """Writes the files of an analysis into a new folder, which appears whole or not at all.

    Args:
        out: The folder. None writes nothing.
        record: All numbers, plain JSON; the file has the name of the first table.
        tables: Name -> rows with the same keys; NAME.csv.
        figures: Name -> function that returns a matplotlib Figure; NAME.png.

    Returns:
        Paths of the files.
    """
    if out is None:
        return []
    out = Path(out)
    with naming(out), whole_folder(out) as folder:
        for name, rows in tables.items():
            _write_csv(folder / f"{name}.csv", list(rows))
        first = next(iter(tables))
        text = json.dumps(record, indent=1, ensure_ascii=False)
        (folder / f"{first}.json").write_text(text + "\n", encoding="utf-8")
        for name, draw in figures.items():
            save_figure(draw(), folder / f"{name}.png")
        names = sorted(path.name for path in folder.iterdir())
    return [str(out / name) for name in names]


def _write_csv(path, rows):
    with open(path, "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, rows[0] if rows else [])
        writer.writeheader()
        writer.writerows(rows)
