"""Exports a model: source → graph → checks → model card → one rename to a version."""

import io
import logging
import zipfile
from pathlib import Path
from typing import NamedTuple

import h5py
import keras
import numpy as np
import tensorflow as tf

from albert_keras.formats.detection import ALBERT_CONFIG, EXPORT_RECORD, Place, keras_file, versions
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.serving.export.checks import (
    AccuracyLoss,
    check_answers,
    check_signatures,
    compare,
)
from albert_keras.serving.export.lite import LITE_WEIGHTS, write_lite
from albert_keras.serving.export.model_card import CARD, check_card, write_model_card
from albert_keras.serving.export.source import open_source
from albert_keras.serving.graph.precision import POLICIES
from albert_keras.serving.layout import check_model_name, new_version, size_of
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.saved_model.signatures import (
    as_json,
    read_signatures,
    set_method_names,
    write_warm_up,
)
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import whole_file, write_digests, write_json
from data_pipeline.lazy_names import program_version
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER

logger = logging.getLogger(__name__)

#: Precision of the weights in a `.keras` file; loaded, they are float32. HDF5 has no bfloat16: its
#: values are stored as float16 and leave three of its bits empty, so that they compress better.
KERAS_PRECISIONS = ("float32", "float16", "bfloat16")
_WEIGHTS = "model.weights.h5"


class ExportResult(NamedTuple):
    """Result of an export."""

    path: Path  #: The folder of the version.
    version: int
    step: int | None  #: The checkpoint that was exported; None if unknown.
    num_bytes: int  #: Size of all files of the version.
    precision: str  #: Precision of the SavedModel.
    saved_model_bytes: int  #: Size of what a server loads: graph, tokenizer and weights.
    lite_bytes: dict[str, int]  #: "float16" or "int8" -> size of the `.tflite` file.
    #: By variant: "bfloat16", "int8", "lite float16" or "lite int8".
    losses: dict[str, AccuracyLoss]
    keras_file: Path  #: The model for Keras, beside the folder of the version.
    signatures: tuple[str, ...]  #: Names of the signatures.
    fingerprint: dict[str, str]  #: See `tf.saved_model.experimental.Fingerprint`.
    #: Largest difference between a number and that of the model in memory; None unless the export
    #: is float32.
    largest_difference: float | None


def export(
    model: str | Path | Place | keras.Model,
    out: str | Path,
    step: int | str | None = None,
    version: int | None = None,
    sequence_length: int | None = None,
    precision: str = "float32",
    lite: tuple[str, ...] | list[str] = (),
    keras_precision: str = "float32",
) -> ExportResult:
    """Exports a model as a SavedModel over plain strings and as a `.keras` model.

    The version gets its name only after all checks: the server has all operations of the version,
    its answers equal the answers of the Python code, and it answers the warm-up requests. If
    weights are not float32, the answers are compared with those of float32.

    Args:
        model: str or Path. Folder of a pre-trained or fine-tuned run; of a fine-tuning, which means
            its best seed; of a converted model with a masked-LM head; or of an export of a
            pre-trained model, whose `.keras` file is exported again, or the name of a shipped one.
            Or a model of texts of this package in memory, as from `from_preset`.
        out: str or Path. Folder of the model, such as `saved_models/books`. The version is created
            in it; the model for Keras (`model-1.keras`) and the model card (`README.md`) beside it.
        step: int, "best" or None. Which checkpoint; None takes the newest valid one, or the best
            one of a fine-tuned run.
        version: int or None. None takes the next one.
        sequence_length: int or None. Longer texts are truncated, S. None takes the length of the
            training.
        precision: str. "float32", "bfloat16" or "int8", of the SavedModel; see `StoredModel`.
        lite: iterable of "float16" and "int8". Additional TensorFlow Lite files, over ids.
        keras_precision: str. "float32", "float16" or "bfloat16", to which the weights of the
            `.keras` model are rounded; loaded, they are float32.

    Returns:
        ExportResult.

    Raises:
        InputError: If the run has no checkpoint or tokenizer, if the version exists, if an option
            is impossible, or if a server would refuse the model.
        RuntimeError: If the model answers differently from the Python code.
    """
    out, lite = Path(out), tuple(dict.fromkeys(lite))
    for name, value, choices in (
        ("precision", precision, POLICIES),
        ("keras_precision", keras_precision, KERAS_PRECISIONS),
        *(("lite", weights, LITE_WEIGHTS) for weights in lite),
    ):
        if value not in choices:
            raise InputError(f"`{name}` must be one of {', '.join(choices)}. Received: {value}.")
    check_model_name(out.absolute().name)
    check_card(out)  # so that a mistake is noticed before any work
    if (card := out / CARD).exists() and not versions(out):
        raise InputError(
            f"`{card}` is not the card of a model: the folder has no version of one, and `export` "
            "would replace it. Choose another folder.",
            Mistake.OUTPUT_EXISTS,
        )
    difference: float | None
    with new_version(out, version) as draft:
        logger.info("1/4 loading the model")
        source = open_source(model, step, sequence_length)
        module = source.string_model(precision)
        logger.info("2/4 writing the model for servers and for Keras")
        saved_model_bytes = _write_model(draft, source, module, keras_precision)
        logger.info("3/4 checking operations and answers")
        predictor, signatures = Predictor(draft.folder), read_signatures(draft.folder)
        functions = module.functions | module.token_functions
        difference = check_signatures(functions, predictor.call, signatures, precision)
        if precision != "float32":
            difference = None  # of such weights see `compare`
        elif isinstance(source.model, AlbertForTexts):
            difference = check_answers(source.model, predictor.ask, predictor.names)
        logger.info("4/4 answering the warm-up requests")
        write_warm_up(draft.folder, signatures, module.buckets, predictor.call)
        lite_files = write_lite(draft.folder / "lite", source, lite)
        losses = compare(source, precision, predictor, lite_files)
        fingerprint = _fingerprint(draft.folder)
        record = source.describe() | {
            "precision": precision,
            "keras_precision": keras_precision,
            "accuracy_loss": {name: loss._asdict() for name, loss in losses.items()},
            "version": draft.version,
            "largest_difference": difference,
            "signatures": as_json(signatures),
            "fingerprint": fingerprint,
            "tensorflow": tf.__version__,
            "albert-keras": program_version(),
        }
        write_json(draft.folder / EXPORT_RECORD, record)
        _write_digests(draft)
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
        {name: (path / "lite" / file.name).stat().st_size for name, file in lite_files.items()},
        losses,
        keras_file(path),
        tuple(signature.name for signature in signatures),
        fingerprint,
        difference,
    )


