"""The source and the result of a conversion, run on the same inputs and compared.

One in the format of Hugging Face is run by transformers, if it is installed and can read the files
without running their code; the other one is run by our Keras model.
"""

import contextlib
import functools
import importlib.util
import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.hugging_face_config import class_of, family_of
from albert_keras.formats.model_weights import POOLER, ModelWeights
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.tensors import weight_names
from albert_keras.tasks.kinds import CHOICE, CLASSIFICATION, SPANS, TAGGING
from data_pipeline.errors import InputError
from data_pipeline.limits import read_json

logger = logging.getLogger(__name__)

#: Largest difference that counts as rounding in float32, relative to the largest number of the
#: output if that is above 1. Small models stay below a hundredth of it; the tanh form of GELU in
#: place of the other, which differs by up to 4.7e-4 in each unit, is above it.
BOUND = 1e-4
_LENGTHS, _LONGEST = (1, 7), 64
_TASK_HEADS = ("classifier", "spans")
#: Output -> names that it has in the answers of transformers.
_OUTPUTS = {
    "sequence_output": ("last_hidden_state",),
    "pooled_output": ("pooler_output",),
    "masked_lm_logits": ("prediction_logits",),
    "sentence_order_logits": ("sop_logits", "seq_relationship_logits"),
    "logits": (),
    "start_logits": ("start_logits",),
    "end_logits": ("end_logits",),
}
#: End of the name of a class -> the output that transformers calls "logits".
_LOGITS = {"MaskedLM": "masked_lm_logits", "NextSentencePrediction": "sentence_order_logits"}


class Verification(NamedTuple):
    """The result of a verification."""

    source: str  #: What ran the source; "" if no library could run its format.
    target: str  #: What ran the target.
    differences: dict[str, float]  #: The largest difference of each output; empty if none ran.
    equal_tensors: int  #: Number of tensors that are bit-equal in the target.


def verify(
    source: ModelWeights,
    target: ModelWeights,
    source_format: str,
    target_format: str,
    paths: tuple[Path, Path],
) -> Verification:
    """Compares the source of a conversion with its target, both as read from disk at `paths`.

    Raises:
        InputError: If a tensor of the target has other numbers, or an output of source and target
            differs by more than `BOUND`.
    """
    different = []
    for name, array in target.tensors.items():
        other = source.tensors.get(name)
        if other is None or array.shape != other.shape or array.tobytes() != other.tobytes():
            different.append(name)
    if different:
        raise InputError(
            "The target must contain the same numbers as its source. These tensors differ: "
            f"{', '.join(different)}. Nothing was written."
        )
    inputs = random_inputs(source.config)
    # Our model runs the source if that is ours, otherwise the target.
    ours_first = source_format == "albert-keras" != target_format
    ours, theirs = (source, target) if ours_first else (target, source)
    number = 1 if ours_first else 0
    their_format = (source_format, target_format)[number]
    found = _framework_outputs(their_format, paths[number], theirs, inputs)
    if found is None:
        return Verification("", "", {}, len(target.tensors))
    name, outputs, class_name = found
    our = our_outputs(ours, inputs, class_name)
    has_pooler, keeps_pooler = (f"{POOLER}/kernel" in each.tensors for each in (source, target))
    if has_pooler != keeps_pooler:  # without a pooler, its output is the one at [CLS]
        our = [{name: each[name] for name in each if name != "pooled_output"} for each in our]
    differences = compare(our, outputs)
    names = ("albert-keras", name) if ours_first else (name, "albert-keras")
    return Verification(*names, differences, len(target.tensors))


