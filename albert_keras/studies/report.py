"""Writes the report of a study: Markdown, one HTML file, pictures and CSV tables.

Nothing in it depends on the clock, so a study that was interrupted ends in the same bytes.
"""

import base64
import csv
from pathlib import Path
from typing import Any, NamedTuple

import jinja2

from albert_keras.studies.figures import draw_scores, draw_study_curves
from albert_keras.studies.planned import PlannedStudy
from albert_keras.studies.tables import (
    NOISE_MARK,
    Findings,
    Table,
    comparisons,
    findings_of,
    guesses,
    loss_table,
    orders,
    result_table,
    settings_table,
)
from data_pipeline.files import whole_file

#: Name of the folder of the reports, in the folder of a study.
REPORT_FOLDER = "report"
#: Fraction of the more frequent label of a sentence task from which a report warns.
_LARGEST_CHANCE = 0.6
_SCORE_COLUMNS = "run seed updates parameters evaluation score value count floor trained_on".split()

_RULE = (
    "Accuracies are means over the seeds, ± their standard deviation. The noise of a difference is "
    "a 95 % margin that adds two variances: the variance between seeds, estimated from all runs "
    "together (with Student's t), and the variance between held-out texts of the same size "
    f"(binomial). {NOISE_MARK} marks a difference that is not larger than the noise. With a single "
    "seed the variance between seeds is unknown and is not part of the noise."
)


class _Picture(NamedTuple):
    file: str
    title: str
    url: str  # data URL


class _Page(NamedTuple):
    """What both reports show."""

    title: str
    question: str
    source: Any  # Source or None
    setup: list[str]
    problems: list[str]
    scores: Table
    comparisons: list[str]
    orders: list[str]
    rule: str
    losses: Table
    settings: Table
    pictures: list[_Picture]


def write_report(
    folder: Path,
    planned: PlannedStudy,
    results: dict[tuple[str, int], dict[str, Any] | None],
    seeds: int,
) -> Path:
    """Writes all files of the report, and returns the path of the Markdown file.

    Args:
        folder: Where to write; older files are replaced.
        planned: With final updates.
        results: `result.json` of each run and seed; None for a training that is not finished.
        seeds: Number of seeds of each run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    findings = findings_of(planned, results)
    page = _Page(
        title=planned.study.title,
        question=planned.study.question,
        source=planned.study.source,
        setup=_setup(planned, findings, seeds),
        problems=_problems(planned, findings),
        scores=result_table(planned, findings),
        comparisons=comparisons(planned, findings) + guesses(planned, findings),
        orders=orders(planned, findings),
        rule=_RULE,
        losses=loss_table(planned, findings),
        settings=settings_table(planned),
        pictures=_pictures(folder, findings),
    )
    _write_scores(folder / "scores.csv", planned, findings)
    _write_csv(folder / "summary.csv", page.scores)
    for name in ("report.html", "report.md"):
        template = _environment(name.endswith(".html")).get_template(f"{name}.jinja")
        with whole_file(folder / name) as temporary:
            temporary.write_text(template.render(page=page), encoding="utf-8")
    return folder / "report.md"


def _setup(planned, findings, seeds):
    reference, data = planned.reference, planned.base_data
    training, pieces = reference.config.training, reference.vocabulary.size
    shape = reference.config.albert_config(pieces)
    equal = {
        "updates": "the same number of updates",
        "sequences": "the same number of sequences",
        "time": "the same expected time",
    }[planned.study.equal]
    return [
        f"Scale {planned.scale}, run `{reference.name}`: {reference.config.size} with "
        f"{shape.num_hidden_layers} layer{'s' if shape.num_hidden_layers > 1 else ''} of "
        f"{shape.hidden_size}, a vocabulary of {pieces:,} pieces, records of "
        f"{data.max_seq_length} tokens, batches of {training.batch_size}.",
        f"Each run has {seeds} seed{'s' if seeds > 1 else ''} of weights and order of records; the "
        f"records are the same for all seeds. The runs have {equal}.",
        f"The differences are relative to the run `{planned.study.reference_run}`. All models are "
        f"scored on the same held-out records, with fixed masks{_counts(planned, findings)}.",
        "Parameters are counted for the encoder with its pooler. `no head` means that the model "
        "was not trained on a sentence task and has no head for it.",
    ]


def _counts(planned, findings):
    """Returns what is scored in each column, such as ": SOP (3,540 pairs)"."""
    parts = []
    for column in findings.columns:
        is_sentence = planned.study.evaluate[column.name].score == "sentence"
        count = next((cell.count for cell in column.cells.values() if cell is not None), None)
        if count is not None:
            parts.append(
                f"{column.title} ({count:,} {'pairs' if is_sentence else 'masked tokens'})"
            )
    return f": {', '.join(parts)}" if parts else ""


def _problems(planned, findings):
    problems = []
    if findings.missing:
        problems.append(f"Not finished yet: {'; '.join(findings.missing)}.")
    if findings.diverged:
        problems.append(f"Diverged, and left out: {'; '.join(findings.diverged)}.")
    trained = {
        result["run"]
        for seeds in findings.results.values()
        for result in seeds
        for scores in result["scores"].values()
        if scores["trained_on"]
    }
    for column in findings.columns:
        is_sentence = planned.study.evaluate[column.name].score == "sentence"
        if is_sentence and (column.floor or 0) > _LARGEST_CHANCE:
            problems.append(
                f"{100 * column.floor:.0f} % of the records of {column.title} have the same label, "
                "so its accuracies say little: hold out more and longer documents."
            )
    if trained:
        problems.append(
            "Some of the held-out records are also training records of "
            f"{', '.join(sorted(trained))}; the column `trained_on` of scores.csv counts them."
        )
    return problems


def _pictures(folder, findings: Findings):
    pictures = []
    if any(cell for column in findings.columns for cell in column.cells.values()):
        path = draw_scores(findings.columns, folder / "scores.png")
        title = "A point for each seed, a line at the mean; dotted: the best constant guess"
        pictures.append((path, title))
    path = draw_study_curves(findings.results, folder / "curves.png")
    if path is not None:
        title = (
            "Masked-LM accuracy on held-out records with the objective and format of each run, "
            "a line for each seed"
        )
        pictures.append((path, title))
    return [
        _Picture(
            path.name,
            title,
            f"data:image/png;base64,{base64.b64encode(path.read_bytes()).decode()}",
        )
        for path, title in pictures
    ]


def _write_scores(path, planned, findings):
    """Writes each score of each training in a line of its own."""
    rows = []
    for run in planned.runs:
        for result in findings.results[run.name]:
            known = (run.name, result["seed"], result["updates"], result["parameters"])
            for name, scores in result["scores"].items():
                masked = scores["predictions"], scores["constant_guess"]
                for score, value, (count, floor) in (
                    ("masked_lm_accuracy", scores["masked_lm_accuracy"], masked),
                    ("masked_lm_loss", scores["masked_lm_loss"], (scores["predictions"], None)),
                    (
                        "sentence_accuracy",
                        scores["sentence_accuracy"],
                        (scores["sentences"], scores["chance"]),
                    ),
                ):
                    if value is not None:
                        rows.append(
                            (*known, name, score, value, count, floor, scores["trained_on"])
                        )
    _write_csv(path, Table(tuple(_SCORE_COLUMNS), rows))


def _write_csv(path, table):
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(table.header)
        writer.writerows(table.rows)


def _environment(escapes):
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=escapes,
    )
    environment.filters["cell"] = lambda text: text.replace("|", "\\|").replace("\n", " ")
    return environment
