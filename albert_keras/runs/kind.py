"""What kind of run a folder contains. No TensorFlow, so that commands can check folders first."""

from pathlib import Path


def kind_of_run(path: Path) -> str | None:
    """Returns "pretraining" or "finetuning", or None if a folder has the files of neither.

    Raises:
        InputError: If `run.json` is damaged.
    """
    from albert_keras.runs.run_record import read_record

    if (path / "run.json").is_file():
        return read_record(path / "run.json").get("kind", "pretraining")
    is_finetuning = (path / "results.json").is_file() or any(path.glob("seed-*/run.json"))
    return "finetuning" if is_finetuning else None
