"""Files for phones, and what each variant of an export loses against float32."""

import logging

from albert_keras.serving.export.accuracy import (
    compare,
    graph_logits,
    masked_records,
    masked_texts,
)
from albert_keras.serving.export.lite import LiteModel, convert_to_lite
from albert_keras.serving.export.task_accuracy import compare_task
from albert_keras.serving.graph.precision import StoredModel

logger = logging.getLogger(__name__)


def write_lite(folder, source, lite):
    """Writes TensorFlow Lite files of a pre-trained model.

    Args:
        folder: Path. Where to; made if there is anything to write.
        source: ExportSource.
        lite: sequence of "float16" and "int8".

    Returns:
        dict of "float16" or "int8" -> Path.
    """
    files = {}
    for weights in lite:
        folder.mkdir(exist_ok=True)
        files[weights] = folder / f"model_{weights}.tflite"
        files[weights].write_bytes(convert_to_lite(source.model, source.max_seq_length, weights))
    return files


def comparison(source, precision, lite, eval_data):
    """Returns a function that measures what variants lose.

    Data that cannot be used are refused here, before any work.

    Args:
        source: ExportSource.
        precision: str. Of the export.
        lite: sequence of "float16" and "int8".
        eval_data: str, Path or None. As of `export`.

    Returns:
        callable. StringModel and what `write_lite` returns → dict of variant to AccuracyLoss or
        TaskLoss, empty if there is nothing but float32.

    Raises:
        InputError: If `eval_data` cannot be read.
    """
    tokenizer, length = source.tokenizer, source.max_seq_length
    if source.task is not None:
        if precision == "float32":
            return lambda module, lite_files: {}
        task_loss = compare_task(source, precision, eval_data)
        return lambda module, lite_files: {precision: task_loss(module)}
    if eval_data is not None:
        digest = source.tokenizer.digest
        batches = masked_records(eval_data, tokenizer.vocab_size, length, digest)
    elif precision != "float32" or lite:
        batches = masked_texts(tokenizer, length)

    def losses(module, lite_files):
        variants = {}
        if precision != "float32":
            variants[precision] = graph_logits(module.stored)
        for weights, file in lite_files.items():
            variants[f"lite {weights}"] = LiteModel(file).logits
        if not variants:
            return {}
        logger.info("comparing %s with float32", ", ".join(variants))
        return compare(graph_logits(StoredModel(source.model)), variants, batches)

    return losses
