"""What `evaluate --exit-at-confidence` does."""

from pathlib import Path
from typing import Any

from albert_keras.cli.command import Output
from albert_keras.cli.output import plain
from albert_keras.cli.preflight import check_files, check_model_folder
from albert_keras.report import count_of
from albert_keras.runs.kind import kind_of_run
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder


def evaluate_exits(runs: list[Path], confidences: str, arguments: dict[str, Any]) -> Output:
    """Evaluates early exit at several confidences; for the arguments see `evaluate`."""
    if len(runs) > 1:
        raise InputError(
            f"`--exit-at-confidence` requires one `--run`. Received: {', '.join(map(str, runs))}."
        )
    check_model_folder(runs[0], accepts_exports=True)
    if kind_of_run(runs[0]) != "finetuning":
        raise InputError(
            f"`--exit-at-confidence` requires a fine-tuned model. Received: `{runs[0]}`."
        )
    if "data" in arguments and arguments.keys() & {"split", "data_dir"}:
        raise InputError("`--data` must not be given with `--split` or `--data-dir`.")
    numbers = _parse(confidences)
    check_files(arguments.get("data"))
    if "out" in arguments:
        check_output_folder(arguments["out"])
    from albert_keras.analysis.early_exit import evaluate_early_exit

    result = evaluate_early_exit(runs[0], numbers, **arguments)
    return Output(plain(result), describe_exits(result))


def describe_exits(curve) -> list[str]:
    """Returns the lines that describe an EarlyExitCurve."""
    depth = len(curve.layer_scores)
    lines = [
        f"{curve.metric} on {count_of(curve.examples, 'example')} of {curve.split}; milliseconds "
        f"of {count_of(curve.num_timed, 'single row')}; speedup of a typical row and of the mean",
        f"{'confidence':>10}  {curve.metric:>9}  points lost  layers    mean  median  "
        f"{'quartiles':<14}  typical    mean",
        _line("all layers", curve, 0.0, depth, 1.0, 1.0),
    ]
    lines += [
        _line(
            f"{point.confidence:g}",
            point,
            point.points_lost,
            point.mean_layers,
            point.speedup,
            point.mean_speedup,
        )
        for point in curve.points
    ]
    scores = "  ".join(f"{score:.4f}" for score in curve.layer_scores)
    lines.append(f"every row stops after layer 1, 2, ...: {scores}")
    return lines + ([f"files: {', '.join(curve.files)}"] if curve.files else [])


def _line(name, found, points_lost, layers, speedup, mean_speedup):
    quartiles = (
        f"{found.lower_quartile_milliseconds:.2f} to {found.upper_quartile_milliseconds:.2f}"
    )
    return (
        f"{name:>10}  {found.score:9.4f}  {points_lost:11.2f}  {layers:6.2f}  "
        f"{found.milliseconds:6.2f}  {found.median_milliseconds:6.2f}  {quartiles:<14}  "
        f"{speedup:6.2f}×  {mean_speedup:5.2f}×"
    )


def _parse(text):
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise InputError(
            "`--exit-at-confidence` must be probabilities separated by commas, such as 0.8,0.9. "
            f"Received: {text!r}."
        ) from None
