"""`albert-keras fill-mask` and `sentence-order`: what a pre-trained model has learned."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from albert_keras.cli.command import Output, command
from albert_keras.cli.predict import truncation
from albert_keras.cli.typed_inputs import text_batches
from albert_keras.formats.detection import WANTED_EXPORT, detect
from albert_keras.report import percent
from data_pipeline.errors import Mistake

Texts = Annotated[list[str] | None, Argument(metavar="TEXT")]


@command()
def fill_mask(model: Path, texts: Texts = None, top_k: int = 5):
    """Fill each [MASK] of texts with a pre-trained model.

    Example:
      albert-keras fill-mask albert-mini-en "The old man sat down by the [MASK]."

    Args:
      model: Export, one of its versions, the name of a shipped model, or a pre-training run.
      texts: Text with at least one [MASK]; without TEXT, the lines of stdin.
      top_k: Candidates per [MASK].
    """

    def fill(predictor, several):
        return predictor.fill_mask(several, top_k)

    return _answered(model, texts, fill, describe_filled)


@command()
def sentence_order(model: Path, then: Annotated[str, Option()], texts: Texts = None):
    """Predict whether a text follows another one, with a pre-trained model.

    Example:
      albert-keras sentence-order albert-mini-en "He opened the door." --then "He went in."

    Args:
      model: Export, one of its versions, the name of a shipped model, or a pre-training run.
      then: Text that may follow TEXT.
      texts: Text; without TEXT, the lines of stdin.
    """

    def order(predictor, several):
        return predictor.sentence_order(several, [then] * len(several))

    return _answered(model, texts, order, _describe_order)


def _answered(model, texts, answer, describe):
    """Returns the Output of answers, of which those to lines of stdin are printed as they come.

    The JSON of texts is a list; that of lines is a line for each.
    """
    batches = text_batches(texts)  # before TensorFlow is imported
    place = detect(model, ("run", "export"), WANTED_EXPORT, Mistake.NO_EXPORT)
    from albert_keras.serving.predictor import Predictor
    from albert_keras.tasks.predict import noting_truncation

    predictor = Predictor(place)
    answers = noting_truncation(one for several in batches for one in answer(predictor, several))
    if texts:
        answers = list(answers)
    # Of an iterator only one of the two is consumed.
    return Output(answers, (line for one in answers for line in describe(one)))


def describe_filled(answer):
    """Returns the lines that describe a FilledMask, list of str."""
    lines = [answer.filled_text + truncation(answer)]
    for candidates in answer.masks:
        shown = "  ".join(f"{piece} {percent(score)}" for piece, score in candidates)
        lines.append(f"    {shown}" if shown else "    (beyond the maximum length of the model)")
    return lines


def _describe_order(answer):
    shown = f"{percent(answer.in_order):>7}  in this order: {answer.first}"
    return [shown + truncation(answer)]
