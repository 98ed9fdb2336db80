"""Writes the report of a study: Markdown, pictures and CSV tables.

Nothing in it depends on the clock, so a study that was interrupted ends in the same bytes.
"""

import csv
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from albert_keras.report import (
    COLOURS,
    count_of,
    legend_below,
    markdown_table,
    new_figure,
    percent,
    save_figure,
    tidy,
)
from albert_keras.research.study.planned import PlannedStudy
from albert_keras.research.study.results import Column, Findings, count_in_order, findings_of
from albert_keras.runs.run_record import flat_values
from data_pipeline.files import whole_file

#: Name of the folder of the reports, in the folder of a study.
REPORT_FOLDER = "report"
#: Fraction of the more frequent label of a sentence task from which a report warns.
_LARGEST_CHANCE = 0.6
_SCORE_COLUMNS = "run seed updates parameters evaluation score value count floor trained_on".split()
_EQUAL = {
    "updates": "the same number of updates",
    "sequences": "the same number of sequences",
    "time": "the same expected time",
}
#: Marks a difference from the reference that is not larger than the noise.
_NOISE = "≈"
_RULE = (
    "Accuracies are means over the seeds, ± their standard deviation. The noise of a difference is "
    "a 95 % margin that adds two variances: the variance between seeds, estimated from all runs "
    "together (with Student's t), and the variance between held-out texts of the same size "
    f"(binomial). {_NOISE} marks a difference that is not larger than the noise. With a single "
    "seed the variance between seeds is unknown and is not part of the noise."
)
_PICTURES = {
    "scores.png": "A point for each seed, a line at the mean; dotted: the best constant guess",
    "curves.png": "Masked-LM accuracy on held-out records with the objective and format of each "
    "run, a line for each seed",
}
_CLOSING = "Every score of every seed is in `scores.csv`, the first table in `summary.csv`."


def write_report(
    folder: Path,
    planned: PlannedStudy,
    results: dict[tuple[str, int], dict[str, Any]],
    seeds: int,
) -> Path:
    """Writes all files of the report, and returns the path of the Markdown file.

    Args:
        folder: Where to write; older files are replaced.
        planned: With final updates.
        results: `result.json` of each run and seed.
        seeds: Number of seeds of each run.
    """
    folder.mkdir(parents=True, exist_ok=True)
    findings = findings_of(planned, results)
    table = result_table(planned, findings)
    _write_csv(folder / "summary.csv", *table)
    _write_csv(folder / "scores.csv", _SCORE_COLUMNS, _scores(planned, findings))
    pictures = draw_pictures(folder, findings)
    lines = list(_lines(planned, findings, table, seeds, pictures))
    with whole_file(folder / "report.md") as temporary:
        temporary.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return folder / "report.md"


def _lines(planned, findings, table, seeds, pictures):
    study = planned.study
    yield f"# {study.title}"
    if study.question:
        yield from ("", study.question)
    if study.source:
        source = study.source
        note = f" {source.note}" if source.note else ""
        yield from ("", f"Source: [{source.paper}, {source.table}]({source.url}).{note}")
    yield ""
    yield from (f"- {line}" for line in _setup(planned, findings, seeds))
    if problems := list(_problems(findings)):
        yield from ("", "## Warnings", "", *(f"- {line}" for line in problems))
    yield from ("", "## Scores", "", *markdown_table(*table), "", _RULE, "")
    yield from (f"- {line}" for line in orders(planned, findings))
    for name in pictures:
        yield from ("", f"![{_PICTURES[name]}]({name})", "", f"{_PICTURES[name]}.")
    yield from ("", "## Settings", "", *markdown_table(*settings_table(planned)), "", _CLOSING)


