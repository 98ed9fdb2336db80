"""The tables and sentences of a study's report, as plain text."""

import json
from typing import Any, NamedTuple

from albert_keras.studies.planned import PlannedStudy
from albert_keras.studies.results import Cell, Column, column_of, order_of

#: Marks a difference from the reference that is not larger than the noise.
NOISE_MARK = "≈"


class Table(NamedTuple):
    """A table; all cells are plain text."""

    header: tuple[str, ...]
    rows: list[tuple[str, ...]]


class Findings(NamedTuple):
    """What the results of a study say."""

    columns: list[Column]  # accuracies
    losses: dict[str, dict[str, Cell]]  # by evaluation and run: nats per masked token
    results: dict[str, list[dict[str, Any]]]  # finished trainings by run
    missing: list[str]  # trainings that are not finished
    diverged: list[str]


def findings_of(
    planned: PlannedStudy, results: dict[tuple[str, int], dict[str, Any] | None]
) -> Findings:
    """Collects the results by run; `results` has one for each run and seed, None if unfinished."""
    finished: dict[str, list[dict[str, Any]]] = {run.name: [] for run in planned.runs}
    missing, diverged = [], []
    for (name, seed), result in results.items():
        if result is None:
            missing.append(f"{name}, seed {seed}")
        elif result["diverged_at"] is not None:
            diverged.append(f"{name}, seed {seed}, at update {result['diverged_at']:,}")
        else:
            finished[name].append(result)
    evaluate = planned.study.evaluate
    columns = [column_of(name, held_out, finished) for name, held_out in evaluate.items()]
    losses = {
        name: {
            run: _loss(name, seeds) for run, seeds in finished.items() if _scores_of(name, seeds)
        }
        for name, held_out in evaluate.items()
        if held_out.score == "masked_lm"
    }
    return Findings(columns, losses, finished, missing, diverged)


def result_table(planned: PlannedStudy, findings: Findings) -> Table:
    """Returns our scores beside the published ones, with the differences from the reference."""
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
        row = [run.name]
        row += (
            [_millions(seeds[0]["parameters"]), f"{seeds[0]['updates']:,}"] if seeds else ["", ""]
        )
        row.append(str(len(seeds)))
        for column in findings.columns:
            row += [_cell(column.cells[run.name]), _difference(column, run.name, reference)]
        row += [published[key].get(run.name, "") for key in measures]
        rows.append(tuple(row))
    return Table(tuple(header), rows)


def loss_table(planned: PlannedStudy, findings: Findings) -> Table:
    """Returns the losses of the masked-LM evaluations, in nats per masked token."""
    titles = [planned.study.evaluate[name].title for name in findings.losses]
    rows = [
        (run.name, *(_loss_text(cells.get(run.name)) for cells in findings.losses.values()))
        for run in planned.runs
    ]
    return Table(("run", *(f"loss, {title}" for title in titles)), rows)


def settings_table(planned: PlannedStudy) -> Table:
    """Returns in what each run differs from the base."""
    rows = []
    for run in planned.study.runs:
        own = run.scales.get(planned.scale)
        # The settings of the scale replace those of the run.
        changes = dict(_flat(run.values())) | dict(_flat(own.values() if own else {}))
        listing = ", ".join(f"{name}: {value}" for name, value in changes.items())
        rows.append((run.name, listing or "nothing"))
    return Table(("run", "differs from the base in"), rows)


def comparisons(planned: PlannedStudy, findings: Findings) -> list[str]:
    """Returns sentences on each column: which runs differ from the reference beyond the noise."""
    reference, lines = planned.study.reference_run, []
    for column in findings.columns:
        beyond, within = [], []
        for run in planned.runs:
            is_noise = column.is_noise(run.name, reference)
            if run.name == reference or is_noise is None:
                continue
            points = 100 * column.difference(run.name, reference)
            noise = 100 * column.noise(run.name, reference)
            text = f"`{run.name}` ({points:+.1f} points, noise {noise:.1f})"
            (within if is_noise else beyond).append(text)
        if beyond:
            lines.append(
                f"Accuracy on {column.title}, different from `{reference}` by more than the "
                f"noise: {'; '.join(beyond)}."
            )
        if within:
            lines.append(
                f"Accuracy on {column.title}, not distinguishable from `{reference}`: "
                f"{'; '.join(within)}."
            )
    return lines


