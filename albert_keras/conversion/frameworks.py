"""Models of other frameworks run by these, where they are installed."""

import contextlib
import importlib.util
import json
import logging
from importlib import metadata
from pathlib import Path

import numpy as np

from albert_keras.interop.keras_nlp import to_keras_nlp
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.runs.tensors import weight_names

logger = logging.getLogger(__name__)


def framework_outputs(format_name, path, weights, inputs):
    """Runs a model by the framework its format belongs to.

    Args:
        format_name: str. See `formats.FORMATS`.
        path: Path. Of the model on disk.
        weights: ModelWeights. What our reader found there.
        inputs: list of dict. "input_ids", "input_mask" and "segment_ids", int32 [B, S].

    Returns:
        tuple or None. Name of the framework, and a list of dict of output -> array, one per batch,
        as of `verify.our_outputs`. None if there is no framework, it is not installed, or it would
        have to unpickle something.
    """
    if format_name == "hugging-face" and _can_run_transformers(Path(path)):
        return _run_transformers(Path(path), weights, inputs)
    if format_name == "keras-nlp" and importlib.util.find_spec("keras_nlp"):
        return _run_keras_nlp(weights, inputs)
    return None


def _can_run_transformers(path):
    is_safe = path.is_dir() and any(path.glob("*.safetensors"))
    return is_safe and all(map(importlib.util.find_spec, ("torch", "transformers")))


def _run_transformers(path, weights, inputs):
    try:
        import torch
        import transformers
    except ImportError as error:  # there, but broken
        logger.warning("transformers cannot be imported (%s): the oracle is asked instead", error)
        return None
    kind = json.loads((path / "config.json").read_bytes())["model_type"]
    is_bert = kind == "bert"
    model_class = transformers.BertForPreTraining if is_bert else transformers.AlbertForPreTraining
    with _quiet(transformers):
        model = model_class.from_pretrained(
            str(path),
            use_safetensors=True,
            local_files_only=True,
            trust_remote_code=False,
            attn_implementation="eager",
        )
    model = model.float().eval()
    # Where no head wants a pooler there is none; our reader gives zeros, transformers a random one.
    has_pooler = np.any(weights.tensors["bert/pooler/dense/kernel"])
    results = []
    for batch in inputs:
        ids, mask, segments = (
            torch.from_numpy(batch[name].astype(np.int64))
            for name in ("input_ids", "input_mask", "segment_ids")
        )
        with torch.no_grad():
            base = getattr(model, model.base_model_prefix)
            hidden = base(ids, attention_mask=mask, token_type_ids=segments)
            outputs = {"sequence_output": hidden[0]}
            if has_pooler:
                outputs["pooled_output"] = hidden[1]
            if "masked_lm" in weights.heads:
                head = model.cls.predictions if is_bert else model.predictions
                outputs["masked_lm_logits"] = head(hidden[0])
            if "sentence_order" in weights.heads:
                head = model.cls.seq_relationship if is_bert else model.sop_classifier
                outputs["sentence_order_logits"] = head(hidden[1])
        results.append({name: output.numpy() for name, output in outputs.items()})
    return f"transformers {transformers.__version__}", results


def _run_keras_nlp(weights, inputs):
    """Runs KerasNLP's encoder with what our reader found; a folder's own classes are not loaded.

    Its masked-LM head is left out: it adds 1e-5 to a variance where all others add 1e-12.
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
    """Keeps transformers from telling which heads it made up; those are not asked."""
    words = transformers.utils.logging
    verbosity, shows_progress = words.get_verbosity(), words.is_progress_bar_enabled()
    words.set_verbosity_error()
    words.disable_progress_bar()
    try:
        yield
    finally:
        words.set_verbosity(verbosity)
        if shows_progress:
            words.enable_progress_bar()
