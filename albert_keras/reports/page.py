"""Writes the page of a run: its facts are collected here, the wording is in the template."""

import base64
import io
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2

from albert_keras.config import AlbertConfig
from albert_keras.report import count_of
from albert_keras.reports import tables
from albert_keras.reports.curves import curves_of
from albert_keras.reports.overview import RunContent, RunSummary, read_run, summarize
from albert_keras.runs.learned_context import context_verdict
from albert_keras.runs.trained_data import RECORDS, Overlap
from albert_keras.shape import model_line
from albert_keras.tasks.results import cautions, verdict_of
from data_pipeline.errors import InputError
from data_pipeline.files import whole_text
from data_pipeline.progress import format_duration

#: Name of the page in the folder of its run.
REPORT = "report.html"
#: Pictures that are shown if they are in the folder.
_PICTURES = ("confusion.png",)


def write_report(run: str | Path) -> Path:
    """Writes `report.html` in the folder of a pre-training or a fine-tuning, and returns its path.

    Raises:
        InputError: If the folder is not a run, or the run is damaged.
    """
    folder = Path(run)
    path = folder / REPORT
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    text = environment.get_template("report.html.jinja").render(**_facts_of(folder))
    with whole_text(path) as file:
        file.write(text)
    return path


def _facts_of(folder: Path) -> dict[str, Any]:
    """Returns what the template shows."""
    run = read_run(folder)
    if not run.trainings:
        raise InputError(f"`{folder}` has no `run.json`: its training has not started yet.")
    summary, first = summarize(run), run.trainings[0]
    if run.result is None:
        scores, answers = tables.evaluation_table(first.evaluations), []
    else:
        scores = tables.result_table(run.result)
        answers = tables.wrong_answers(folder, run.result)
    shape = AlbertConfig.from_dict(first.record["albert_config"])
    verdict = verdict_of(run.result) if run.result else None
    return {
        "summary": summary,
        "name": folder.absolute().name,
        "model": f"{summary.model}: {model_line(shape)}, hidden size {shape.hidden_size}, "
        f"{shape.vocab_size:,} pieces",
        "facts": _numbers(summary),  # the few most important ones
        "scores": scores,
        "verdict": verdict.sentence if verdict else "",
        "problems": list(_problems(summary, run)),
        "curves": list(_curves(run)),
        "answers": answers,
        "pictures": list(_pictures(folder)),
        "settings": tables.settings_tables(first.record),
    }


def _numbers(summary):
    steps = "" if summary.steps in (None, summary.step) else f" of {summary.steps:,}"
    numbers = [("steps", f"{summary.step:,}{steps}")]
    if summary.score is not None:
        metric = summary.metric.replace("_", " ").replace("lm", "LM")
        numbers.append((metric, f"{summary.score:.3f}"))
    return [*numbers, ("training time", format_duration(summary.seconds))]


def _problems(summary: RunSummary, run: RunContent) -> Iterator[str]:
    """Yields sentences: is the run complete, was every update made, what was trained on?"""
    if run.result is None and summary.steps is not None and summary.step < summary.steps:
        yield (
            f"The run is not complete: step {summary.step:,} of {summary.steps:,}. Repeat the "
            "command that started it to resume it."
        )
    for one in run.trainings:
        skipped = sum(line.get("skipped", 0) for line in one.log)
        if skipped:
            yield (
                f"{count_of(skipped, 'update')} of {one.path.name} skipped, because the gradients "
                "were not finite or far larger than before."
            )
    first = run.trainings[0]
    if run.result is None and first.evaluations:
        scores = first.evaluations[-1][1]
        overlap = Overlap.of(scores.get("overlap"))
        if overlap and overlap.normalised:
            yield f"{overlap.sentence(RECORDS)}."
    scored = [scores for _, scores in first.evaluations if "num_predictions" in scores]
    if scored and not (verdict := context_verdict(scored[-1]))[0]:
        yield f"The model is {verdict[1]}."
    yield from cautions(run.result) if run.result else ()


def _curves(run):
    """Yields name and address of a picture for each training that has logged anything."""
    for folder, _, log, evaluations in run.trainings:
        if log or evaluations:
            picture = io.BytesIO()
            curves_of(folder).savefig(picture, format="png", dpi=100)
            yield folder.name, _address(picture.getvalue())


def _pictures(folder):
    for name in _PICTURES:
        if (path := folder / name).is_file():
            yield name.removesuffix(".png"), _address(path.read_bytes())


def _address(png):
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
