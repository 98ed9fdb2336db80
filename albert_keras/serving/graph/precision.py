"""How an export stores the weights of a model and computes with them."""

import contextlib
from typing import NamedTuple

import tensorflow as tf

from albert_keras.keras_versions import name_of, variable_of
from albert_keras.layers.kernels import inference
from albert_keras.models.encoder_inputs import encoder_inputs
from albert_keras.models.encoder_with_head import AlbertForTask
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.tensors import weight_names

#: Precision of an export → Keras policy of the computation.
POLICIES = {"float32": "float32", "bfloat16": "mixed_bfloat16", "int8": "float32"}

#: Ends of the names of the weights that are converted; biases, norms and small tables stay float32.
_KERNELS = "/kernel"
_TABLES = ("/word_embeddings", "/position_embeddings")
_LARGEST = 127  # of int8; -128 is unused, so that scales are symmetric


class StoredWeight(NamedTuple):
    """A weight as an export stores it."""

    values: tf.Variable  #: float32, bfloat16 or int8, with the shape of the weight, [M, N].
    #: For int8: float32 [1, N] or [M, 1]; the weight is the product of values and scales.
    scales: tf.Variable | None = None

    def read(self, dtype):
        """Returns the weight, as a tensor."""
        values = tf.convert_to_tensor(self.values)
        if self.scales is not None:
            values = tf.cast(values, tf.float32) * self.scales
        return tf.cast(values, dtype)

    def rows(self, ids):
        """Reads some rows of a table whose scales are per row: float32 [n, N]."""
        rows = tf.cast(tf.gather(self.values, ids), tf.float32)
        return rows if self.scales is None else rows * tf.gather(self.scales, ids)


class StoredModel:
    """A model that computes with its weights as an export stores them.

    Each weight is read, and converted if necessary, once per call and not once per depth; only the
    rows of the text are read from the word embeddings.

    Args:
        model: float32. Is not changed.
        precision: "float32"; "bfloat16" stores kernels and tables, and computes products, in
            bfloat16; "int8" stores them as int8 with float32 scales, per output channel of a kernel
            and per row of a table, and computes in float32. The small head of a task stays float32.
    """

    def __init__(self, model: AlbertForPretraining | AlbertForTask, precision: str = "float32"):
        if model.dtype_policy.name != "float32":
            raise ValueError(
                "`model` must be float32; `precision` applies to the export. "
                f"Received: dtype {model.dtype_policy.name}."
            )
        whole = set()
        if isinstance(model, AlbertForTask):
            whole = weight_names(model).keys() - weight_names(model.encoder).keys()
        stored = {
            name: _store(name, variable_of(weight), "float32" if name in whole else precision)
            for name, weight in weight_names(model).items()
        }
        #: The variables to save.
        self.variables = [
            variable
            for weight in stored.values()
            for variable in (weight.values, weight.scales)
            if variable is not None
        ]
        self.has_sentence_head = getattr(model, "sentence_order_head", None) is not None
        self._model = _with_policy(model, POLICIES[precision])
        self._weight_attributes = _weight_attributes(self._model, stored, whole)
        self._word_embeddings = stored[name_of(self._model.encoder.embeddings.word_embeddings)]

    def encode(self, packed, positions=None, **options):
        """Runs the encoder.

        Args:
            packed: dict of int32 [B, S]: `input_ids`, `input_mask`, `segment_ids`.
            positions: int32 [B, Q] or None. The last block is computed at these positions only.
            **options: As `positions`, see `AlbertEncoder`.

        Returns:
            dict. `sequence_output` [B, S or Q, H] and `pooled_output` [B, H], in the compute dtype,
            and the outputs that options request.
        """
        rows, numbers = self._rows_of_text(packed["input_ids"])
        with self._weights_as_tensors(word_embeddings=rows):
            inputs = packed | {"input_ids": numbers}
            return self._model.encoder(encoder_inputs(inputs), positions=positions, **options)

    def outputs(self, packed):
        """Returns the outputs of a fine-tuned model, those of its `outputs_of`.

        Args:
            packed: dict of int32 [B, S] ([B, options, S] for choice): `input_ids`, `input_mask`,
                `segment_ids`; for squad2 also `p_mask`.
        """
        rows, numbers = self._rows_of_text(packed["input_ids"])
        with self._weights_as_tensors(word_embeddings=rows):
            return self._model.outputs_of(packed | {"input_ids": numbers}, training=False)

    def _rows_of_text(self, ids):
        """Returns the word embeddings of ids, and ids that are numbers of these rows."""
        rows = self._word_embeddings.rows(tf.reshape(ids, [-1]))
        return rows, tf.reshape(tf.range(tf.size(ids)), tf.shape(ids))

    def masked_lm(self, packed, positions):
        """Returns the scores of all pieces, float32 [B, P, V], at `positions`, int32 [B, P]."""
        positions = tf.convert_to_tensor(positions)
        with_cls = tf.concat([tf.zeros_like(positions[:, :1]), positions], axis=1)
        hidden = self.encode(packed, with_cls)["sequence_output"][:, 1:]
        with self._weights_as_tensors():
            head = self._model.masked_lm_head
            return head.logits(head.scores(hidden))

    def sentence_order(self, packed):
        """Returns the scores of "in order" and "swapped", float32 [B, 2]."""
        first = tf.zeros_like(packed["input_ids"][:, :1])  # [CLS]
        hidden = self.encode(packed, first)["pooled_output"]
        with self._weights_as_tensors():
            return self._model.sentence_order_head(hidden)

    @contextlib.contextmanager
    def _weights_as_tensors(self, **instead):
        """Replaces the variables of the layers by tensors.

        So all depths share one read and one conversion of each weight.
        """
        attributes = self._weight_attributes
        variables = [(layer, name, vars(layer)[name]) for layer, name, *_ in attributes]
        try:
            # Not by `__setattr__`, with which Keras tracks weights.
            for layer, name, weight, dtype in attributes:
                vars(layer)[name] = instead[name] if name in instead else weight.read(dtype)
            with inference():
                yield
        finally:
            for layer, name, variable in variables:
                vars(layer)[name] = variable


