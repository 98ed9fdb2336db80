"""Our export, from raw strings to the answer, and the same encoder on ids alone."""

import itertools
import time

import numpy as np

from albert_keras.benchmarks.contest import Prepared
from albert_keras.benchmarks.inferrers.questions import difference

#: Signature over ids, which only the exports made for this benchmark have.
_ENCODE_IDS = "encode_ids"


def write_export(folder, config, tokenizer, precision):
    """Writes what `albert-keras export` would, of a model with its initial weights.

    Args:
        folder: str or Path. Made here.
        config: AlbertConfig.
        tokenizer: Tokenizer.
        precision: str. As `albert-keras export --precision` takes it.
    """
    import tensorflow as tf

    from albert_keras.models.pretraining import AlbertForPretraining
    from albert_keras.serving.graph.text_model import TextModel

    model = AlbertForPretraining(config, sentence_head=False, dtype="float32")
    module = TextModel(model, tokenizer, config.max_position_embeddings, precision=precision)
    names = ("input_ids", "input_mask", "segment_ids")

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32, name) for name in names])
    def encode_ids(input_ids, input_mask, segment_ids):
        inputs = dict(zip(names, (input_ids, input_mask, segment_ids), strict=True))
        pooled = module.stored.pooled(inputs)
        return {"pooled_output": tf.cast(pooled, tf.float32)}

    signatures = module.functions | {_ENCODE_IDS: encode_ids}
    tf.saved_model.save(module, str(folder), signatures=signatures)


def prepare(export, question, precision):
    """Opens an export as users do and answers texts: a Prepared."""
    from albert_keras.serving.predictor import Predictor

    predictor, texts = Predictor(export), list(question.texts)
    facts = {
        "input": "text",
        "difference": difference(predictor.encode(texts), question, precision),
    }
    return Prepared(lambda: predictor.encode(texts), facts)


def measure_overhead(export, question, short_texts, seconds):
    """Compares an export on texts with the same encoder on their ids, call by call in turn.

    Args:
        export: str or Path.
        question: Question.
        short_texts: list of str. As many, but short.
        seconds: float. How long to measure.

    Returns:
        dict for JSON: `text_seconds`, `ids_seconds`, `short_seconds`, the `summary` of single
        calls; `overhead`, by how much texts take longer than ids, as a share of the latter, the
        median of neighbouring calls with its middle half as `low` and `high`.
    """
    import tensorflow as tf

    from albert_keras.serving.predictor import Predictor

    predictor = Predictor(export)
    signature = tf.saved_model.load(str(export)).signatures[_ENCODE_IDS]
    ids = tf.constant(question.ids)
    inputs = {"input_ids": ids, "input_mask": tf.ones_like(ids), "segment_ids": tf.zeros_like(ids)}
    texts = list(question.texts)
    actions = {
        "text": lambda: predictor.encode(texts),
        "ids": lambda: signature(**inputs)["pooled_output"].numpy(),
        "short": lambda: predictor.encode(short_texts),
    }
    for action in (*actions.values(), *actions.values()):
        action()  # traces are optimised at the first call
    times = {name: [] for name in actions}
    end = time.perf_counter() + seconds
    for number in itertools.count():
        for name in reversed(actions) if number % 2 else actions:
            started = time.perf_counter()
            actions[name]()
            times[name].append(time.perf_counter() - started)
        if time.perf_counter() > end:
            break
    return {f"{name}_seconds": _quartiles(found) for name, found in times.items()} | {
        "overhead": _quartiles(np.divide(times["text"], times["ids"]) - 1)
    }


def percentiles(values, shares):
    """Returns the values below which so many per cent of all lie, as a list of float."""
    return np.percentile(list(values), shares).tolist()


def _quartiles(values):
    return dict(zip(("low", "median", "high"), percentiles(values, (25, 50, 75)), strict=True))
