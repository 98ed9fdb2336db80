"""The plan of a pre-training run: what fits, how much text, how long, which commands."""

import math
import shlex
from typing import Literal, NamedTuple

from pydantic import Field

from albert_keras import recipes
from albert_keras.config import AlbertConfig
from albert_keras.models.weight_count import count_weights
from albert_keras.optimization.config import default_warmup_steps
from albert_keras.planning.batch_fit import Fit, choose_fit, fit_batch, least_memory_text
from albert_keras.planning.devices import find_device
from albert_keras.report import bytes_text, number_text
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.cost.flops import training_flops
from data_pipeline.config import LONGEST_RECORD
from data_pipeline.errors import InputError
from data_pipeline.progress import format_duration
from data_pipeline.settings import Settings

#: Bytes of English text per token, at a vocabulary of 30,000; measured 4.0 at 8000.
BYTES_PER_PIECE = 4.3
#: Bytes of a record: measured 552, 910 and 2994 at S 64, 128 and 512 with V 8000, whose ids take a
#: little less room than ids of a vocabulary of 30,000.
RECORD_BYTES, RECORD_BYTES_PER_POSITION = 200, 6
#: Recomputed blocks cost a second forward pass: four thirds of the work.
RECOMPUTE_COST = 4 / 3
#: [CLS] and two [SEP].
_SPECIAL_TOKENS = 3
#: Recipes for a kind of device; for other kinds the recipe of the paper.
_FOR_DEVICE = {
    ("albert-base", "cpu"): "albert-base-cpu",
    ("albert-base", "gpu"): "albert-base-one-gpu",
}
#: Options of `data build` and `vocab` by which a family differs from ALBERT.
_BUILD = {
    "bert": ["--objective", "nsp"],
    "roberta": ["--input-format", "full-sentences"],
    "distilbert": ["--input-format", "full-sentences"],
}
_VOCAB = {
    "bert": ["--kind", "wordpiece"],
    "roberta": ["--kind", "bpe"],
    "distilbert": ["--kind", "wordpiece"],
}


class PlanRequest(Settings):
    """What is planned for."""

    size: str = "albert-base"  # name of an AlbertConfig
    #: Memory of a replica; None uses the memory of the device.
    memory_bytes: float | None = Field(None, gt=0)
    #: Global batch size; None takes the recipe's.
    batch_size: int | None = Field(None, ge=1, le=1_000_000)
    #: Text; without it epochs and disk are not computed.
    corpus_bytes: float | None = Field(None, gt=0)
    max_seq_length: int = Field(512, ge=8, le=LONGEST_RECORD)  # S
    attention: Literal["dense", "block-sparse"] = "dense"
    device: str = "cpu"  # a key of `DEVICES`
    devices: int | None = Field(None, ge=1)  # replicas; None takes as many as the device has
    tflops: float | None = Field(None, gt=0)  # peak of a replica, in 10^12 operations per second
    mfu: float | None = Field(None, gt=0, le=1)  # fraction of the peak that useful work reaches
    precision: str | None = None  # None takes the usual precision of the device
    steps: int | None = Field(None, ge=1)  # None takes as much text as the recipe
    vocab_size: int = Field(30_000, ge=1)  # V
    bytes_per_piece: float = Field(BYTES_PER_PIECE, gt=0)  # bytes of text per token


class Plan(NamedTuple):
    """The cost of a run; `assumptions` says what each number is based on."""

    size: str
    device: str
    precision: str
    recipe: str
    weights: int  # number of weights of the model
    max_seq_length: int  # S
    max_predictions_per_seq: int  # P
    batch_size: int  # global
    replicas: int
    share: int  # sequences per replica and step
    memory_bytes: float  # memory of a replica
    fits: tuple[Fit, Fit]  # with blocks kept, and recomputed
    chosen: Fit
    steps: int
    sequences: int  # seen in all steps
    records: int | None  # records built from the corpus
    epochs: float | None  # how often each record is seen
    disk_bytes: float | None  # size of the records
    flops_per_step: int  # useful operations, all replicas
    seconds_per_step: float
    seconds: float
    commands: list
    assumptions: dict

    def to_dict(self):
        """Returns plain values for JSON (dict)."""
        return self._asdict() | {
            "fits": [fit.to_dict() for fit in self.fits],
            "chosen": self.chosen.to_dict(),
        }


