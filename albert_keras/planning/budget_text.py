"""A plan for a number of hours as text: its lines, its commands and its configuration file."""

import shlex
import textwrap
from collections.abc import Iterator, Sequence

from albert_keras.models.weight_count import model_line
from albert_keras.planning.budget import (
    BUILD_RATE,
    COPY_RATE,
    VOCABULARY_BYTES,
    VOCABULARY_RATE,
    BudgetPlan,
)
from albert_keras.planning.candidates import BudgetRequest
from albert_keras.planning.devices import DEVICES
from albert_keras.planning.scaling import LEAST_UPDATES
from albert_keras.report import bytes_text, number_text, short_count, table
from data_pipeline.progress import format_duration

#: Passes over the text after which more text helps more than more time (Muennighoff et al. 2023,
#: https://arxiv.org/abs/2305.16264).
_MANY_EPOCHS = 16
_HEADINGS = (
    "model",
    "weights",
    "tokens/s",
    "seen",
    "times",
    "updates",
    "expected loss",
    "accuracy",
)


def budget_commands(
    plan: BudgetPlan, corpus: Sequence[str], config_file: str, corpus_format: str = "auto"
) -> list[str]:
    """Returns the commands from text to a trained model, all executed in the same folder.

    Args:
        plan: The plan.
        corpus: Text files, folders or patterns; none if only the size of the corpus is known.
        config_file: Path of the file with the `config_text`.
        corpus_format: Format of the corpus.
    """
    sources = corpus or ("CORPUS",)
    sample = sources if plan.corpus_bytes <= VOCABULARY_BYTES else ("SAMPLE",)
    format = [] if corpus_format == "auto" else ["--format", corpus_format]
    size = ["--size", str(plan.vocab_size), "--out", "tokenizer/"]
    commands = [["vocab", *_options(sample), *format, *size]]
    for stage in plan.stages:
        build = ["data", "build", *_options(sources), *format, "--tokenizer", "tokenizer/"]
        build += ["--max-seq-length", str(stage.max_seq_length)]
        build += ["--max-predictions-per-seq", str(stage.max_predictions_per_seq)]
        build += ["--no-static-masks", "--set", "masking.max_ngram=1"]
        build += ["--copies", str(plan.copies)] if plan.copies > 1 else []
        commands.append([*build, "--out", f"{stage.records}/"])
    data, out = f"{plan.stages[-1].records}/", f"runs/{plan.chosen.rung.name}"
    commands.append(["pretrain", "--config", config_file, "--data", data, "--out", out])
    return [f"albert-keras {shlex.join(words)}" for words in commands]


def _options(sources):
    return [word for source in sources for word in ("--corpus", source)]


def config_text(plan: BudgetPlan) -> str:
    """Returns the settings for `albert-keras pretrain --config`: YAML with a comment."""
    import yaml

    time, text = format_duration(plan.seconds), bytes_text(plan.corpus_bytes)
    header = (
        f"# {plan.chosen.rung.name} for {time} and {text} of text, by `albert-keras plan`.\n"
        f"# Expected masked-LM loss on held-out text: {_loss(plan.chosen)}.\n\n"
    )
    return header + yaml.safe_dump(plan.config, sort_keys=False)


def budget_assumptions(
    plan: BudgetPlan, request: BudgetRequest, measured: str | None = None
) -> dict[str, str]:
    """Returns what each number is based on.

    Args:
        plan: The plan.
        request: What it was made for.
        measured: Precision in which `request.tflops` was measured on this machine; None if it was
            not.
    """
    device, chosen = DEVICES[plan.device], plan.chosen
    peak = "data sheet"
    if measured:
        peak = f"measured here in {measured}; other programs slow it down"
    elif request.tflops:
        peak = "given"
    mfu = "measured with hidden sizes 128 and 256" if device.kind == "cpu" else "assumed"
    return {
        "text": "file sizes; given"
        if request.bytes_per_piece
        else "file sizes; English has 3.94 bytes per token with 8,000 pieces, 4.18 with 16,000",
        "vocabulary": "8,000 pieces below 10 MB, 16,000 below 1 GB, otherwise 30,000; at most one "
        "piece per 250 bytes. On 52 MB of novels 16,000 was better than 8,000",
        "model": "the smallest of the models that are expected to be about equal. Rotary positions "
        "had 1.5 points more accuracy in docs/studies/positions; no other format can store them "
        "with shared layers",
        "stages": "short records and many masks first, as in albert-mini-en",
        "copies": "one for each pass over the text in a stage, at most 10: each copy divides the "
        "text into different segments; otherwise the sentence order would be memorized",
        "speed": f"{number_text(request.tflops or device.tflops)} TFLOP/s per replica, {peak}; "
        f"{chosen.mfu:.0%} of it in useful work, {'given' if request.mfu else mfu}",
        "loss": "for English novels, 8,000 pieces and 15 % masks, by a law fitted to measured "
        "runs (docs/search.md); ± is a standard error",
        "transfer": "other text has other losses; it is assumed that the order of the models is "
        "the same",
        "time": f"{bytes_text(VOCABULARY_RATE)} per second for the vocabulary, "
        f"{bytes_text(BUILD_RATE)} for records and {bytes_text(COPY_RATE)} for each further copy; "
        "training.time_budget ends the training on time",
        "disk": "records by formula, and 4 checkpoints of 12 bytes per weight",
    }


