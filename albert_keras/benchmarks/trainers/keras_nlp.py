"""KerasNLP's ALBERT with its masked-LM head, trained by Keras' own AdamW and training function."""

from importlib.metadata import version

from albert_keras.benchmarks.contest import Prepared
from albert_keras.benchmarks.trainers.batch import made_up_batch
from albert_keras.benchmarks.trainers.losses import LossLog

_LEARNING_RATE = 1e-4


def prepare(shape, precision):
    """Builds `AlbertMaskedLM`: `AlbertBackbone` and a `MaskedLMHead` at masked positions.

    Args:
        shape: Shape.
        precision: str. Name of a Keras policy.

    Returns:
        Prepared. A run is one update.

    Raises:
        InputError: If KerasNLP's backbone cannot express the shape.
    """
    import tensorflow as tf
    from tensorflow import keras

    from albert_keras.interop.keras_nlp import to_keras_nlp
    from albert_keras.models.encoder import AlbertEncoder

    backbone = to_keras_nlp(AlbertEncoder(shape.config, dtype=precision))
    backbone.pooled_dense.trainable = False  # the loss does not depend on it
    # `interop` has loaded KerasNLP, which gives its models to Keras by these names.
    model = keras.saving.get_registered_object("keras_nlp>AlbertMaskedLM")(backbone)
    model.compile(
        optimizer=keras.optimizers.AdamW(_LEARNING_RATE),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    )
    batch = made_up_batch(shape)
    inputs = {
        "token_ids": batch["input_ids"],
        "segment_ids": batch["segment_ids"],
        "padding_mask": batch["input_mask"],
        "mask_positions": batch["masked_lm_positions"],
    }
    batches = iter(tf.data.Dataset.from_tensors((inputs, batch["masked_lm_ids"])).repeat())
    function = model.make_train_function()
    device = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
    facts = {
        "weights": sum({id(weight): int(tf.size(weight)) for weight in model.weights}.values()),
        "optimizer": "AdamW",
        "device": device[0].device_type.lower(),
        "versions": {name: version(name) for name in ("keras-nlp", "tensorflow")},
    }
    log = LossLog(facts)

    def run():
        log.add_mean(float(function(batches)["loss"]))

    return Prepared(run, facts)
