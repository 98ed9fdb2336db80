"""Files about answers to labelled examples: the answers, the wrong ones, and what is confused."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from albert_keras.report import new_figure, save_figure, shortened
from albert_keras.tasks.task import Error, Task, one_line
from data_pipeline.files import naming, whole_text

#: Name of the file of wrong answers.
ERRORS = "errors.tsv"
#: Up to this many classes a cell shows its proportion, and each class its name.
_CELLS_UP_TO, _NAMES_UP_TO = 20, 60
_LONGEST_NAME = 24


def write_answers(
    folder: str | os.PathLike, task: Task, split: str, examples: list, answers: list
) -> dict:
    """Writes answers in the task's files, a table of the wrong ones, and a figure.

    Args:
        folder: Is created if missing; older files of these names are replaced.
        examples: Labelled.

    Returns:
        dict of str to str or list of str. Paths: "answers", "errors", and "confusions" of classes.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    value = task.scores(examples, answers)[task.metric]
    title = f"{task.config.name}, {split}: {task.metric} {value:.4g}"
    files = {
        "answers": [str(path) for path in task.write(folder, split, examples, answers)],
        "errors": str(write_errors(folder / ERRORS, task.errors(examples, answers), task.fields)),
    }
    with naming(folder):
        confusion = task.confusion(examples, answers)
        if confusion is not None:
            files["confusions"] = str(draw_confusion(folder / "confusion.png", *confusion, title))
    return files


def write_errors(path: str | Path, errors: Iterable[Error], fields: Iterable[str]) -> Path:
    """Writes wrong answers, in their order, as tab-separated values under a header.

    Columns are `id`, `confidence`, `truth`, `answer` and the `fields` of the task. Nothing is
    quoted; white space inside a cell becomes a single space. An older file is replaced.
    """
    header = ("id", "confidence", "truth", "answer", *fields)
    rows = ((one.id, f"{one.confidence:.6g}", one.truth, one.answer, *one.texts) for one in errors)
    with whole_text(path) as file:
        file.writelines("\t".join(map(one_line, row)) + "\n" for row in (header, *rows))
    return Path(path)


def draw_confusion(path: str | Path, matrix, names: Sequence[str], title: str) -> Path:
    """Draws a confusion matrix as PNG: rows are the truth, columns the answers.

    Colours and cells show the proportions of a row. With many classes cells are empty, and some
    classes have no name.

    Args:
        matrix: int [C, C].
        names: C of them. Long names are shortened in the middle.
    """
    from sklearn.metrics import ConfusionMatrixDisplay

    matrix, count = np.asarray(matrix), len(names)
    every = -(-count // _NAMES_UP_TO)
    shown = ["" if number % every else _drawable(name, number) for number, name in enumerate(names)]
    side = float(np.clip(2.5 + 0.42 * count, 4.5, 15))
    figure, panels = new_figure(side + 2.2, side + 0.8, title)
    axes = panels[0, 0]
    proportions = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    display = ConfusionMatrixDisplay(proportions, display_labels=shown)
    display.plot(
        ax=axes,
        cmap="Blues",
        include_values=count <= _CELLS_UP_TO,
        values_format=".0%",
        xticks_rotation=90 if count > 4 else 0,
        im_kw={"vmin": 0, "vmax": 1},
    )
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_parse_math(False)
    axes.set(xlabel="answer", ylabel="truth")
    return save_figure(figure, path)


def _drawable(name, number):
    """Shortens a long name in the middle; a name the font cannot draw becomes its number."""
    from matplotlib.font_manager import findfont, get_font

    name = " ".join(str(name).split())
    letters = get_font(findfont("DejaVu Sans")).get_charmap()
    if not name or any(ord(letter) not in letters for letter in name):
        return f"#{number}"
    return shortened(name, _LONGEST_NAME, middle=True)