def make_plan(request: PlanRequest, is_measured: bool = False) -> Plan:
    """Plans a run; `is_measured` says whether `tflops` was measured on this machine.

    Raises:
        InputError: If a name is unknown, the batch is not a multiple of the replicas, or not even
            one sequence fits.
    """
    device = find_device(request.device)
    config = AlbertConfig.from_name(
        request.size, vocab_size=request.vocab_size, **_model_changes(request)
    )
    precision = request.precision or device.precision
    recipe_name = choose_recipe(request.size, device.kind)
    recipe = recipe_config(recipe_name).training
    replicas = request.devices or device.replicas
    batch_size = request.batch_size or recipe.batch_size
    if batch_size % replicas:
        raise InputError(
            f"`--batch` must be a multiple of the {replicas} replicas. Received: {batch_size}."
        )
    share = batch_size // replicas
    lengths = request.max_seq_length, math.ceil(0.15 * request.max_seq_length)
    memory_bytes = request.memory_bytes or device.memory_bytes
    settings = {"precision": precision, "process_bytes": round(device.process_bytes)}
    fits = fit_batch(config, share, memory_bytes, *lengths, **settings)
    if not any(fit.memory for fit in fits):
        least = least_memory_text(config, [(share, *lengths)], **settings)
        raise InputError(
            f"`--memory` must be at least {least} for {request.size} at S "
            f"{request.max_seq_length} in {precision}, however the batch is split. Received: "
            f"{bytes_text(memory_bytes, digits=6)}."
        )
    chosen = choose_fit(fits, share, request.max_seq_length)
    steps = request.steps or max(1, round(recipe.steps * recipe.batch_size / batch_size))
    has_pairs = "--input-format" not in _BUILD.get(_family(request.size), [])
    flops = training_flops(config, batch_size, *lengths, sentence_head=has_pairs)
    rate = (request.tflops or device.tflops) * 1e12 * (request.mfu or device.mfu) * replicas
    seconds_per_step = flops * (RECOMPUTE_COST if chosen.recompute else 1) / rate
    records = epochs = disk_bytes = None
    if request.corpus_bytes is not None:
        tokens = request.corpus_bytes / request.bytes_per_piece
        records = max(1, round(tokens / (request.max_seq_length - _SPECIAL_TOKENS)))
        epochs = steps * batch_size / records
        disk_bytes = records * (RECORD_BYTES + RECORD_BYTES_PER_POSITION * request.max_seq_length)
    return Plan(
        size=request.size,
        device=request.device,
        precision=precision,
        recipe=recipe_name,
        weights=count_weights(config, sentence_head=has_pairs).total,
        max_seq_length=request.max_seq_length,
        max_predictions_per_seq=lengths[1],
        batch_size=batch_size,
        replicas=replicas,
        share=share,
        memory_bytes=memory_bytes,
        fits=fits,
        chosen=chosen,
        steps=steps,
        sequences=steps * batch_size,
        records=records,
        epochs=epochs,
        disk_bytes=disk_bytes,
        flops_per_step=flops,
        seconds_per_step=seconds_per_step,
        seconds=steps * seconds_per_step,
        commands=_commands(request, recipe_name, batch_size, steps, chosen, precision, device.kind),
        assumptions=_assumptions(request, device, recipe, recipe_name, is_measured),
    )


def _assumptions(request, device, recipe, recipe_name, is_measured):
    peak = "measured here" if is_measured else "given" if request.tflops else "data sheet"
    if peak == "data sheet" and device.kind == "cpu":
        peak = "eight cores of 80 GFLOP/s; --measure measures this machine"
    return {
        "memory": "formula of training/cost/memory.py, measured on a CPU; 10 % stays free"
        + ("" if request.memory_bytes else f"; {bytes_text(device.memory_bytes)} of the device"),
        "peak": f"{number_text(request.tflops or device.tflops)} TFLOP/s per replica, {peak}",
        "mfu": f"{request.mfu or device.mfu:.0%} of the peak in useful work, "
        + ("given" if request.mfu else "assumed"),
        "recompute": "recomputed blocks take 4/3 of the time",
        "steps": "given"
        if request.steps
        else f"as many sequences as {recipe_name}: {recipe.steps:,} of {recipe.batch_size:,}",
        "text": f"{number_text(request.bytes_per_piece)} bytes per token (English, V 30,000: 4.3), "
        "one copy, S - 3 tokens per record",
        "disk": f"{RECORD_BYTES} bytes per record and {RECORD_BYTES_PER_POSITION} per position",
    }


def choose_recipe(size: str, kind: str) -> str:
    """Returns the recipe for a named model, or a smaller one, and a "cpu", "gpu" or "tpu"."""
    plain = size.removesuffix("-v1").removesuffix("-v2")
    if plain.endswith(("-tiny", "-mini")):
        return "albert-mini-cpu"
    if (plain, kind) in _FOR_DEVICE:
        return _FOR_DEVICE[plain, kind]
    name = f"{plain}-paper"
    return name if name in recipes.names() else f"{_family(plain)}-base-paper"


