"""What to run on this machine: a recipe for a time, and the commands to type."""

import shlex
from collections.abc import Sequence
from typing import NamedTuple

from albert_keras.report import bytes_text
from data_pipeline.errors import InputError
from data_pipeline.text.text_files import corpus_bytes

#: Less text does not train a vocabulary and a model from random weights.
_LEAST_CORPUS_BYTES = 1_000_000
#: Bytes of text for each piece of a vocabulary, at least: 2 MB give 8,000 pieces.
_BYTES_FOR_A_PIECE = 250
#: Text that a plan does not know: the user keeps it apart from the corpus.
HELD_OUT = "HELD_OUT_FILES"


class Choice(NamedTuple):
    """A recipe, when it is chosen, and the vocabulary and records that it is made for."""

    recipe: str
    least_hours: float
    on_gpu: bool
    vocab_size: int
    lengths: tuple[tuple[int, int], ...]  # S and P of the records of each stage
    copies: int  # of the text in the records, each with other segments
    settings: tuple[str, ...] = ()  # further settings of `data build`


#: The recipes by time; for each device, the one with the fewest hours first.
CHOICES = (
    Choice(
        recipe="albert-cpu-4-minutes",
        least_hours=0,
        on_gpu=False,
        vocab_size=8000,
        lengths=((64, 16),),
        copies=7,
        settings=("masking.masked_lm_prob=0.25",),
    ),
    Choice("albert-cpu-30-minutes", 0.25, False, 16_000, ((64, 20),), 8),
    Choice("albert-cpu-night", 3, False, 16_000, ((64, 20), (128, 26)), 10),
    Choice("albert-gpu-5-minutes", 0, True, 16_000, ((128, 39),), 7, ("overflow=cut",)),
    Choice("albert-gpu-day", 12, True, 30_000, ((128, 32),), 1),
)


class Plan(NamedTuple):
    """What to run."""

    recipe: str
    hours: float
    on_gpu: bool
    vocab_size: int
    commands: list[str]


def choose_recipe(hours: float, on_gpu: bool) -> Choice:
    """Returns the recipe for a time on a CPU or a GPU."""
    fitting = [one for one in CHOICES if one.on_gpu == on_gpu and one.least_hours <= hours]
    return fitting[-1]


def plan_for_text(
    corpus: Sequence[str],
    hours: float,
    on_gpu: bool,
    corpus_format: str = "auto",
    language: str = "en",
) -> Plan:
    """Plans a run on text: the commands from the text to an exported model.

    Args:
        corpus: Files, folders and patterns.
        hours: Training time.
        on_gpu: Whether the run is for a GPU.
        corpus_format: As in `read_corpus`.
        language: Code of the language by whose rules sentences are split.

    Raises:
        InputError: If there is no such text, or less than 1 MB of it.
    """
    size = corpus_bytes(list(corpus))
    if size < _LEAST_CORPUS_BYTES:
        raise InputError(
            "The corpus must have at least 1 MB of text for a model from random weights. Received: "
            f"{bytes_text(size)}. Add text, or continue with a trained model: albert-keras "
            "pretrain --config continue --init-from MODEL."
        )
    choice = choose_recipe(hours, on_gpu)
    vocab_size = min(choice.vocab_size, int(size / _BYTES_FOR_A_PIECE) // 1000 * 1000)
    text = [word for source in corpus for word in ("--corpus", source)]
    if corpus_format != "auto":
        text += ["--format", corpus_format]
    in_language = [] if language == "en" else ["--language", language]
    commands = [["vocab", *text, *in_language, "--size", str(vocab_size), "--out", "tokenizer/"]]
    build = ["--tokenizer", "tokenizer/", *in_language]
    masks = ["--no-static-masks", *_assignments(choice.settings)]
    for stage in choice.lengths:
        copies = ["--copies", str(choice.copies)] if choice.copies > 1 else []
        words = [*build, *_lengths(stage), *masks, *copies, "--out", _records(stage)]
        commands.append(["data", "build", *text, *words])
    last = choice.lengths[-1]
    # With masks in the records, all models fill the same ones.
    words = ["--corpus", HELD_OUT, *build, *_lengths(last), "--out", "held-out/"]
    commands.append(["data", "build", *words])
    out = f"runs/{choice.recipe}"
    words = ["--data", _records(last), "--eval-data", "held-out/", "--out", out]
    time = ["--time-budget", f"{round(60 * hours)}m"]
    commands += [
        ["pretrain", "--config", choice.recipe, *time, *words],
        ["evaluate", "--run", out, "--data", "held-out/"],
        ["export", "--run", out, "--out", f"saved_models/{choice.recipe}"],
    ]
    shown = [f"albert-keras {shlex.join(words)}" for words in commands]
    return Plan(choice.recipe, hours, on_gpu, vocab_size, shown)


def _lengths(stage: tuple[int, int]) -> list[str]:
    """Returns the options of `data build` for records of S tokens and P predictions."""
    words = ["--max-seq-length", str(stage[0]), "--max-predictions-per-seq", str(stage[1])]
    return [*words, *_assignments(["masking.max_ngram=1"])]


def _assignments(settings: Sequence[str]) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def _records(stage: tuple[int, int]) -> str:
    """Returns the folder of the records of a stage, which the recipes name."""
    return f"records-{stage[0]}"
