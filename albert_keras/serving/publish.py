"""Exports a model: source → graph → checks → model card → one rename to a version."""

import logging
from pathlib import Path
from typing import NamedTuple

import keras
import tensorflow as tf

from albert_keras.formats.detection import ALBERT_CONFIG, EXPORT_RECORD, Place, keras_file
from albert_keras.serving.export.checks import AccuracyLoss, compare
from albert_keras.serving.export.lite import LITE_WEIGHTS, write_lite
from albert_keras.serving.export.model_card import CARD, model_card
from albert_keras.serving.export.source import open_source
from albert_keras.serving.graph.precision import POLICIES
from albert_keras.serving.layout import check_model_name, new_version, size_of
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.saved_model.signatures import as_json, read_signatures, write_warm_up
from data_pipeline.errors import InputError
from data_pipeline.files import write_digests, write_json
from data_pipeline.lazy_names import program_version
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER

logger = logging.getLogger(__name__)


class ExportResult(NamedTuple):
    """Result of an export."""

    path: Path  #: The folder of the version.
    version: int
    step: int | None  #: The checkpoint that was exported; None if unknown.
    num_bytes: int  #: Size of all files of the version.
    precision: str  #: Precision of the SavedModel.
    #: By variant: "bfloat16", "int8", "lite float16" or "lite int8".
    losses: dict[str, AccuracyLoss]
    keras_file: Path  #: The model for Keras, beside the folder of the version.
    signatures: tuple[str, ...]  #: Names of the signatures.


def export(
    model: str | Path | Place | keras.Model,
    out: str | Path,
    step: int | str | None = None,
    sequence_length: int | None = None,
    precision: str = "float32",
    lite: tuple[str, ...] | list[str] = (),
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
            in it, with its model card (`README.md`); the model for Keras (`model-1.keras`) beside
            it.
        step: int, "best" or None. Which checkpoint; None takes the newest valid one, or the best
            one of a fine-tuned run.
        sequence_length: int or None. Longer texts are truncated, S. None takes the length of the
            training.
        precision: str. "float32", "bfloat16" or "int8", of the SavedModel; see `StoredModel`.
        lite: iterable of "float16" and "int8". Additional TensorFlow Lite files, over ids.

    Returns:
        ExportResult.

    Raises:
        InputError: If the run has no checkpoint or tokenizer, if an option is impossible, or if a
            server would refuse the model.
        RuntimeError: If the model answers differently from the Python code.
    """
    out, lite = Path(out), tuple(dict.fromkeys(lite))
    for option, value, choices in (
        ("precision", precision, POLICIES),
        *(("lite", weights, LITE_WEIGHTS) for weights in lite),
    ):
        if value not in choices:
            raise InputError(f"`{option}` must be one of {', '.join(choices)}. Received: {value}.")
    name = check_model_name(out.absolute().name)
    with new_version(out) as draft:
        logger.info("1/4 loading the model")
        source = open_source(model, step, sequence_length)
        module = source.string_model(precision)
        logger.info("2/4 writing the model for servers and for Keras")
        _write_model(draft, source, module)
        lite_files = write_lite(draft.folder / "lite", source, lite)
        logger.info("3/4 checking operations and answers")
        predictor, signatures = Predictor(draft.folder), read_signatures(draft.folder)
        exact = module if precision == "float32" else source.string_model("float32")
        losses = compare(source, exact, precision, predictor, lite_files)
        logger.info("4/4 answering the warm-up requests")
        write_warm_up(draft.folder, signatures, module.buckets, predictor.ask)
        record = source.describe() | {
            "precision": precision,
            "accuracy_loss": {name: loss._asdict() for name, loss in losses.items()},
            "version": draft.version,
            "signatures": as_json(signatures),
            "tensorflow": tf.__version__,
            "albert-keras": program_version(),
        }
        write_json(draft.folder / EXPORT_RECORD, record)
        (draft.folder / CARD).write_text(model_card(name, record), encoding="utf-8")
        _write_digests(draft)
    path = out / str(draft.version)
    num_bytes = size_of(path)
    logger.info("version %d published, %.1f MB", draft.version, num_bytes / 1e6)
    return ExportResult(
        path,
        draft.version,
        source.step,
        num_bytes,
        precision,
        losses,
        keras_file(path),
        tuple(signature.name for signature in signatures),
    )


def _write_model(draft, source, module):
    """Writes a model for servers, `Predictor` and Keras."""
    folder, model = draft.folder, source.model
    module.serve = module.functions["serving_default"]  # as Keras calls it, see `TFSMLayer`
    tf.saved_model.save(module, str(folder), signatures=module.functions)
    model.config.save(folder / ALBERT_CONFIG)
    (folder / TOKENIZER_FOLDER).mkdir()
    source.tokenizer.save(folder / TOKENIZER_FOLDER)
    model.save(draft.keras_file)


def _write_digests(draft):
    """Lists all files of a version, and its model for Keras, which will lie beside it."""
    folder = draft.folder
    files = {path.relative_to(folder).as_posix(): path for path in sorted(folder.rglob("*"))}
    del files[draft.keras_file.name]
    files[f"../{keras_file(folder.with_name(str(draft.version))).name}"] = draft.keras_file
    write_digests(folder, {name: path for name, path in files.items() if path.is_file()})