def _model_changes(request):
    """Returns the settings in which the model differs from the named one."""
    changes = {}
    if request.max_seq_length > AlbertConfig.from_name(request.size).max_position_embeddings:
        changes["max_position_embeddings"] = request.max_seq_length
    if request.attention != "dense":
        changes["attention"] = request.attention
    return changes


def _family(size):
    return size.partition("-")[0]


def recipe_config(name):
    """Returns the PretrainingConfig of a recipe."""
    import yaml

    return PretrainingConfig.of(yaml.safe_load(recipes.path(name).read_text(encoding="utf-8")))


def _commands(request, name, batch_size, steps, fit, precision, kind) -> list[str]:
    """Returns the commands from text to a run by the recipe `name` on a `kind` of device."""
    recipe, size = recipe_config(name), request.size
    length, vocab_size = str(request.max_seq_length), str(request.vocab_size)
    build = ["data", "build", "--corpus", "CORPUS", "--tokenizer", "tokenizer/"]
    build += ["--out", "records/", "--max-seq-length", length, "--no-static-masks"]
    build += _BUILD.get(_family(size), [])
    train = ["pretrain", "--config", name, "--size", size, "--data", "records/"]
    train += ["--out", f"runs/{size}", "--batch-size", str(batch_size), "--steps", str(steps)]
    train += ["--accumulate", str(fit.accumulation_steps), "--precision", precision]
    train += ["--recompute" if fit.recompute else "--no-recompute"]
    if batch_size != recipe.training.batch_size and name.endswith(("-paper", "-gpu")):
        if recipe.optimizer.name == "lamb":
            train += ["--lr", "auto"]
    if (recipe.optimizer.warmup_steps or 0) > steps // 10:
        train += ["--set", f"optimizer.warmup_steps={default_warmup_steps(steps)}"]
    if kind != "tpu" and recipe.training.steps_per_execution > 1:
        train += ["--steps-per-execution", "1"]
    for name, value in _model_changes(request).items():
        train += ["--set", f"model.{name}={value}"]
    vocab = ["vocab", *_VOCAB.get(_family(size), [])]
    vocab += ["--corpus", "CORPUS", "--size", vocab_size, "--out", "tokenizer/"]
    return [f"albert-keras {shlex.join(words)}" for words in (vocab, build, train)]


def plan_lines(plan):
    """Yields the lines of a Plan as text, each number with its assumption."""
    because = plan.assumptions
    yield (
        f"{plan.size}: {plan.weights / 1e6:,.1f} million weights, S {plan.max_seq_length}, "
        f"P {plan.max_predictions_per_seq}, {plan.precision}, on {plan.device} "
        f"({plan.replicas} replica{'s' if plan.replicas > 1 else ''})"
    )
    yield ""
    yield (
        f"Memory: what fits into {bytes_text(plan.memory_bytes)} per replica, for "
        f"{plan.share:,} of {plan.batch_size:,} sequences"
    )
    yield f"  ({because['memory']})"
    for fit in plan.fits:
        name = "recomputed" if fit.recompute else "blocks kept"
        yield f"  {name:<15} {_fit_text(fit)}{'   <- chosen' if fit == plan.chosen else ''}"
    memory = plan.chosen.memory
    yield (
        f"  {'chosen':<15} process {bytes_text(memory.process)}, weights "
        f"{bytes_text(memory.weights)}, moments {bytes_text(memory.moments)}, "
        f"activations {bytes_text(memory.kept)}, working memory {bytes_text(memory.working)}, "
        f"gradients {bytes_text(memory.gradients)}; update {bytes_text(memory.update)}"
    )
    yield ""
    yield "Time"
    yield f"  {plan.steps:,} steps, {plan.sequences:,} sequences ({because['steps']})"
    yield f"  {number_text(plan.flops_per_step / 1e12)} TFLOP of useful work per step"
    yield f"  {because['peak']}; {because['mfu']}"
    if plan.chosen.recompute:
        yield f"  {because['recompute']}"
    yield (
        f"  {format_duration(plan.seconds_per_step)} per step, "
        f"{format_duration(plan.seconds)} in total"
    )
    if plan.records is not None:
        yield ""
        yield "Text"
        yield f"  {plan.records:,} records ({because['text']})"
        yield f"  each is seen {number_text(plan.epochs)} times"
        yield f"  {bytes_text(plan.disk_bytes)} of disk for the records ({because['disk']})"
    yield ""
    yield f"Recipe {plan.recipe}"
    for command in plan.commands:
        yield f"  {command}"


def _fit_text(fit):
    if fit.memory is None:
        return f"at most {fit.largest:,} at once: no part of the batch fits"
    return (
        f"at most {fit.largest:,} at once; {fit.accumulation_steps:,} "
        f"part{'s' if fit.accumulation_steps > 1 else ''} of {fit.part:,}: "
        f"{bytes_text(fit.memory.total)}"
    )