def random_inputs(config: AlbertConfig, seed: int = 0) -> list[dict[str, np.ndarray]]:
    """Samples inputs of several lengths: one row full, one padded left, one padded right.

    Each batch has "input_ids", "input_mask" and "segment_ids", int32 [3, S].
    """
    rng = np.random.default_rng(seed)
    longest = min(_LONGEST, config.max_position_embeddings)
    batches = []
    for length in sorted({min(length, longest) for length in (*_LENGTHS, longest)}):
        mask = np.ones((3, length), np.int32)
        mask[1, : length // 3] = 0
        mask[2, length - length // 3 :] = 0
        ids = rng.integers(0, config.vocab_size, (3, length), np.int32)
        if config.position_offset:  # transformers finds padding by its id
            pad_id = config.position_offset - 1
            ids = np.where(mask == 1, np.where(ids == pad_id, pad_id + 1, ids), pad_id)
        batches.append(
            {
                "input_ids": ids,
                "input_mask": mask,
                "segment_ids": rng.integers(
                    0, max(1, config.type_vocab_size), (3, length), np.int32
                ),
            }
        )
    return batches


def our_outputs(
    weights: ModelWeights, inputs: list, class_name: str = ""
) -> list[dict[str, np.ndarray]]:
    """Runs our Keras models with ModelWeights; returns the outputs of each batch.

    `class_name` is the class of transformers with the head of the task, if the model has one.
    """
    config = weights.config.replace(initializer_range=0.0)  # replaced at once
    if f"{POOLER}/kernel" in weights.tensors:
        config = config.replace(pooler="always")  # the model for pre-training may lack it
    has_order = "sentence_order" in weights.heads
    model = AlbertForPretraining(config, sentence_head=has_order, dtype="float32")
    _assign(model, weights)
    names = {"sequence_output", "pooled_output"}
    names |= {f"{head}_logits" for head in weights.heads if head not in _TASK_HEADS}
    results = []
    for batch in inputs:
        rows, length = batch["input_ids"].shape
        positions = np.tile(np.arange(length, dtype=np.int32), (rows, 1))
        outputs = model(batch | {"masked_lm_positions": positions}, training=False)
        results.append({name: outputs[name].numpy() for name in outputs if name in names})
    if not set(weights.heads) & set(_TASK_HEADS):
        return results
    tasks = _task_outputs(weights, inputs, class_name)
    return [result | task for result, task in zip(results, tasks, strict=True)]


def _task_outputs(weights, inputs, class_name):
    """Runs our model with the head of a task."""
    kind = SPANS if SPANS.name in weights.heads else CLASSIFICATION
    kind = TAGGING if class_name.endswith("TokenClassification") else kind
    kind = CHOICE if class_name.endswith("MultipleChoice") else kind
    count = 0 if kind is SPANS else len(weights.tensors["output_bias"])
    config = weights.config.replace(initializer_range=0.0)
    model = kind.build_model(config, count, dtype="float32")
    _assign(model, weights)
    outputs = [model(_as_rows(batch, kind is CHOICE), training=False) for batch in inputs]
    return [{name: array.numpy() for name, array in each.items()} for each in outputs]


def _as_rows(batch, is_choice):
    """Makes all sequences of a batch the options of one row, [1, B, S], for a choice."""
    return {name: array[None] for name, array in batch.items()} if is_choice else batch


def _assign(model, weights):
    for name, variable in weight_names(model).items():
        if name in weights.tensors:
            variable.assign(weights.tensors[name])


def compare(first: list[dict], second: list[dict]) -> dict[str, float]:
    """Returns the largest difference of each output that both have.

    InputError if one is above `BOUND`, relative to the largest number, or not finite.
    """
    differences, problems = {}, []
    common = functools.reduce(set.intersection, (set(outputs) for outputs in (*first, *second)))
    for name in (name for name in _OUTPUTS if name in common):
        pairs = [(one[name], other[name]) for one, other in zip(first, second, strict=True)]
        if name in ("start_logits", "end_logits"):  # ours are lowest at padding, which never counts
            pairs = [(one[one > -1e3], other[one > -1e3]) for one, other in pairs]
        difference = max(float(np.abs(one - other).max()) for one, other in pairs)
        largest = max(1.0, *(float(np.abs(other).max()) for _, other in pairs))
        if not difference <= BOUND * largest:
            problems.append(f"{name} by {difference:.2g}, where numbers go up to {largest:.2g}")
        differences[name] = difference
    if problems:
        raise InputError(
            f"The converted model must have the same outputs as its source, within {BOUND:g}. "
            f"It differs in {'; '.join(problems)}. Nothing was written."
        )
    return differences


def _framework_outputs(format_name, path, weights, inputs):
    """Runs a model, which our reader found at `path`, by the framework its format belongs to.

    Returns the name of the framework, its outputs and the class of transformers that ran; None if
    the format has no framework, it is not installed, or it would have to unpickle a file.
    """
    is_safe = format_name == "hugging-face" and any(path.glob("*.safetensors"))
    if is_safe and all(map(importlib.util.find_spec, ("torch", "transformers"))):
        return _run_transformers(path, weights, inputs)
    return None


def _run_transformers(path, weights, inputs):
    try:
        import torch
        import transformers
    except ImportError as error:  # installed, but broken
        logger.warning("transformers cannot be imported (%s): no outputs are compared", error)
        return None
    values = read_json(path / "config.json")
    family = family_of(values)
    class_name = class_of(family, weights.heads, values)
    with _quiet(transformers):
        model = getattr(transformers, class_name).from_pretrained(
            str(path),
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            attn_implementation="eager",
        )
    model = model.float().eval()
    keys = {"input_ids": "input_ids", "attention_mask": "input_mask"}
    if family.name != "distilbert":
        keys["token_type_ids"] = "segment_ids"
    # A model without a pooler gets one of zeros from our reader, a random one from transformers.
    skipped = () if np.any(weights.tensors.get(f"{POOLER}/kernel", 0)) else ("pooled_output",)
    logits = next((name for end, name in _LOGITS.items() if class_name.endswith(end)), "logits")
    results = []
    for batch in inputs:
        rows = _as_rows(batch, class_name.endswith("MultipleChoice"))
        call = {name: torch.from_numpy(rows[ours].astype(np.int64)) for name, ours in keys.items()}
        with torch.no_grad():
            answer = model(**call, output_hidden_states=True, return_dict=True)
        outputs = {"sequence_output": answer["hidden_states"][-1]}
        names = {each: ours for ours, theirs in _OUTPUTS.items() for each in theirs}
        names["logits"] = logits
        outputs |= {names[name]: array for name, array in answer.items() if name in names}
        results.append(
            {name: array.numpy() for name, array in outputs.items() if name not in skipped}
        )
    return f"transformers {transformers.__version__}", results, class_name


@contextlib.contextmanager
def _quiet(transformers):
    """Silences warnings about heads that transformers initializes and nobody uses."""
    log = transformers.utils.logging
    verbosity, shows_progress = log.get_verbosity(), log.is_progress_bar_enabled()
    log.set_verbosity_error()
    log.disable_progress_bar()
    try:
        yield
    finally:
        log.set_verbosity(verbosity)
        if shows_progress:
            log.enable_progress_bar()
