"""Writes the page of a run: its facts are collected here, the wording is in the template."""

import base64
import logging
from pathlib import Path
from typing import NamedTuple

import jinja2

from albert_keras.config import AlbertConfig
from albert_keras.models.weight_count import model_line
from albert_keras.report import bytes_text
from albert_keras.run_overview.report.charts import Chart, Series, draw_chart, panels_of
from albert_keras.run_overview.report.data import record_tables, task_tables
from albert_keras.run_overview.report.problems import problems_of
from albert_keras.run_overview.report.samples import Samples, fill_samples
from albert_keras.run_overview.report.tables import (
    Table,
    evaluation_table,
    program_table,
    result_table,
    settings_tables,
    wrong_answers,
)
from albert_keras.run_overview.summary import (
    DAMAGED,
    RunSummary,
    scores_of,
    summarize,
    training_folders,
)
from albert_keras.runs.run_record import read_record
from albert_keras.tasks.results import best_seed, read_results
from albert_keras.training.loop.curves import PANELS, stage_edges
from albert_keras.training.loop.log_file import read_evaluations, read_log, read_stages
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_output_folder, whole_file
from data_pipeline.progress import format_duration
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

#: Name of the page in the folder of its run.
REPORT = "report.html"
_SAMPLES = 6
_PICTURES = ("confusion.png", "scores.png")


class _Page(NamedTuple):
    """What the template shows."""

    summary: RunSummary
    name: str
    model: str  # a line about its shape
    facts: list[tuple[str, str]]  # the few most important numbers
    scores: Table | None
    problems: list[str]
    charts: list[Chart]
    samples: Samples | None
    no_samples: str  # why there are none
    answers: list[Table]
    pictures: list[tuple[str, str]]  # name and data URL
    data: list[Table]
    settings: list[Table]
    program: Table


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    data: str | Path | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes a page about a pre-training or a fine-tuning, and returns its path.

    Args:
        run: The folder of the run.
        out: The HTML file; None writes `report.html` in that folder and replaces an older one.
        data: Held-out records, built with the tokenizer of a pre-training, for samples of filled
            masks; None takes the records that `evaluate` scored last, if they still exist.
        overwrite: Whether to replace `out` if it exists.

    Raises:
        InputError: If the folder is not a run, the run is damaged, `data` does not suit the run,
            or `out` exists.
    """
    folder = Path(run)
    path = folder / REPORT if out is None else Path(out)
    if out is not None and not overwrite:
        if path.exists():
            raise InputError(
                f"`{path}` exists. Give --overwrite, or choose another --out.",
                Mistake.OUTPUT_EXISTS,
            )
        check_output_folder(path)
    text = _template().render(page=_page(folder, None if data is None else Path(data)))
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def _page(folder, data):
    summary = summarize(folder)
    if summary.kind == DAMAGED:
        raise InputError(summary.problem)
    trainings = training_folders(folder)
    started = [path for path in trainings if (path / "run.json").is_file()]
    if not started:
        raise InputError(f"`{folder}` has no `run.json`: its training has not started yet.")
    record, tokenizer = read_record(started[0] / "run.json"), _tokenizer(started[0])
    series = [Series(read_log(path), read_evaluations(path), path.name) for path in started]
    is_finetuning = summary.kind == "finetuning"
    result = read_results(folder) if (folder / "results.json").is_file() else None
    if is_finetuning and data is not None:
        raise InputError(
            "`--data` must be given only for a pre-training run, whose report fills masks."
        )
    samples, no_samples = None, ""
    if not is_finetuning:
        samples, no_samples = _samples(folder, data, series[0].evaluations)
    logger.info("reading the statistics of the data")
    edges = stage_edges(read_stages(started[0]))
    panels = panels_of(summary.metric or "accuracy") if is_finetuning else PANELS
    charts = [draw_chart(panel, series, edges) for panel in panels]
    return _Page(
        summary=summary,
        name=folder.absolute().name,
        model=_model(summary, record),
        facts=_facts(summary, series, result),
        scores=result_table(result) if result else _scores(folder, series, is_finetuning),
        problems=problems_of(summary, record, series, result),
        charts=[chart for chart in charts if chart.svg],
        samples=samples,
        no_samples=no_samples,
        answers=wrong_answers(folder, result) if result else [],
        pictures=list(_pictures(folder)),
        data=task_tables(record, tokenizer) if is_finetuning else record_tables(record),
        settings=settings_tables(record),
        program=program_table(record),
    )


def _scores(folder, series, is_finetuning):
    if not is_finetuning:
        return evaluation_table(series[0].evaluations)
    cells = [(name, f"{value:.4g}") for name, value in scores_of(folder).items()]
    return Table("Scores so far", ("score", "value"), cells, numbers=(1,)) if cells else None


def _samples(folder, data, evaluations):
    """Returns samples, or None and the reason."""
    if data is not None:
        return _filled(folder, data), ""
    scored = [Path(scores["path"]) for _, scores in evaluations if scores.get("path")]
    if not scored or not scored[-1].is_dir():
        return None, "Held-out records are needed to fill masks: give them with --data."
    try:
        return _filled(folder, scored[-1]), ""
    except InputError as error:
        return None, str(error)


def _filled(folder, data):
    logger.info("filling masks of `%s`", data)
    return fill_samples(folder, data, _SAMPLES)


def _tokenizer(folder):
    path = folder / TOKENIZER_FOLDER
    return Tokenizer.load(path) if path.is_dir() else None


def _model(summary, record):
    shape = AlbertConfig.from_dict(record["albert_config"])
    return (
        f"{summary.model}: {model_line(shape)}, hidden size {shape.hidden_size}, "
        f"{shape.vocab_size:,} pieces"
    )


def _facts(summary, series, result):
    steps = "" if summary.steps in (None, summary.step) else f" of {summary.steps:,}"
    facts = [("steps", f"{summary.step:,}{steps}")]
    if summary.score is not None:
        what = "" if summary.is_held_out else ", training"
        metric = summary.metric.replace("_", " ").replace("lm", "LM")
        facts.append((f"{metric}{what}", f"{summary.score:.3f}"))
    if result:
        facts.append(("best step", f"{best_seed(result).best_step:,}"))
    facts.append(("training time", format_duration(summary.seconds)))
    lines = [line for one in series for line in one.log[-20:]]
    rates = sorted(line["tokens_per_second"] for line in lines if "tokens_per_second" in line)
    if rates:
        facts.append(("tokens per second", f"{rates[len(rates) // 2]:,.0f}"))
    return [*facts, ("disk", bytes_text(summary.bytes))]


def _pictures(folder):
    for name in _PICTURES:
        if (path := folder / name).is_file():
            content = base64.b64encode(path.read_bytes()).decode()
            yield name.removesuffix(".png"), f"data:image/png;base64,{content}"


def _template():
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    return environment.get_template("report.html.jinja")