def _store(path, weight, precision):
    """Returns the StoredWeight of a variable, which is the variable itself if it stays float32."""
    is_kernel = path.endswith(_KERNELS)
    if precision == "float32" or not (is_kernel or path.endswith(_TABLES)):
        return StoredWeight(weight)
    if precision == "bfloat16":
        return StoredWeight(tf.Variable(tf.cast(weight, tf.bfloat16), trainable=False, name=path))
    largest = tf.reduce_max(tf.abs(weight), axis=0 if is_kernel else 1, keepdims=True)
    scales = tf.where(largest > 0, largest / _LARGEST, 1.0)
    values = tf.cast(tf.round(weight / scales), tf.int8)
    return StoredWeight(
        tf.Variable(values, trainable=False, name=path),
        tf.Variable(scales, trainable=False, name=f"{path}/scales"),
    )


def _with_policy(model, policy):
    """Returns the model, or a copy with another policy, whose weights are all 0."""
    if model.dtype_policy.name == policy:
        return model
    config = model.get_config() | {"dtype": policy}
    config["config"] = config["config"] | {"initializer_range": 0.0}  # saves sampling
    return type(model).from_config(config)


def _weight_attributes(model, stored, whole):
    """Lists the attributes of layers that are weights: (layer, name, StoredWeight, dtype to read).

    Kernels and word embeddings are read in the compute dtype, unless their name is in `whole`;
    all other weights are read in float32.
    """
    names = {id(weight): name for name, weight in weight_names(model).items()}
    attributes, missing = [], set(stored)
    for layer in model._flatten_layers():
        for attribute, value in vars(layer).items():
            if name := names.get(id(value)):
                is_narrow = name.endswith((_KERNELS, "/word_embeddings")) and name not in whole
                dtype = model.compute_dtype if is_narrow else tf.float32
                attributes.append((layer, attribute, stored[name], dtype))
                missing.discard(name)
    # Any other weight would be served with the value of the copy: 0.
    if missing:
        raise RuntimeError(f"no layer has {', '.join(sorted(missing))} as an attribute")
    return attributes
