"""A run → `saved_models/<name>/<version>/`, whole or not at all."""

import json
import logging
from importlib import metadata
from pathlib import Path
from typing import NamedTuple

import tensorflow as tf

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.serving.layout import MASK_LITERAL, versions
from albert_keras.serving.text_model import TextModel
from albert_keras.training.run import Run
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder

logger = logging.getLogger(__name__)

#: Largest version `tensorflow_model_server` reads: an int64.
_MAX_VERSION = 2**63 - 1


class ExportResult(NamedTuple):
    """What an export made.

    Attributes:
        path: Path. The folder of the version.
        version: int.
        step: int. The checkpoint that was exported.
        num_bytes: int. All files together.
    """

    path: Path
    version: int
    step: int
    num_bytes: int


def export(run, out, step=None, version=None, max_seq_length=None):
    """Writes a checkpoint as a SavedModel over plain strings and as a `.keras` model.

    Args:
        run: str or Path. Folder of the run.
        out: str or Path. Folder of the name, such as `saved_models/books`; the version comes in
            it.
        step: int, "best" or None. Which checkpoint; None takes the newest sound one.
        version: int or None. None takes the next one.
        max_seq_length: int or None. Longer texts are cut, S. None takes the longest the model was
            trained on.

    Returns:
        ExportResult.

    Raises:
        InputError: If the run has no checkpoint or tokenizer, or the version exists.
    """
    run, out = Run.open(run), Path(out)
    step = run.checkpoints.choose(step)
    tokenizer, config = run.tokenizer, run.albert_config
    version = _next_version(out) if version is None else version
    if not 0 < version <= _MAX_VERSION:
        raise InputError(f"`version` should be a positive int64. Received: {version}.")
    folder = out / str(version)
    check_output_folder(folder)
    length = max_seq_length or min(run.record["data"]["max_seq_length"], 512)
    if not 8 <= length <= config.max_position_embeddings:
        raise InputError(
            "`max_seq_length` should be from 8 to `max_position_embeddings` "
            f"({config.max_position_embeddings}). Received: {length}."
        )

    training = run.record["config"]["training"]
    model = AlbertForPretraining(config, sentence_head=training["sentence_order_weight"] > 0)
    run.checkpoints.restore(step, model)
    module = TextModel(model, tokenizer, length)
    with whole_folder(folder) as staging:
        tf.saved_model.save(module, str(staging), signatures=module.functions)
        model.save(staging / "model.keras")
        config.save(staging / "albert_config.json")
        (staging / "tokenizer").mkdir()
        tokenizer.save(staging / "tokenizer")
        (staging / "export.json").write_text(
            json.dumps(
                {
                    "step": step,
                    "max_seq_length": length,
                    "run": run.record,
                    "tensorflow": tf.__version__,
                    "albert-keras": metadata.version("albert-keras"),
                },
                indent=2,
            )
            + "\n",
            encoding="utf-8",
        )
        _check_answers(staging)
    num_bytes = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
    logger.info("version %d published, %.1f MB", version, num_bytes / 1e6)
    return ExportResult(folder, version, step, num_bytes)


def _next_version(out):
    return ([0] + versions(out))[-1] + 1


def _check_answers(folder):
    """Loads what was written and asks each signature, so that nothing broken gets its name."""
    loaded = tf.saved_model.load(str(folder))
    for name, signature in loaded.signatures.items():
        inputs = signature.structured_input_signature[1]
        batch = tf.constant(["", f"a {MASK_LITERAL}.", "\xff", "a " * 1000])
        for output, value in signature(**dict.fromkeys(inputs, batch)).items():
            if value.shape[0] != 4:
                raise RuntimeError(f"`{name}` answers {output} of shape {value.shape} to 4 texts")