def _setup(planned, findings, seeds):
    reference, data = planned.reference, planned.base_data
    training, pieces = reference.config.training, reference.vocabulary.size
    shape = reference.config.albert_config(pieces)
    counts = []
    for column in findings.columns:
        count = next((cell.count for cell in column.cells.values() if cell is not None), None)
        if count is not None:
            noun = "pairs" if column.is_sentence else "masked tokens"
            counts.append(f"{column.title} ({count:,} {noun})")
    yield (
        f"Scale {planned.scale}, run `{reference.name}`: {reference.config.size} with "
        f"{count_of(shape.num_hidden_layers, 'layer')} of {shape.hidden_size}, a vocabulary of "
        f"{pieces:,} pieces, records of {data.max_seq_length} tokens, batches of "
        f"{training.batch_size}."
    )
    yield (
        f"Each run has {count_of(seeds, 'seed')} of weights and order of records; the records are "
        f"the same for all seeds. The runs have {_EQUAL[planned.study.equal]}."
    )
    yield (
        f"The differences are relative to the run `{planned.study.reference_run}`. All models are "
        "scored on the same held-out records, with fixed masks"
        f"{': ' if counts else ''}{', '.join(counts)}."
    )
    yield (
        "Parameters are counted for the encoder with its pooler. `no head` means that the model "
        "was not trained on a sentence task and has no head for it."
    )


def _problems(findings):
    if findings.diverged:
        yield f"Diverged, and left out: {'; '.join(findings.diverged)}."
    for column in findings.columns:
        if column.is_sentence and (column.floor or 0) > _LARGEST_CHANCE:
            yield (
                f"{100 * column.floor:.0f} % of the records of {column.title} have the same label, "
                "so its accuracies say little: hold out more and longer documents."
            )
    results = (result for seeds in findings.results.values() for result in seeds)
    trained = {
        result["run"]
        for result in results
        if any(scores["trained_on"] for scores in result["scores"].values())
    }
    if trained:
        yield (
            "Some of the held-out records are also training records of "
            f"{', '.join(sorted(trained))}; the column `trained_on` of scores.csv counts them."
        )


def result_table(planned: PlannedStudy, findings: Findings) -> tuple[list[str], list[list[str]]]:
    """Returns header and rows: our scores, differences from the reference, published scores."""
    source, reference = planned.study.source, planned.study.reference_run
    measures = source.measures if source else {}
    header = ["run", "parameters", "updates", "seeds"]
    for column in findings.columns:
        header += [column.title, f"{column.title}, difference"]
    header += [f"published: {measure.title}" for measure in measures.values()]
    published = {key: _published(planned.runs, key) for key in measures}
    rows = []
    for run in planned.runs:
        seeds = findings.results[run.name]
        known = [f"{seeds[0]['parameters'] / 1e6:,.2f} million"] if seeds else ["", ""]
        row = [run.name, *known, *([f"{seeds[0]['updates']:,}"] if seeds else [])]
        row.append(str(len(seeds)))
        for column in findings.columns:
            row += [_cell(column.cells[run.name]), _difference(column, run.name, reference)]
        rows.append(row + [published[key].get(run.name, "") for key in measures])
    return header, rows


def settings_table(planned: PlannedStudy) -> tuple[list[str], list[list[str]]]:
    """Returns header and rows: in what each run differs from the base."""
    rows = []
    for run in planned.study.runs:
        own = run.scales.get(planned.scale)
        # The settings of the scale replace those of the run.
        changes = flat_values(run.values()) | flat_values(own.values() if own else {})
        listing = ", ".join(
            f"{name}: {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}"
            for name, value in changes.items()
        )
        rows.append([run.name, listing or "nothing"])
    return ["run", "differs from the base in"], rows


def orders(planned: PlannedStudy, findings: Findings) -> Iterable[str]:
    """Yields a sentence for each published column about the order of the runs."""
    source = planned.study.source
    columns = {column.name: column for column in findings.columns}
    for key, measure in (source.measures if source else {}).items():
        if measure.compares is None:
            continue
        published = {run.name: run.published[key] for run in planned.runs if key in run.published}
        column = columns[measure.compares]
        agreeing, pairs = count_in_order(column, measure, published)
        found = f"{agreeing} of {pairs} pairs that differ by more than the noise are in that order"
        if not pairs:
            found = "no pair differs by more than the noise, so that the order cannot be compared"
        yield (
            f"Order of the runs by {column.title} here and by the published {measure.title}: "
            f"{found}."
        )


