"""The source and the result of a conversion, run on the same inputs and compared.

One of the two is run by the framework it belongs to, if that is installed and can read its files
without running their code; otherwise by a reference implementation in NumPy. The other is run by
our Keras model.
"""

import contextlib
import functools
import importlib.util
import logging
import operator
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.conversion import numpy_albert
from albert_keras.interop.hugging_face_config import family_of
from albert_keras.interop.keras_nlp import to_keras_nlp
from albert_keras.interop.model_folder import read_json
from albert_keras.interop.model_weights import POOLER, ModelWeights
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.tensors import weight_names
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Largest difference that counts as rounding in float32, relative to the largest number of the
#: output if that is above 1. Small models stay below a hundredth of it; the tanh form of GELU in
#: place of the other, which differs by up to 4.7e-4 in each unit, is above it.
BOUND = 1e-4
_LENGTHS, _LONGEST = (1, 7), 64
#: Output -> the head it comes from; None is the encoder.
_OUTPUTS = {
    "sequence_output": None,
    "pooled_output": None,
    "masked_lm_logits": "masked_lm",
    "sentence_order_logits": "sentence_order",
}


class _Theirs(NamedTuple):
    """A kind of model in transformers."""

    class_name: str  #: Of the class with the heads of pre-training.
    masked_lm: tuple[str, ...]  #: Its modules between the encoder and the logits.
    order: str = ""  #: Its module of the sentence-order head.


_THEIRS = {
    "albert": _Theirs("AlbertForPreTraining", ("predictions",), "sop_classifier"),
    "bert": _Theirs("BertForPreTraining", ("cls.predictions",), "cls.seq_relationship"),
    "roberta": _Theirs("RobertaForMaskedLM", ("lm_head",)),
    "roformer": _Theirs("RoFormerForMaskedLM", ("cls.predictions",)),
    "distilbert": _Theirs(
        "DistilBertForMaskedLM",
        ("vocab_transform", "activation", "vocab_layer_norm", "vocab_projector"),
    ),
}


class Verification(NamedTuple):
    """The result of a verification."""

    source: str  #: What ran the source.
    target: str  #: What ran the target.
    differences: dict[str, float]  #: The largest difference of each output.
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
    name, outputs = found or ("reference in NumPy", oracle_outputs(theirs, inputs))
    our = our_outputs(ours, inputs)
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


def oracle_outputs(weights: ModelWeights, inputs: list) -> list[dict[str, np.ndarray]]:
    """Runs ModelWeights in NumPy; returns the outputs of each batch."""
    sizes, tensors, results = dict(weights.config), weights.tensors, []
    for batch in inputs:
        sequence, pooled, _ = numpy_albert.encode(tensors, sizes, **batch)
        outputs = {"sequence_output": sequence, "pooled_output": pooled}
        if "masked_lm" in weights.heads:
            logits = numpy_albert.masked_lm_logits(tensors, sizes, sequence)
            outputs["masked_lm_logits"] = logits
        if "sentence_order" in weights.heads:
            logits = numpy_albert.sentence_order_logits(tensors, pooled)
            outputs["sentence_order_logits"] = logits
        results.append(outputs)
    return results


def our_outputs(weights: ModelWeights, inputs: list) -> list[dict[str, np.ndarray]]:
    """Runs our Keras model with ModelWeights; returns the outputs of each batch."""
    config = weights.config.replace(initializer_range=0.0)  # replaced at once
    if "bert/pooler/dense/kernel" in weights.tensors:
        config = config.replace(pooler="always")  # the model for pre-training may lack it
    has_order = "sentence_order" in weights.heads
    model = AlbertForPretraining(config, sentence_head=has_order, dtype="float32")
    for name, variable in weight_names(model).items():
        if name in weights.tensors:
            variable.assign(weights.tensors[name])
    names = [name for name, head in _OUTPUTS.items() if head is None or head in weights.heads]
    results = []
    for batch in inputs:
        rows, length = batch["input_ids"].shape
        positions = np.tile(np.arange(length, dtype=np.int32), (rows, 1))
        outputs = model(batch | {"masked_lm_positions": positions}, training=False)
        results.append({name: outputs[name].numpy() for name in names})
    return results


