"""What went wrong in a run, or makes its scores doubtful."""

import json
import math
from typing import Any

from albert_keras.run_overview.report.charts import Series
from albert_keras.run_overview.summary import RunSummary
from albert_keras.runs.trained_data import RECORDS, Overlap
from albert_keras.tasks.result_table import cautions
from albert_keras.tasks.results import FinetuneResult

#: Fraction of the time spent waiting for data above which this is worth a warning.
_LONG_WAIT = 0.2


def problems_of(
    summary: RunSummary,
    record: dict[str, Any],
    series: list[Series],
    result: FinetuneResult | None,
) -> list[str]:
    """Returns sentences about a run: is it complete, was every update made, what was trained on?

    Args:
        summary: The run in a list.
        record: The content of `run.json`, of the first seed.
        series: The logs of its trainings.
        result: Of a complete fine-tuning.
    """
    found = []
    if summary.steps is not None and summary.step < summary.steps and result is None:
        found.append(
            f"The run is not complete: step {summary.step:,} of {summary.steps:,}. Repeat "
            "the command that started it to resume it."
        )
    elif summary.kind == "finetuning" and result is None:
        found.append(
            "The fine-tuning is not complete. Repeat the command that started it to resume it."
        )
    for one in series:
        name = f"{one.label}: " if len(series) > 1 else ""
        found += [f"{name}{sentence}" for sentence in _of_log(one.log)]
    found += _trained_on(series, result)
    for entry in record.get("changes") or ():
        changes = ", ".join(
            f"{key} from {json.dumps(old)} to {json.dumps(new)}"
            for key, (old, new) in entry["changes"].items()
        )
        found.append(f"Settings were changed at step {entry['at_step']:,}: {changes}.")
    return found + (cautions(result) if result else [])


def _of_log(log):
    skipped = [line for line in log if line.get("skipped")]
    if skipped:
        count = sum(line["skipped"] for line in skipped)
        steps = ", ".join(f"{line['step']:,}" for line in skipped[:5])
        more = f" and {len(skipped) - 5} more reports" if len(skipped) > 5 else ""
        yield (
            f"{count:,} update{'s were' if count > 1 else ' was'} skipped, because the gradients "
            f"were not finite or far larger than before; see the reports of steps {steps}{more}."
        )
    without = [line["step"] for line in log if math.isnan(line.get("loss", 0.0))]
    if without:
        yield f"{len(without)} reports have no loss, the first at step {without[0]:,}."
    waits = [line["input_wait"] for line in log if "input_wait" in line]
    if waits and (mean := sum(waits) / len(waits)) > _LONG_WAIT:
        yield f"{mean:.0%} of the time was spent waiting for data."


def _trained_on(series, result):
    """Yields whether the last records that were scored were trained on; `result` has its own."""
    evaluations = [] if result else series[0].evaluations
    fields = evaluations and evaluations[-1][1].get("overlap")
    if fields and fields["normalised"]:
        yield f"{Overlap.of(fields).sentence(RECORDS)}."
