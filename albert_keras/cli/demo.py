"""`albert-keras demo`."""

from pathlib import Path

import typer

from albert_keras.cli.command import Output, command
from albert_keras.cli.output import shell


@command()
def demo(out: Path = Path("runs/demo")):
    """Run everything from text to answers offline in five minutes.

    Example:
      albert-keras demo --out runs/demo

    Args:
      out: Output folder.
    """
    typer.echo("loading TensorFlow", err=True)
    from albert_keras.demo import demo as run_demo

    result = run_demo(out)
    evaluation = result.evaluation._asdict() | {"masked_lm_gain": result.masked_lm_gain}
    values = result._asdict() | {
        "evaluation": evaluation,
        "fillings": [filling.filled_text for filling in result.fillings],
        "order": result.order._asdict(),
        "sentence_order_is_learned": result.order_is_learned,
    }
    return Output(values, _last_screen(result))


def _last_screen(result):
    from albert_keras.cli import evaluate
    from albert_keras.cli.fill_mask import describe_filled

    yield ""
    yield (
        f"Done in {result.seconds:.0f} s; the training ends after 3 minutes, in which a slower "
        "machine learns less."
    )
    yield "On documents that were not used for training:"
    yield from evaluate.describe(result.evaluation)
    learned = "above" if result.order_is_learned else "not above"
    yield (
        f"  Masked-LM accuracy is {result.masked_lm_gain:.1f} times the accuracy of guessing; "
        f"sentence order is {learned} chance."
    )
    yield (
        f"  {result.model}: sharing saves {result.weights_saved:,} weights, as many as the other "
        "layers would have."
    )
    yield ""
    yield "Filled masks (function words are learned in minutes, content words in hours):"
    for filling in result.fillings:
        yield from describe_filled(filling)
    yield ""
    yield f"Are these two sentences in the original order? {100 * result.order.in_order:.0f} % yes"
    yield f"    {result.order.first}"
    yield f"    {result.order.second}"
    yield ""
    yield f"Files in {result.path}:"
    yield "    corpus/  tokenizer/  records/  records-heldout/  run/ (log.jsonl, checkpoints)"
    yield f"    {result.report}   scores, curves of loss and accuracy, settings"
    yield f"    {result.export}   SavedModel for tensorflow_model_server"
    yield ""
    yield "Try next:"
    yield f"    {shell('albert-keras', 'fill-mask', result.export, 'The [MASK] of the array.')}"
    text = "The ship sailed across the [MASK]."
    yield f"    {shell('albert-keras', 'fill-mask', 'albert-mini-en', text)}"
    yield f"    {shell('tensorboard', '--logdir', result.path / 'run' / 'tensorboard')}"
    yield "    your own text: albert-keras vocab --help, and README.md for the other commands"