def guesses(planned: PlannedStudy, findings: Findings) -> list[str]:
    """Returns sentences on each sentence task: which runs are better than a constant guess."""
    lines = []
    for column in findings.columns:
        if planned.study.evaluate[column.name].score != "sentence" or column.floor is None:
            continue
        above, others = [], []
        for run in planned.runs:
            cell, margin = column.cells[run.name], column.margin(run.name)
            if cell is None or margin is None:
                continue
            text = f"`{run.name}` ({100 * cell.mean:.1f} %, noise {100 * margin:.1f})"
            (above if cell.mean - margin > column.floor else others).append(text)
        floor = f"the best constant guess, {100 * column.floor:.1f} %"
        if above:
            lines.append(f"Accuracy on {column.title}, better than {floor}: {'; '.join(above)}.")
        if others:
            lines.append(
                f"Accuracy on {column.title}, no better than {floor}: {'; '.join(others)}."
            )
    return lines


def orders(planned: PlannedStudy, findings: Findings) -> list[str]:
    """Returns a sentence for each published column about the order of the runs."""
    source, lines = planned.study.source, []
    columns = {column.name: column for column in findings.columns}
    for key, measure in (source.measures if source else {}).items():
        if measure.compares is None:
            continue
        published = {run.name: run.published[key] for run in planned.runs if key in run.published}
        order = order_of(columns[measure.compares], measure, published)
        compared = f"Order of the runs by {order.column} here and by the published {order.measure}"
        if order.pairs == 1:
            same = "is also" if order.agreeing else "is not"
            lines.append(
                f"{compared}: the only pair that differs by more than the noise {same} in the "
                "published order."
            )
        elif order.pairs:
            lines.append(
                f"{compared}: of {order.pairs} pairs that differ by more than the noise, "
                f"{order.agreeing} are in the published order."
            )
        else:
            lines.append(
                f"{compared}: no pair differs by more than the noise, so that the order cannot be "
                "compared."
            )
    return lines


def _scores_of(name, seeds):
    return [result["scores"][name] for result in seeds if name in result["scores"]]


def _loss(name, seeds):
    scores = _scores_of(name, seeds)
    return Cell(tuple(one["masked_lm_loss"] for one in scores), scores[0]["predictions"])


def _cell(cell):
    if cell is None:
        return "no head"
    spread = "" if cell.spread is None else f" ± {100 * cell.spread:.1f}"
    return f"{100 * cell.mean:.1f} %{spread}"


def _loss_text(cell):
    if cell is None:
        return ""
    return f"{cell.mean:.3f}" + ("" if cell.spread is None else f" ± {cell.spread:.3f}")


def _difference(column, run, reference):
    difference = column.difference(run, reference)
    if run == reference or difference is None:
        return ""
    mark = f" {NOISE_MARK}" if column.is_noise(run, reference) else ""
    return f"{100 * difference:+.1f}{mark}"


def _millions(number):
    return f"{number / 1e6:,.2f} million"


def _published(runs, key):
    """Returns the published values of a measure as text, by run, with the same decimals."""
    values = {run.name: run.published[key] for run in runs if key in run.published}
    decimals = max((len(f"{value:g}".partition(".")[2]) for value in values.values()), default=0)
    return {name: f"{value:.{decimals}f}" for name, value in values.items()}


def _flat(values, path=""):
    for key, value in values.items():
        name = f"{path}.{key}" if path else key
        if isinstance(value, dict):
            yield from _flat(value, name)
        else:
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            yield name, text
