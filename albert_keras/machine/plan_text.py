"""A plan as text: its lines, its commands and its configuration file."""

import shlex
import textwrap
from collections.abc import Iterator
from pathlib import Path

import yaml

from albert_keras.machine.law import LEAST_UPDATES
from albert_keras.machine.plan import Plan
from albert_keras.models.weight_count import model_line
from albert_keras.report import bytes_text, number_text, short_count, table
from albert_keras.training.config import PretrainingConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import whole_file
from data_pipeline.progress import format_duration

#: First line of a configuration file; files with another one are not replaced.
_HEADER = "# Made by `albert-keras plan`, which replaces this file: copy it to keep changes."
#: Passes over the text after which more text helps more than more time (Muennighoff et al. 2023,
#: https://arxiv.org/abs/2305.16264).
_MANY_EPOCHS = 16


#: Text that a plan does not know: the user keeps it apart from the corpus.
HELD_OUT = "HELD_OUT_FILES"


def plan_commands(plan: Plan, config_file: str) -> list[str]:
    """Returns the commands from text to an export, all executed in the same folder.

    The records of held-out text are built from `HELD_OUT`, which the user replaces.
    """
    request, language = plan.request, plan.text.language
    data, commands, scored, evaluated = request.data, [], [], []
    if data is None:
        sources = request.corpus or ("CORPUS",)
        corpus = [word for source in sources for word in ("--corpus", source)]
        if request.corpus_format != "auto":
            corpus += ["--format", request.corpus_format]
        if request.tokenizer is None:
            # Accents of other languages are letters of their own.
            accents = [] if language == "en" else ["--language", language]
            size = ["--size", str(plan.vocab_size), "--out", "tokenizer/"]
            commands.append(["vocab", *corpus, *accents, *size])
        last = plan.stages[-1]
        data, held_out = f"{last.records}/", "held-out/"
        build = ["--tokenizer", request.tokenizer or "tokenizer/"]
        build += ["--language", language] if language != "en" else []
        for stage in plan.stages:
            copies = ["--copies", str(plan.copies)] if plan.copies > 1 else []
            words = [*build, *_lengths(stage), "--no-static-masks", *copies]
            commands.append(["data", "build", *corpus, *words, "--out", f"{stage.records}/"])
        # With masks in the records, all models fill the same ones.
        words = ["--corpus", HELD_OUT, *build, *_lengths(last), "--out", held_out]
        commands.append(["data", "build", *words])
        scored, evaluated = ["--eval-data", held_out], ["--data", held_out]
    out = f"runs/{plan.chosen.name}"
    commands.append(["pretrain", "--config", config_file, "--data", data, *scored, "--out", out])
    if evaluated:
        commands.append(["evaluate", "--run", out, *evaluated])
    commands.append(["export", "--run", out, "--out", f"saved_models/{plan.chosen.name}"])
    return [f"albert-keras {shlex.join(words)}" for words in commands]


def _lengths(stage):
    """Returns the options of `data build` for the records of a stage."""
    words = ["--max-seq-length", str(stage.max_seq_length)]
    words += ["--max-predictions-per-seq", str(stage.max_predictions_per_seq)]
    return [*words, "--set", "masking.max_ngram=1"]


def write_config(plan: Plan, path: Path) -> None:
    """Writes the settings for `albert-keras pretrain --config`.

    Raises:
        InputError: If there is a file that a plan has not made, or the folder cannot be written.
    """
    if path.exists() and not path.read_text(errors="replace").startswith(_HEADER):
        raise InputError(
            f"`{path}` exists, and is not overwritten. Remove it or choose another `out`.",
            Mistake.OUTPUT_EXISTS,
        )
    header = f"{_HEADER}\n# {plan.chosen.name}.\n\n"
    try:
        with whole_file(path) as temporary:
            temporary.write_text(header + yaml.safe_dump(plan.config, sort_keys=False))
    except OSError as error:
        raise InputError(f"`{path}` cannot be written: {error.strerror}.") from error


def plan_warnings(plan: Plan) -> list[str]:
    """Returns what a user should know before following the plan, sentences."""
    chosen, warnings = plan.chosen, []
    if chosen.steps < LEAST_UPDATES:
        warnings.append(
            f"{chosen.steps:,} updates are too few to learn more than frequent words, and too few "
            f"for the expected loss to be reliable. Allow time for at least {LEAST_UPDATES:,}."
        )
    if chosen.expected.is_extrapolated:
        warnings.append(
            "The model or its training is more than twice as large as any run that was measured: "
            "the expected loss is an extrapolation."
        )
    if chosen.epochs > _MANY_EPOCHS:
        warnings.append(
            f"Each token is seen {chosen.epochs:,.0f} times. More text would teach more than more "
            "time."
        )
    return warnings


def plan_lines(plan: Plan) -> Iterator[str]:
    """Yields the plan as text, each number with what it is based on; without the commands."""
    chosen, text = plan.chosen, plan.text
    seconds, device = sum(plan.parts.values()), plan.device
    yield from (f"What to run for {format_duration(seconds)} on a {device.name}", "")
    size = "" if plan.request.data else f"{bytes_text(text.num_bytes)}, "
    stages = [
        f"{stage.share:.0%} of the time: {stage.max_seq_length} tokens per record, batch "
        f"{stage.batch_size:,}, {stage.mask_rate:.0%} masks"
        for stage in plan.stages
    ]
    copies = f"; records with {plan.copies} copies of the text" if plan.copies > 1 else ""
    optimizer = PretrainingConfig.of(plan.config).chosen_optimizer()
    items = {
        "Text": f"{size}{short_count(text.tokens)} tokens, language {text.language} "
        f"({text.reason})",
        "Vocabulary": f"{plan.vocab_size:,} pieces",
        "Model": f"{model_line(chosen.config)}, hidden size {chosen.config.hidden_size}",
        "Stages": "; then ".join(stages) + copies,
        "Training": f"{chosen.steps:,} updates, {short_count(chosen.tokens)} tokens; each token is "
        f"seen {number_text(chosen.epochs)} times; {optimizer.name}, rate {optimizer.lr:.3g}; "
        f"{short_count(chosen.tokens / plan.parts['training'])} tokens per second (at "
        f"{number_text(device.tflops)} TFLOP/s, {'measured' if device.is_measured else 'given'})",
        "Expected": f"masked-LM loss {_loss(chosen)} and accuracy {chosen.expected.accuracy:.0%} "
        "on held-out text, by a law fitted to short trainings of ALBERTs on English novels "
        "(docs/measured.md); other text has other losses",
        "Memory": f"{bytes_text(chosen.memory_bytes)}, by formula",
        "Time": ", ".join(f"{name} {format_duration(part)}" for name, part in plan.parts.items()),
    }
    for name, value in items.items():
        yield from textwrap.wrap(f"{name:<12}{value}", 100, subsequent_indent=" " * 12)
    header = ("model", "weights", "seen", "times", "updates", "expected loss", "accuracy", "")
    yield from ("", *table(header, map(lambda one: _row(one, chosen), plan.candidates)))


def _row(one, chosen):
    mark = "<- chosen" if one is chosen else one.objection
    seen, accuracy = short_count(one.tokens), f"{one.expected.accuracy:.0%}"
    size, times = short_count(one.weights), number_text(one.epochs)
    return one.name, size, seen, times, f"{one.steps:,}", _loss(one), accuracy, mark


def _loss(one):
    return f"{one.expected.loss:.2f} ± {one.expected.error:.2f}"
