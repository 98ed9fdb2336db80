"""A run → `saved_models/<name>/<version>/`, whole or not at all."""

import json
import logging
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from albert_keras.serving.export.accuracy import AccuracyLoss
from albert_keras.serving.export.checks import LoadedModel, check_answers
from albert_keras.serving.export.lite import check_lite
from albert_keras.serving.export.losses import comparison, write_lite
from albert_keras.serving.export.model_card import write_model_card
from albert_keras.serving.export.publishing import new_version
from albert_keras.serving.export.source import open_source
from albert_keras.serving.export.task_accuracy import TaskLoss
from albert_keras.serving.export_record import EXPORT_RECORD
from albert_keras.serving.graph.precision import check_precision
from albert_keras.serving.graph.text_packing import BUCKETS
from albert_keras.serving.layout import keras_file, size_of
from albert_keras.serving.names import check_model_name
from albert_keras.serving.saved_model.restricted_loader import load_restricted
from albert_keras.serving.saved_model.server_ops import check_ops
from albert_keras.serving.saved_model.signature_methods import set_method_names
from albert_keras.serving.saved_model.warm_up import sample_requests, write_warm_up
from data_pipeline.errors import InputError

logger = logging.getLogger(__name__)

#: Warm-up requests of several rows have so many pieces at most: a server answers all of them while
#: it loads a version.
_WARM_UP_PIECES = 256


class ExportResult(NamedTuple):
    """What an export made.

    Attributes:
        path: Path. The folder of the version.
        version: int.
        step: int or None. The checkpoint that was exported; None where nothing tells.
        num_bytes: int. All files of the version together.
        precision: str. Of the SavedModel.
        saved_model_bytes: int. What a server loads: the graph with its tokenizer, and the weights.
        lite_bytes: dict of "float16" or "int8" -> int. Size of each `.tflite` file.
        losses: dict of variant -> AccuracyLoss, or TaskLoss of a fine-tuned model: "bfloat16",
            "int8", "lite float16", "lite int8".
        keras_file: Path. The model for Keras, beside the folder of the version.
        signatures: tuple of str. What a server can be asked.
        fingerprint: dict of str. Of the SavedModel, see `tf.saved_model.experimental.Fingerprint`.
        largest_difference: float or None. Of a probability from the Python path; None unless the
            export is float32.
    """

    path: Path
    version: int
    step: int | None
    num_bytes: int
    precision: str
    saved_model_bytes: int
    lite_bytes: dict[str, int]
    losses: dict[str, AccuracyLoss | TaskLoss]
    keras_file: Path
    signatures: tuple[str, ...]
    fingerprint: dict[str, str]
    largest_difference: float | None


