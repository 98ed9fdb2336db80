"""`albert-keras plan`."""

from typing import Annotated

from typer import Option

from albert_keras.cli.command import Output, command
from albert_keras.cli.options import Corpus, CorpusFormat


@command()
def plan(
    corpus: Corpus,
    hours: Annotated[float, Option(min=0.02, max=10_000)] = 8,
    corpus_format: CorpusFormat = "auto",
    language: str = "en",
):
    """Plan what to run on this machine: a recipe for the time, and the commands to type.

    With a GPU the plan is for the GPU.

    Example:
      albert-keras plan --corpus books/ --hours 8

    Args:
      hours: Hours of training.
      language: Language code of the text.
    """
    import tensorflow as tf

    from albert_keras.machine.plan import plan_for_text

    on_gpu = bool(tf.config.list_physical_devices("GPU"))
    made = plan_for_text([str(path) for path in corpus], hours, on_gpu, corpus_format, language)
    return Output(made, lines_of(made))


def lines_of(plan):
    """Yields a Plan as text."""
    from albert_keras.machine.plan import HELD_OUT
    from data_pipeline.progress import format_duration

    device = "GPU" if plan.on_gpu else "CPU"
    yield f"recipe for {format_duration(3600 * plan.hours)} on a {device}: {plan.recipe}"
    yield f"vocabulary: {plan.vocab_size:,} pieces"
    yield ""
    yield from plan.commands
    yield ""
    yield f"{HELD_OUT} are files apart from the corpus, on which the model is scored."
    yield "`pretrain` with --dry-run measures time and memory when the records exist."
