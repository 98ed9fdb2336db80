"""Files of settings to start from, made from the data of a user."""

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from albert_keras.config_files.commented import commented_yaml
from albert_keras.distillation.config import DistillationConfig, TaskDistillationConfig
from albert_keras.tasks.finetune_config import USUAL_EPOCHS, FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_output_folder, whole_file
from data_pipeline.settings import Settings

if TYPE_CHECKING:  # they import NumPy, and `--help` imports this module
    from data_pipeline.tokenizers.tokenization import Tokenizer

#: The length of rows is a multiple of this, and at most the longest of released models.
_LENGTH_UNIT, _LONGEST = 32, 512


class FileKind(NamedTuple):
    """A kind of file of settings."""

    name: str
    config: type[Settings]
    command: str  # the command that takes such a file
    others: str  # what else this command requires
    adapts_to_records: bool = False


PRETRAIN = FileKind(
    "pretrain", PretrainingConfig, "pretrain", "--data ... --out runs/...", adapts_to_records=True
)
FINETUNE = FileKind("finetune", FinetuneConfig, "finetune", "--from ... --out runs/...")
DISTILL = FileKind(
    "distill",
    DistillationConfig,
    "distill",
    "--teacher ... --data ... --out runs/...",
    adapts_to_records=True,
)
DISTILL_TASK = FileKind(
    "distill-task", TaskDistillationConfig, "distill", "--teacher ... --from ... --out runs/..."
)
DATA = FileKind(
    "data", PretrainingDataConfig, "data build", "--corpus ... --tokenizer ... --out records/"
)

#: All kinds by name.
FILE_KINDS = {kind.name: kind for kind in (DATA, PRETRAIN, FINETUNE, DISTILL, DISTILL_TASK)}


class InitialFile(NamedTuple):
    """The content of a file, and what it was adapted to."""

    text: str
    facts: tuple[str, ...]  # sentences about the data


def check_new(path: Path, option: str = "--out") -> None:
    """Raises InputError if the file of an option exists, or its folder cannot be written."""
    if path.exists():
        raise InputError(
            f"`{path}` exists, and is not overwritten. Remove it or choose another {option}.",
            Mistake.OUTPUT_EXISTS,
        )
    check_output_folder(path, option)


def write_new(path: Path, content: InitialFile, option: str = "--out") -> None:
    """Writes a file that does not exist yet; raises InputError as `check_new` does."""
    check_new(path, option)
    path.parent.mkdir(parents=True, exist_ok=True)
    with whole_file(path) as temporary:
        temporary.write_text(content.text, encoding="utf-8")


def pretraining_file(config: PretrainingConfig, records: Path | None, name: str) -> InitialFile:
    """Returns settings for a pre-training, or for a distillation on records.

    Args:
        config: The settings that were chosen.
        records: Folder of records to adapt the settings to.
        name: The name of the file, for the command at its top.

    Raises:
        InputError: If the folder contains no records.
    """
    facts, notes = [], {}
    # A rate that follows from model and batch still does, if the user changes them in the file.
    config = config.replace(optimizer=config.chosen_optimizer().replace(lr=config.optimizer.lr))
    if records is not None:
        from data_pipeline.records.dataset_info import DatasetInfo

        info, training = DatasetInfo.load(records), config.training
        masks = "static masks" if info.static_masks else "no static masks"
        facts.append(
            f"{info.num_records:,} records of {info.max_seq_length} tokens, {info.vocab_size:,} "
            f"pieces, objective {info.objective}, {masks}: {records}"
        )
        epochs = training.steps * training.batch_size / max(info.num_records, 1)
        notes["training.steps"] = (
            f"{training.steps:,} steps of {training.batch_size} records are {epochs:.3g} epochs."
        )
        if info.objective == "none":
            config = config.replace(training=training.replace(sentence_order_weight=0.0))
            notes["training.sentence_order_weight"] = "These records have no labels."
        longest = config.albert_config(info.vocab_size).max_position_embeddings
        if info.max_seq_length > longest:
            model = config.model | {"max_position_embeddings": info.max_seq_length}
            config = config.replace(model=model)
    kind, advice = DISTILL, []
    if not isinstance(config, DISTILL.config):
        kind = PRETRAIN
        advice = ["With --init-from, remove the section `model`: the weights determine it."]
    header = _header(kind, name, [*facts, *advice])
    return InitialFile(commented_yaml(config, header, notes), tuple(facts))


def finetuning_file(
    config: FinetuneConfig, tokenizer: "Tokenizer | None", name: str
) -> InitialFile:
    """Returns settings for a fine-tuning, or a distillation on a task, made for its examples.

    Args:
        config: The settings that were chosen.
        tokenizer: Counts the tokens of the examples; None keeps the usual length of the task.
        name: The name of the file, for the command at its top.

    Raises:
        InputError: If the examples cannot be read.
    """
    from albert_keras.tasks.kinds import build_task

    facts, notes, task = [], {}, build_task(config.task)
    changes = {"max_seq_length": task.max_seq_length}
    if config.task.train is not None or config.task.data_dir is not None:
        from albert_keras.tasks.example_report import report_examples

        report = report_examples(task, {"train": task.read("train")}, tokenizer)["train"]
        facts.append(f"{report.examples:,} training examples")
        if report.labels and task.labels:
            counts = ", ".join(f"{label} {count:,}" for label, count in report.labels.items())
            facts.append(f"labels: {counts}")
            notes["task.labels"] = f"Training examples: {counts}."
        if task.labels:
            changes["labels"] = task.labels
        adapts_length = config.task.max_seq_length is None and not task.kind.uses_windows
        if report.usual_length is not None and adapts_length:
            fact = f"95 % of the rows have at most {report.usual_length} tokens"
            facts.append(fact)
            length = -(-report.usual_length // _LENGTH_UNIT) * _LENGTH_UNIT
            changes["max_seq_length"] = min(length, _LONGEST)
            notes["task.max_seq_length"] = f"{fact}."
        steps = (config.training.epochs or USUAL_EPOCHS) * report.examples
        steps = config.training.steps or round(steps / config.training.batch_size)
        notes["training.epochs"] = f"The run has about {steps:,} steps."
    config = config.replace(task=config.task.replace(**changes))
    kind = DISTILL_TASK if isinstance(config, DISTILL_TASK.config) else FINETUNE
    text = commented_yaml(config, _header(kind, name, facts), notes)
    return InitialFile(text, tuple(facts))


def data_file(config: PretrainingDataConfig, name: str) -> InitialFile:
    """Returns settings for a build of records; `name` is the name of the file."""
    return InitialFile(commented_yaml(config, _header(DATA, name, [])), ())


def _header(kind, name, facts):
    return [
        f"All settings of `albert-keras {kind.command}`, with the values in effect. Options of the",
        "command line take precedence.",
        "",
        *facts,
        f"Use: albert-keras {kind.command} --config {name} {kind.others}",
    ]