def export(
    run,
    out,
    step=None,
    version=None,
    max_seq_length=None,
    precision="float32",
    lite=(),
    eval_data=None,
    keep=None,
    layers=(),
):
    """Writes a checkpoint as a SavedModel over plain strings and as a `.keras` model.

    The version gets its name when a server would take it: its operations are checked, it is loaded
    where there are no others, its answers are compared with those of the Python path, and the
    requests a server warms up with are answered once. Where weights are not float32, what that
    loses is measured on real text and told.

    Args:
        run: str or Path. Folder of the run, pre-trained or fine-tuned; of a fine-tuning, its best
            seed; or of a converted model with a masked-LM head.
        out: str or Path. Folder of the name, such as `saved_models/books`; the version comes in
            it, the model for Keras (`1.keras`) and the model card (`README.md`) beside it.
        step: int, "best" or None. Which checkpoint; None takes the newest sound one, of a
            fine-tuned run the best.
        version: int or None. None takes the next one.
        max_seq_length: int or None. Longer texts are cut, S. None takes the longest the model was
            trained on.
        precision: str. "float32", "bfloat16" or "int8", of the SavedModel; see `StoredModel`. The
            `.keras` model is float32 in any case.
        lite: iterable of "float16" and "int8". TensorFlow Lite files to write besides, of a
            pre-trained model.
        eval_data: str, Path or None. Held-out records, or labelled examples of the task, to measure
            the loss on; None takes development examples of the task where they still are, else
            texts of the documentation of installed packages.
        keep: int or None. So many versions stay; None keeps all.
        layers: iterable of int. Blocks whose outputs `encode` gives, too, see `StringModel`.

    Returns:
        ExportResult.

    Raises:
        InputError: If the run has no checkpoint or tokenizer, if the version exists, if an option
            cannot be, or if a server would not take the model.
        RuntimeError: If the model answers otherwise than the Python path.
    """
    check_precision(precision)
    lite = tuple(dict.fromkeys(lite))
    for weights in lite:
        check_lite(weights)
    out = Path(out)
    check_model_name(out.absolute().name)
    with new_version(out, version, keep) as draft:
        folder = draft.folder
        source = open_source(run, step, max_seq_length)
        if lite and source.task is not None:
            raise InputError(
                f"`lite` is for pre-trained models. Received: {', '.join(lite)} and a model of "
                f"{source.task.config.name}."
            )
        compared = comparison(source, precision, lite, eval_data)
        module = source.string_model(precision, tuple(layers))
        _save(source, module, folder)
        source.model.save(draft.keras_file)
        saved_model_bytes = size_of(folder)
        loaded, parity = _check(source, module, folder, precision)
        lite_files = write_lite(folder / "lite", source, lite)
        losses = compared(module, lite_files)
        lite_bytes = {weights: file.stat().st_size for weights, file in lite_files.items()}
        fingerprint = _fingerprint(folder)
        record = source.describe() | {
            "version": draft.version,
            "step": source.step,
            "max_seq_length": source.max_seq_length,
            "precision": precision,
            "layers": list(layers),
            "accuracy_loss": {name: loss._asdict() for name, loss in losses.items()},
            "compared_on": None if not losses else str(eval_data or "usual"),
            "parity": parity and parity._asdict(),
            "signatures": _describe(loaded.signatures),
            "fingerprint": fingerprint,
            "num_parameters": source.model.count_params(),
            "tensorflow": tf.__version__,
            "albert-keras": metadata.version("albert-keras"),
        }
        (folder / EXPORT_RECORD).write_text(json.dumps(record, indent=2) + "\n", encoding="utf-8")
    path = out / str(draft.version)
    write_model_card(out)
    num_bytes = size_of(path)
    logger.info("version %d published, %.1f MB", draft.version, num_bytes / 1e6)
    return ExportResult(
        path,
        draft.version,
        source.step,
        num_bytes,
        precision,
        saved_model_bytes,
        lite_bytes,
        losses,
        keras_file(path),
        tuple(signature.name for signature in loaded.signatures),
        fingerprint,
        parity and parity.largest_difference,
    )


def _save(source, module, folder):
    """Writes what a server reads, and what readers of our own do."""
    functions = module.functions | module.token_functions
    tf.saved_model.save(module, str(folder), signatures=functions)
    set_method_names(folder)
    source.model.config.save(folder / "albert_config.json")
    (folder / "tokenizer").mkdir()
    source.tokenizer.save(folder / "tokenizer")


def _check(source, module, folder, precision):
    """Makes sure that a server would take a version, and asks it what the server is to ask."""
    logger.info("checking operations and answers")
    check_ops(folder)
    loaded = LoadedModel(folder)
    with ThreadPoolExecutor(1) as beside:  # another process, which takes as long
        loading = beside.submit(load_restricted, folder)
        parity = check_answers(source, module, loaded, precision)
        loading.result()
    logger.info("answering the warm-up requests")
    buckets = [length for length in BUCKETS if length < source.max_seq_length]
    buckets.append(source.max_seq_length)
    requests = sample_requests(loaded.signatures, buckets, max_pieces=_WARM_UP_PIECES)
    write_warm_up(folder, requests, loaded.model)
    return loaded, parity


def _describe(signatures):
    """Returns signatures as plain JSON."""

    def specs(tensors):
        return {key: [spec.dtype.name, spec.shape.as_list()] for key, spec in tensors.items()}

    return {
        one.name: {
            "method": one.method,
            "inputs": specs(one.inputs),
            "outputs": specs(one.outputs),
        }
        for one in signatures
    }


def _fingerprint(folder):
    found = tf.saved_model.experimental.read_fingerprint(str(folder))
    names = ("saved_model_checksum", "graph_def_program_hash", "signature_def_hash")
    names += ("saved_object_graph_hash", "checkpoint_hash")
    return {name: f"{getattr(found, name):016x}" for name in names}
