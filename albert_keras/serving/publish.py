"""A run → `saved_models/<name>/<version>/`, whole or not at all."""

import json
import logging
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.serving.export.accuracy import (
    AccuracyLoss,
    compare,
    graph_logits,
    masked_records,
    masked_texts,
)
from albert_keras.serving.export.lite import LiteModel, check_lite, convert_to_lite
from albert_keras.serving.graph.precision import StoredModel, check_precision
from albert_keras.serving.graph.text_model import TextModel
from albert_keras.serving.layout import MASK_LITERAL, versions
from albert_keras.serving.names import MAX_VERSION
from albert_keras.training.run import Run
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder

logger = logging.getLogger(__name__)

#: Answers of what was written may be so far from those of what was meant to be.
_TOLERANCE = 1e-2


class ExportResult(NamedTuple):
    """What an export made.

    Attributes:
        path: Path. The folder of the version.
        version: int.
        step: int. The checkpoint that was exported.
        num_bytes: int. All files together.
        precision: str. Of the SavedModel.
        saved_model_bytes: int. What a server loads: the graph with its tokenizer, and the weights.
        lite_bytes: dict of "float16" or "int8" -> int. Size of each `.tflite` file.
        losses: dict of variant -> AccuracyLoss, "bfloat16", "int8", "lite float16", "lite int8".
    """

    path: Path
    version: int
    step: int
    num_bytes: int
    precision: str
    saved_model_bytes: int
    lite_bytes: dict[str, int]
    losses: dict[str, AccuracyLoss]


def export(
    run,
    out,
    step=None,
    version=None,
    max_seq_length=None,
    precision="float32",
    lite=(),
    eval_data=None,
):
    """Writes a checkpoint as a SavedModel over plain strings and as a `.keras` model.

    Where weights are not float32, what that loses is measured on real text and told.

    Args:
        run: str or Path. Folder of the run.
        out: str or Path. Folder of the name, such as `saved_models/books`; the version comes in
            it.
        step: int, "best" or None. Which checkpoint; None takes the newest sound one.
        version: int or None. None takes the next one.
        max_seq_length: int or None. Longer texts are cut, S. None takes the longest the model was
            trained on.
        precision: str. "float32", "bfloat16" or "int8", of the SavedModel; see `StoredModel`. The
            `.keras` model is float32 in any case.
        lite: iterable of "float16" and "int8". TensorFlow Lite files to write besides.
        eval_data: str, Path or None. Held-out records to measure the loss on; None takes texts of
            the documentation of installed packages.

    Returns:
        ExportResult.

    Raises:
        InputError: If the run has no checkpoint or tokenizer, if the version exists, or if there is
            no such precision.
    """
    check_precision(precision)
    lite = tuple(dict.fromkeys(lite))
    for weights in lite:
        check_lite(weights)
    run, out = Run.open(run), Path(out)
    run.check_kind("pretraining", "export")
    step = run.checkpoints.choose(step)
    tokenizer, config = run.tokenizer, run.albert_config
    version = _next_version(out) if version is None else version
    if not 0 < version <= MAX_VERSION:
        raise InputError(f"`version` should be a positive int64. Received: {version}.")
    folder = out / str(version)
    check_output_folder(folder)
    length = max_seq_length or min(run.record["data"]["max_seq_length"], 512)
    if not 8 <= length <= config.max_position_embeddings:
        raise InputError(
            "`max_seq_length` should be from 8 to `max_position_embeddings` "
            f"({config.max_position_embeddings}). Received: {length}."
        )
    batches = []
    if eval_data is not None:
        digest = run.record["tokenizer_digest"]
        batches = masked_records(eval_data, config.vocab_size, length, digest)
    elif precision != "float32" or lite:
        batches = masked_texts(tokenizer, length)

    training = run.record["config"]["training"]
    model = AlbertForPretraining(
        config, sentence_head=training["sentence_order_weight"] > 0, dtype="float32"
    )
    run.checkpoints.restore(step, model)
    module = TextModel(model, tokenizer, length, precision)
    with whole_folder(folder) as staging:
        tf.saved_model.save(module, str(staging), signatures=module.functions)
        saved_model_bytes = _size_of(staging)
        model.save(staging / "model.keras")
        config.save(staging / "albert_config.json")
        (staging / "tokenizer").mkdir()
        tokenizer.save(staging / "tokenizer")
        lite_files = _write_lite(staging / "lite", model, length, lite)
        _check_answers(staging, module)
        losses = _losses(model, module, precision, lite_files, batches)
        (staging / "export.json").write_text(
            json.dumps(
                {
                    "step": step,
                    "max_seq_length": length,
                    "precision": precision,
                    "accuracy_loss": {name: loss._asdict() for name, loss in losses.items()},
                    "compared_on": None if not losses else str(eval_data or "documentation"),
                    "run": run.record,
                    "tensorflow": tf.__version__,
                    "albert-keras": metadata.version("albert-keras"),
                },
                indent=2,
            )
            + "\n",
            encoding="utf-8",
        )
        lite_bytes = {weights: file.stat().st_size for weights, file in lite_files.items()}
    num_bytes = _size_of(folder)
    logger.info("version %d published, %.1f MB", version, num_bytes / 1e6)
    return ExportResult(
        folder, version, step, num_bytes, precision, saved_model_bytes, lite_bytes, losses
    )


def _write_lite(folder, model, max_seq_length, lite):
    """Writes TensorFlow Lite files and returns their paths, a dict of "float16" or "int8"."""
    files = {}
    for weights in lite:
        folder.mkdir(exist_ok=True)
        files[weights] = folder / f"model_{weights}.tflite"
        files[weights].write_bytes(convert_to_lite(model, max_seq_length, weights))
    return files


def _losses(model, module, precision, lite_files, batches):
    variants = {}
    if precision != "float32":
        variants[precision] = graph_logits(module.stored)
    for weights, file in lite_files.items():
        variants[f"lite {weights}"] = LiteModel(file).logits
    if not variants:
        return {}
    logger.info("comparing %s with float32", ", ".join(variants))
    return compare(graph_logits(StoredModel(model)), variants, batches)


def _size_of(folder):
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())


def _next_version(out):
    return ([0] + versions(out))[-1] + 1


def _check_answers(folder, module):
    """Loads what was written and asks each signature, so that nothing broken gets its name."""
    loaded = tf.saved_model.load(str(folder))
    batch = tf.constant(["", f"a {MASK_LITERAL}.", "\xff", "a " * 1000])
    for name, signature in loaded.signatures.items():
        inputs = dict.fromkeys(signature.structured_input_signature[1], batch)
        answers = signature(**inputs)
        for output, meant in module.functions[name](**inputs).items():
            if answers[output].shape[0] != 4:
                raise RuntimeError(
                    f"`{name}` answers {output} of shape {answers[output].shape} to 4 texts"
                )
            if meant.dtype == tf.float32:
                tf.debugging.assert_near(
                    answers[output],
                    meant,
                    rtol=0,
                    atol=_TOLERANCE,
                    message=f"`{name}` answers otherwise once it is loaded",
                )