def budget_warnings(plan: BudgetPlan) -> list[str]:
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
    if DEVICES[plan.device].kind != "cpu":
        warnings.append(
            "We have not trained on this device: batch size, learning rate and speed are "
            "calculated and untested."
        )
    if chosen.epochs > _MANY_EPOCHS:
        warnings.append(
            f"Each token is seen {chosen.epochs:,.0f} times. More text would teach more than more "
            "time."
        )
    if chosen.epochs < 0.5:
        warnings.append(
            f"Only {chosen.epochs:.0%} of the text is seen. Build records from fewer files to save "
            "time and disk."
        )
    if plan.corpus_bytes > VOCABULARY_BYTES:
        warnings.append(
            f"Replace SAMPLE in the first command by files of about {bytes_text(VOCABULARY_BYTES)} "
            "of the corpus. More text takes long and changes the vocabulary little."
        )
    return warnings


def budget_lines(plan: BudgetPlan, assumptions: dict[str, str]) -> Iterator[str]:
    """Yields the plan as text, each number with its assumption; without the commands."""
    chosen = plan.chosen
    replicas = f", {plan.replicas} replicas" if plan.replicas > 1 else ""
    yield f"What a model can learn in {format_duration(plan.seconds)} on {plan.device}{replicas}"
    yield ""
    size, tokens = bytes_text(plan.corpus_bytes), short_count(plan.text_tokens)
    yield from _item("Text", f"{size}, {tokens} tokens", assumptions["text"])
    yield from _item("Vocabulary", f"{plan.vocab_size:,} pieces", assumptions["vocabulary"])
    yield from _item(
        "Model",
        f"{model_line(chosen.rung.config(plan.vocab_size))}, hidden size {chosen.rung.hidden_size}",
        assumptions["model"],
    )
    stages = [
        f"{stage.share:.0%} of the time: {stage.max_seq_length} tokens per record, batch "
        f"{stage.batch_size:,}, {stage.mask_rate:.0%} masks"
        for stage in plan.stages
    ]
    yield from _item("Stages", "; then ".join(stages), assumptions["stages"])
    yield from _item(
        "Training",
        f"{chosen.steps:,} updates, {short_count(chosen.tokens)} tokens; each token of the text "
        f"is seen {number_text(chosen.epochs)} times",
        f"{short_count(chosen.positions_per_second)} tokens per second: {assumptions['speed']}",
    )
    yield from _item(
        "Expected",
        f"masked-LM loss {_loss(chosen)} and accuracy {chosen.expected.accuracy:.0%} on held-out "
        "text",
        assumptions["loss"],
        assumptions["transfer"],
    )
    parts = (f"{name} {format_duration(seconds)}" for name, seconds in plan.parts.items())
    yield from _item(
        "Records",
        f"{plan.copies} {'copies' if plan.copies > 1 else 'copy'} of the text",
        assumptions["copies"],
    )
    yield from _item("Time", ", ".join(parts), assumptions["time"])
    yield from _item("Disk", bytes_text(plan.disk_bytes), assumptions["disk"])
    yield ""
    rows = [_HEADINGS, *(_row(one) for one in plan.candidates)]
    for line, one in zip(table((), rows), (None, *plan.candidates), strict=True):
        yield line + _mark(one, chosen)


def _item(name, value, *reasons):
    for number, text in enumerate([value, *(f"({reason})" for reason in reasons)]):
        heading = f"{'' if number else name:<12}"
        yield from textwrap.wrap(text, 100, initial_indent=heading, subsequent_indent=" " * 13)


def _row(one):
    seen, speed = short_count(one.tokens), short_count(one.positions_per_second)
    times, accuracy = number_text(one.epochs), f"{one.expected.accuracy:.0%}"
    size = short_count(one.weights)
    return one.rung.name, size, speed, seen, times, f"{one.steps:,}", _loss(one), accuracy


def _mark(one, chosen):
    if one is None:
        return ""
    if one is chosen:
        return "   <- chosen"
    return f"   {one.objection}" if one.objection else ""


def _loss(one):
    return f"{one.expected.loss:.2f} ± {one.expected.error:.2f}"
