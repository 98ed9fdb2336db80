"""What `evaluate --exit-at-confidence` does."""

from pathlib import Path
from typing import Any

from albert_keras.cli.arguments import check_files
from albert_keras.cli.command import Output
from albert_keras.cli.output import plain
from albert_keras.formats.detection import kind_of_run
from albert_keras.report import count_of, table
from data_pipeline.errors import InputError


def evaluate_exits(runs: list[Path], confidences: str, arguments: dict[str, Any]) -> Output:
    """Evaluates early exit at several confidences; for the arguments see `evaluate`."""
    if len(runs) > 1:
        raise InputError(
            f"`--exit-at-confidence` requires one `--run`. Received: {', '.join(map(str, runs))}."
        )
    if kind_of_run(runs[0]) != "finetuning":
        raise InputError(
            f"`--exit-at-confidence` requires a fine-tuned model. Received: `{runs[0]}`."
        )
    if "data" in arguments and arguments.keys() & {"split", "data_dir"}:
        raise InputError("`--data` must not be given with `--split` or `--data-dir`.")
    numbers = _parse(confidences)
    check_files(arguments.get("data"))
    from albert_keras.research.analyze.early_exit import evaluate_early_exit

    result = evaluate_early_exit(runs[0], numbers, **arguments)
    return Output(plain(result), describe_exits(result))


def describe_exits(curve) -> list[str]:
    """Returns the lines that describe an EarlyExitCurve."""
    rows = [("all layers", f"{curve.score:.4f}", "0.00", f"{len(curve.layer_scores):.2f}")]
    rows += [
        (
            f"{point.confidence:g}",
            f"{point.score:.4f}",
            f"{point.points_lost:.2f}",
            f"{point.mean_layers:.2f}",
        )
        for point in curve.points
    ]
    scores = "  ".join(f"{score:.4f}" for score in curve.layer_scores)
    return [
        f"{curve.metric} on {count_of(curve.examples, 'example')} of {curve.split}",
        *table(("confidence", curve.metric, "points lost", "layers"), rows),
        f"every row stops after layer 1, 2, ...: {scores}",
    ]


def _parse(text):
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise InputError(
            "`--exit-at-confidence` must be probabilities separated by commas, such as 0.8,0.9. "
            f"Received: {text!r}."
        ) from None
