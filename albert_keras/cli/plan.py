"""`albert-keras plan`."""

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from albert_keras.cli.command import Output, command
from albert_keras.cli.options import Corpus, CorpusFormat, refuse
from data_pipeline.errors import InputError

#: Options that describe a text.
_OF_TEXT = ("corpus", "corpus_format", "language")


@command()
def plan(
    context: Context,
    corpus: Corpus = None,
    data: Path | None = None,
    hours: Annotated[float, Option(min=0.02, max=10_000)] = 8,
    corpus_format: CorpusFormat = "auto",
    language: str = "en",
):
    """Plan what to run on this machine: a recipe for the time, and the commands to type.

    Of records that exist, a dry run also measures how many updates fit into the time, and the
    memory that they take. With a GPU the plan is for the GPU.

    Examples:
      albert-keras plan --corpus books/ --hours 8
      albert-keras plan --data records/ --hours 8

    Args:
      data: Folder of records to train on, instead of text.
      hours: Hours of training.
      language: Language code of the text.
    """
    import tensorflow as tf

    from albert_keras.machine.plan import plan_for_records, plan_for_text

    if (data is None) == (not corpus):
        raise InputError("Give either `--corpus` or `--data`: the text or the records to train on.")
    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    if data is not None:
        refuse(context, _OF_TEXT, "must not be given with `--data`: records have their tokenizer.")
        made = plan_for_records(data, hours, on_gpu)
    else:
        made = plan_for_text([str(path) for path in corpus], hours, on_gpu, corpus_format, language)
    return Output(made, lines_of(made))


def lines_of(plan):
    """Yields a Plan as text."""
    from albert_keras.machine.plan import HELD_OUT
    from albert_keras.report import bytes_text
    from data_pipeline.progress import format_duration

    device = "GPU" if plan.on_gpu else "CPU"
    yield f"recipe for {format_duration(3600 * plan.hours)} on a {device}: {plan.recipe}"
    if plan.vocab_size is not None:
        yield f"vocabulary: {plan.vocab_size:,} pieces"
    if plan.updates is not None:
        yield (
            f"training: {plan.updates:,} updates of {format_duration(plan.seconds_per_update)} "
            f"see each record {plan.epochs:.2f} times"
        )
        yield (
            f"memory: {bytes_text(1e6 * plan.peak_megabytes)}{' of the GPU' if plan.on_gpu else ''}"
            f"; each checkpoint {bytes_text(1e6 * plan.checkpoint_megabytes)}"
        )
    yield ""
    yield from plan.commands
    if plan.updates is None:
        yield ""
        yield f"{HELD_OUT} are files apart from the corpus, on which the model is scored."
        yield "When the records exist, `albert-keras plan --data` measures time and memory."