def _cell(cell):
    if cell is None:
        return "no head"
    return percent(cell.mean) + ("" if cell.spread is None else f" ± {100 * cell.spread:.1f}")


def _difference(column, run, reference):
    difference = column.difference(run, reference)
    if run == reference or difference is None:
        return ""
    mark = f" {_NOISE}" if column.is_noise(run, reference) else ""
    return f"{100 * difference:+.1f}{mark}"


def _published(runs, key):
    """Returns the published values of a measure as text, by run, with the same decimals."""
    values = {run.name: run.published[key] for run in runs if key in run.published}
    decimals = max((len(f"{value:g}".partition(".")[2]) for value in values.values()), default=0)
    return {name: f"{value:.{decimals}f}" for name, value in values.items()}


def _scores(planned, findings):
    """Yields each score of each training."""
    for run in planned.runs:
        for result in findings.results[run.name]:
            known = (run.name, result["seed"], result["updates"], result["parameters"])
            for name, scores in result["scores"].items():
                masked, pairs = scores["predictions"], scores["sentences"]
                for score, count, floor in (
                    ("masked_lm_accuracy", masked, scores["constant_guess"]),
                    ("masked_lm_loss", masked, None),
                    ("sentence_accuracy", pairs, scores["chance"]),
                ):
                    if scores[score] is not None:
                        found = (name, score, scores[score], count, floor, scores["trained_on"])
                        yield (*known, *found)


def _write_csv(path, header: Sequence[str], rows: Iterable[Sequence[Any]]):
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


def draw_pictures(folder: Path, findings: Findings) -> list[str]:
    """Draws the scores of all runs, and their curves; returns the names of the files."""
    drawn = []
    if any(cell for column in findings.columns for cell in column.cells.values()):
        save_figure(_draw_scores(findings.columns), folder / "scores.png")
        drawn.append("scores.png")
    if any(result["curve"] for seeds in findings.results.values() for result in seeds):
        save_figure(_draw_curves(findings.results), folder / "curves.png")
        drawn.append("curves.png")
    return drawn


def _draw_scores(columns: list[Column]):
    """Draws a panel for each column: a point for each seed, a line at the mean."""
    runs = list(columns[0].cells)
    figure, axes = new_figure(
        4.2 * len(columns) + 1.5, 0.34 * len(runs) + 1.3, columns=len(columns)
    )
    for panel, column in zip(axes[0], columns, strict=True):
        panel.set_title(column.title, fontsize=11)
        panel.set_xlabel("accuracy, %")
        for number, (run, height) in enumerate(zip(runs, range(len(runs))[::-1], strict=True)):
            if (cell := column.cells[run]) is None:
                continue
            colour = COLOURS[number % len(COLOURS)]
            values = [100 * value for value in cell.values]
            panel.plot(values, [height] * len(values), "o", color=colour, markersize=5, alpha=0.7)
            panel.plot([100 * cell.mean] * 2, [height - 0.3, height + 0.3], color=colour)
        if column.floor is not None:
            panel.axvline(100 * column.floor, color="0.5", linestyle=":", linewidth=1)
        tidy(panel, grid="x")
        is_first = panel is axes[0, 0]
        names = list(reversed(runs)) if is_first else [""] * len(runs)
        panel.set_yticks(range(len(runs)), names, parse_math=False)
        panel.set_ylim(-0.6, len(runs) - 0.4)
    return figure


def _draw_curves(results):
    """Draws the masked-LM accuracy of all runs over their updates."""
    figure, axes = new_figure(8, 4.5)
    panel = axes[0, 0]
    for number, (run, seeds) in enumerate(results.items()):
        style = ("-", "--", ":", "-.")[number // len(COLOURS) % 4]
        for seed, result in enumerate(result for result in seeds if result["curve"]):
            steps, values = zip(*result["curve"], strict=True)
            panel.plot(
                steps,
                [100 * value for value in values],
                style,
                marker=".",
                color=COLOURS[number % len(COLOURS)],
                linewidth=1.2,
                label=None if seed else run,
            )
    panel.set(xlabel="update", ylabel="masked-LM accuracy, %")
    tidy(panel)
    legend_below(figure, panel)
    return figure