def _write_model(draft, source, module, keras_precision):
    """Writes a model for servers, `Predictor` and Keras; returns the bytes that a server loads."""
    folder, model = draft.folder, source.model
    module.serve = module.functions["serving_default"]  # as Keras calls it, see `TFSMLayer`
    tf.saved_model.save(module, str(folder), signatures=module.functions | module.token_functions)
    set_method_names(folder)
    model.config.save(folder / ALBERT_CONFIG)
    (folder / TOKENIZER_FOLDER).mkdir()
    source.tokenizer.save(folder / TOKENIZER_FOLDER)
    num_bytes = size_of(folder)
    model.save(draft.keras_file)
    if keras_precision != "float32":
        round_weights(draft.keras_file, keras_precision)
    return num_bytes


def _write_digests(draft):
    """Lists all files of a version, and its model for Keras, which will lie beside it."""
    folder = draft.folder
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    del files[draft.keras_file.name]
    files[f"../{keras_file(folder.with_name(str(draft.version))).name}"] = draft.keras_file
    write_digests(folder, {name: path for name, path in files.items() if path.is_file()})


def _fingerprint(folder):
    found = tf.saved_model.experimental.read_fingerprint(str(folder))
    names = ("saved_model_checksum", "graph_def_program_hash", "signature_def_hash")
    names += ("saved_object_graph_hash", "checkpoint_hash")
    return {name: f"{getattr(found, name):016x}" for name in names}


def round_weights(path: Path, precision: str) -> None:
    """Rounds the float32 kernels and tables of a `.keras` file, and compresses them.

    Biases and norms stay float32: they are few, and large output biases would lose most.
    Keras loads the file as before, with float32 weights. Raises InputError, and changes nothing,
    if a weight is too large for float16.

    Args:
        path: The `.keras` file, which is replaced.
        precision: "float16" or "bfloat16".
    """
    with zipfile.ZipFile(path) as archive:
        contents = {name: archive.read(name) for name in archive.namelist()}
    contents[_WEIGHTS] = _rounded(contents[_WEIGHTS], precision)
    with whole_file(path) as temporary, zipfile.ZipFile(temporary, "w") as archive:
        for name, content in contents.items():
            archive.writestr(zipfile.ZipInfo(name), content)


def _rounded(content, precision):
    """Returns an HDF5 file of weights, as bytes, with rounded ones as float16 for float32."""
    dtype = tf.as_dtype(precision).as_numpy_dtype
    result = io.BytesIO()
    # The format of HDF5 1.10 is smaller than the oldest, and no later one.
    version = {"libver": ("v110", "v110")}
    with h5py.File(io.BytesIO(content)) as old, h5py.File(result, "w", **version) as new:

        def copy(name, item):
            if isinstance(item, h5py.Group):
                new.require_group(name)
                return
            if item.ndim < 2:
                new.create_dataset(name, data=item[()])
                return
            with np.errstate(over="ignore"):  # checked below
                values = item[()].astype(dtype).astype(np.float16)
            if not np.isfinite(values).all():
                raise InputError(
                    f"The weights of the model must be at most {np.finfo(np.float16).max:g} to be "
                    f"stored as {precision}. Received: {np.abs(item[()]).max():g} in {name}. Use "
                    "`keras_precision` float32."
                )
            # In one chunk, as many small ones compress less; its index alone has 2 KB.
            options = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
            options |= {"chunks": values.shape}
            new.create_dataset(name, data=values, **(options if values.nbytes > 4096 else {}))

        old.visititems(copy)
    return result.getvalue()
