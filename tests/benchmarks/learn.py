"""Time to quality: the held-out loss over the training time, of our recipe or of the peer."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
import yaml

from albert_keras import recipes
from albert_keras.report import table
from albert_keras.runs.trained_data import RECORDS, check_overlap
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.strategy import build_strategy, choose_precision
from albert_keras.training.trained_records import KEPT_RECORDS, digests_of
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder
from data_pipeline.records.record_files import RecordFiles
from tests.benchmarks import learn_ours
from tests.benchmarks.contest import check_names
from tests.benchmarks.recorder import Point

TRAINERS = ("ours", "transformers")


def learn(
    trainer: str,
    records: Annotated[Path, typer.Option()],
    eval_data: Annotated[Path, typer.Option()],
    out: Annotated[Path, typer.Option()],
    minutes: float = 30.0,
    recipe: str = "albert-cpu-30-minutes",
    peer_lr: float = 5e-4,
    peer_batch_size: int = 32,
    beside: Path | None = None,
) -> list[Point]:
    """Trains our recipe, or the peer with the shape of our recipe, for some minutes; see README.md.

    Args:
        trainer: "ours" or "transformers".
        records: Folder of training records.
        eval_data: Folder of held-out records with the same tokenizer.
        out: New folder for `curve.csv` and our run.
        minutes: Training time, the first update included, without scoring.
        recipe: File of our settings, or name of a recipe.
        peer_lr: Peak learning rate of the peer.
        peer_batch_size: Sequences per update of the peer.
        beside: `curve.csv` of the peer, whose final loss is looked for in the new curve.

    Raises:
        InputError: If the records do not fit together, or `out` exists.
    """
    check_names("trainer", [trainer], TRAINERS)
    reference = read_curve(beside)[-1] if beside else None
    path = Path(recipe) if Path(recipe).is_file() else recipes.path(recipe)
    settings = yaml.safe_load(path.read_text("utf-8"))
    config = PretrainingConfig.of(settings, time_budget=f"{60 * minutes:.3f}s")
    training, held_out = RecordFiles(records), RecordFiles(eval_data)
    if training.info.tokenizer_digest != held_out.info.tokenizer_digest:
        raise InputError(f"`{eval_data}` must have the tokenizer of the training records.")
    trained = digests_of(training, KEPT_RECORDS)
    check_overlap(trained, digests_of(held_out), RECORDS, str(eval_data))
    check_output_folder(out)
    out.mkdir(parents=True, exist_ok=True)
    if trainer == "ours":
        points = learn_ours.train(training, held_out, config, 60 * minutes, out / "run")
    else:
        from tests.benchmarks import learn_transformers  # which needs PyTorch

        resolved = config.resolved(choose_precision(build_strategy("single"))).training
        points = learn_transformers.train(
            training,
            held_out,
            config.albert_config(training.info.vocab_size),
            peer_lr,
            peer_batch_size,
            resolved.precision,
            60 * minutes,
            resolved.seed,
        )
    with open(out / "curve.csv", "w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([Point._fields, *points])
    print("\n".join(_lines(points, reference)))
    return points


def read_curve(path: Path) -> list[Point]:
    """Returns the points of a `curve.csv`."""
    with open(path, encoding="utf-8", newline="") as file:
        _, *rows = csv.reader(file)
    return [Point(float(row[0]), int(row[1]), float(row[2]), float(row[3])) for row in rows]


def time_to_loss(points: Sequence[Point], loss: float) -> float | None:
    """Returns the seconds after which a curve reaches a loss, linear between its points.

    None if it never does. The time of the first point if that is lower already, which is then an
    upper bound.
    """
    previous = None
    for point in points:
        if point.loss <= loss:
            if previous is None:
                return point.seconds
            share = (previous.loss - loss) / (previous.loss - point.loss)
            return previous.seconds + share * (point.seconds - previous.seconds)
        previous = point
    return None


def _lines(points, reference):
    rows = [
        (f"{at / 60:.2f} min", f"{updates:,}", f"{loss:.3f}", f"{100 * accuracy:.1f} %")
        for at, updates, loss, accuracy in points
    ]
    yield from table(("", "updates", "held-out loss", "accuracy"), rows)
    if reference is not None:
        seconds = time_to_loss(points, reference.loss)
        yield f"The peer ends at {reference.loss:.3f} after {reference.seconds / 60:.2f} min. " + (
            "It is not reached."
            if seconds is None
            else f"It is reached {reference.seconds / seconds:.2f} times as fast."
        )
