"""`albert-keras demo`."""

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start


def demo(
    out: Annotated[Path, typer.Option(help="Folder for everything.")] = Path("runs/demo"),
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Go the whole way in about five minutes, offline: text, records, model, answers.

    \b
    Example:
      albert-keras demo --out runs/demo
    """
    start(verbose, debug)
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
    show(values, _last_screen(result), as_json)


def _last_screen(result):
    from albert_keras.cli import evaluate, predict

    yield ""
    yield f"Done in {result.seconds:.0f} s. On documents the model has never seen:"
    yield from evaluate.describe(result.evaluation)
    learned = "above" if result.order_is_learned else "not above"
    yield f"  masked LM is {result.masked_lm_gain:.1f} times the guess; order is {learned} chance"
    yield ""
    yield "Filled masks (minutes of training teach the small words; content takes hours):"
    for filling in result.fillings:
        yield from predict.describe(filling)
    yield ""
    yield f"Do these two stand in this order? {result.order.in_order:.0%} yes"
    yield f"    {result.order.first}"
    yield f"    {result.order.second}"
    yield ""
    yield f"Where everything lies, in {result.path}:"
    yield "    corpus/  tokenizer/  records/  records-heldout/  run/ (log.jsonl, checkpoints)"
    yield f"    {result.curves}   loss and accuracy curves"
    yield f"    {result.export}   what tensorflow_model_server serves"
    yield ""
    command = "albert-keras"
    if not shutil.which(command):  # the environment is not activated
        command = os.path.relpath(Path(sys.executable).with_name(command))
    yield "Try next:"
    yield f'    {command} predict {result.export} "The [MASK] of the array."'
    yield f"    tensorboard --logdir {result.path}/run/tensorboard"
    yield f"    your own text: {command} vocab --help, and README.md for the whole tour"