def compare(first: list[dict], second: list[dict]) -> dict[str, float]:
    """Returns the largest difference of each output that both have.

    InputError if one is above `BOUND`, relative to the largest number, or not finite.
    """
    differences, problems = {}, []
    common = functools.reduce(set.intersection, (set(outputs) for outputs in (*first, *second)))
    for name in (name for name in _OUTPUTS if name in common):
        pairs = [(one[name], other[name]) for one, other in zip(first, second, strict=True)]
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

    Returns the name of the framework and its outputs; None if the format has no framework, it is
    not installed, or it would have to unpickle a file.
    """
    if format_name == "keras-nlp" and importlib.util.find_spec("keras_nlp"):
        return _run_keras_nlp(weights, inputs)
    if format_name != "hugging-face":
        return None
    is_safe = path.is_dir() and any(path.glob("*.safetensors"))
    if is_safe and all(map(importlib.util.find_spec, ("torch", "transformers"))):
        return _run_transformers(path, weights, inputs)
    return None


def _run_transformers(path, weights, inputs):
    try:
        import torch
        import transformers
    except ImportError as error:  # installed, but broken
        logger.warning("transformers cannot be imported (%s): NumPy is used instead", error)
        return None
    kind = family_of(read_json(path / "config.json")).name
    theirs = _THEIRS[kind]
    model_class = getattr(transformers, theirs.class_name)
    with _quiet(transformers):
        model = model_class.from_pretrained(
            str(path),
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            attn_implementation="eager",
        )
    model = model.float().eval()
    # A model without a pooler gets one of zeros from our reader, a random one from transformers.
    has_pooler = theirs.order and np.any(weights.tensors.get("bert/pooler/dense/kernel", 0))
    results = []
    for batch in inputs:
        keys = {"input_ids": "input_ids", "attention_mask": "input_mask"}
        if kind != "distilbert":
            keys["token_type_ids"] = "segment_ids"
        call = {name: torch.from_numpy(batch[ours].astype(np.int64)) for name, ours in keys.items()}
        with torch.no_grad():
            hidden = getattr(model, model.base_model_prefix)(**call)
            outputs = {"sequence_output": hidden[0]}
            if has_pooler:
                outputs["pooled_output"] = hidden[1]
            if "masked_lm" in weights.heads:
                output = hidden[0]
                for part in theirs.masked_lm:
                    output = operator.attrgetter(part)(model)(output)
                outputs["masked_lm_logits"] = output
            if "sentence_order" in weights.heads:
                outputs["sentence_order_logits"] = operator.attrgetter(theirs.order)(model)(
                    hidden[1]
                )
        results.append({name: output.numpy() for name, output in outputs.items()})
    return f"transformers {transformers.__version__}", results


def _run_keras_nlp(weights, inputs):
    """Runs KerasNLP's encoder with the tensors of our reader, without loading the folder's classes.

    Its masked-LM head is skipped: it adds 1e-5 to a variance where all others add 1e-12.
    """
    encoder = AlbertEncoder(weights.config.replace(initializer_range=0.0), dtype="float32")
    for name, variable in weight_names(encoder).items():
        variable.assign(weights.tensors[name])
    backbone = to_keras_nlp(encoder)
    results = []
    for batch in inputs:
        outputs = backbone(
            {
                "token_ids": batch["input_ids"],
                "padding_mask": batch["input_mask"],
                "segment_ids": batch["segment_ids"],
            }
        )
        names = ("sequence_output", "pooled_output")
        results.append({name: outputs[name].numpy() for name in names})
    return f"keras-nlp {metadata.version('keras-nlp')}", results


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
