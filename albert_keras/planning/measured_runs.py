"""Runs that were trained to the end and scored on held-out text, from which losses are expected."""

import csv
from pathlib import Path
from typing import NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.models.weight_count import count_weights
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.limits import read_json

#: Runs by the recipes for small models, on English novels; docs/search.md says how they were made.
MEASURED_RUNS = Path(__file__).parent / "measured_runs.csv"


class MeasuredRun(NamedTuple):
    """A run whose rate had decayed to 0 at its end, and its scores on held-out records."""

    name: str
    sharing: str  # "all" or "none"
    weights: float  # of the blocks, counted at each depth, whether shared or not
    tokens: float  # positions seen in training
    text_tokens: float  # positions of all training records of one copy of the text
    loss: float  # masked-LM loss in nats
    accuracy: float  # masked-LM accuracy, 0 to 1


def read_runs(path: Path = MEASURED_RUNS) -> tuple[MeasuredRun, ...]:
    """Reads runs from a CSV file with the fields of `MeasuredRun` as columns."""
    with open(path, newline="", encoding="utf-8") as file:
        return tuple(
            MeasuredRun(
                row["name"], row["sharing"], *(float(row[name]) for name in MeasuredRun._fields[2:])
            )
            for row in csv.DictReader(file)
        )


def weights_at_all_depths(config: AlbertConfig) -> int:
    """Returns the weights of the blocks that each token passes: a shared one counts at each depth.

    What sharing saves is memory, not work, and a deeper model that shares learns more.
    """
    return count_weights(config.replace(sharing="none", num_hidden_groups=1)).blocks


def measured_run(run: str | Path, scores: str | Path, copies: int = 1) -> MeasuredRun:
    """Describes a finished run of one stage.

    Args:
        run: Folder of the run.
        scores: File with the output of `albert-keras evaluate --run RUN --data HELDOUT --json`.
        copies: Copies of the text in the records, `data build --copies`.

    Raises:
        InputError: If a file is not what it should be, the run has stages, or the scored checkpoint
            is not its last step.
    """
    record, evaluation = read_json(Path(run) / "run.json"), read_json(scores)
    try:
        training, data = record["config"]["training"], record["data"]
        positions = data["max_seq_length"] * training["batch_size"] * training["steps"]
        config = AlbertConfig.from_dict(record["albert_config"])
        if record["config"].get("stages"):
            raise InputError(f"`{run}` must be a run without stages.")
        if evaluation["step"] != training["steps"]:
            raise InputError(
                f"`{scores}` must contain the scores of the last of {training['steps']:,} steps, "
                f"at which the rate is 0. Received: step {evaluation['step']}."
            )
        return MeasuredRun(
            name=Path(run).name,
            sharing=config.sharing,
            weights=weights_at_all_depths(config),
            tokens=positions,
            text_tokens=round(data["num_records"] * data["max_seq_length"] / copies),
            loss=round(evaluation["masked_lm_loss"], 4),
            accuracy=round(evaluation["masked_lm_accuracy"], 4),
        )
    except KeyError as error:
        raise InputError(
            f"`{run}` and `{scores}` must be a pre-training run and its scores. Received: no "
            f"{error} in them."
        ) from error


def add_run(
    run: str | Path, scores: str | Path, copies: int = 1, path: str | Path = MEASURED_RUNS
) -> None:
    """Adds a run, see `measured_run`, to a CSV file, in which it replaces one of the same name."""
    added, path = measured_run(run, scores, copies), Path(path)
    runs = [known for known in read_runs(path) if known.name != added.name] if path.exists() else []
    with whole_file(path) as temporary, open(temporary, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(MeasuredRun._fields)
        writer.writerows([*row[:2], *map(_plain, row[2:])] for row in [*runs, added])


def _plain(number):
    return int(number) if number == int(number) else number
