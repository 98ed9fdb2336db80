"""Base of the models that take plain strings: tokenizer, packing and heads in one graph.

The graph contains core operations and tokenizers of tensorflow-text only, so that
`tensorflow_model_server` can load it. `text_model.py` has pre-trained models, `string_tasks.py`
fine-tuned ones.
"""

import functools
import inspect
from collections.abc import Callable

import tensorflow as tf

from albert_keras.layers.text_packing import num_tokens_of, readable
from albert_keras.models.encoder_with_head import AlbertForTask
from albert_keras.models.pooling import Pooling
from albert_keras.models.preprocessor import TextPreprocessor
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.similarity import AlbertForSimilarity
from albert_keras.serving.graph.precision import StoredModel


class StringModel(tf.Module):
    """Signatures over plain strings, with a free batch dimension.

    Of each text `max_bytes` bytes are read, and bytes that are not UTF-8 become U+FFFD.
    No content raises an error. Most signatures also return `dropped_tokens` int32 [B], the tokens
    of their texts that did not fit into the sequence, see `num_tokens_of`.

    embed           `text` string [B], always a text alone → `embedding` float32 [B, H], of length
                    1: the mean over all real positions, unless a subclass pools otherwise
    predict_tokens  `input_ids`, `input_mask`, `segment_ids` int32 [B, S] → see the subclass

    Args:
        model: float32.
        rows: TextPreprocessor. What makes the rows of texts, as for the model in training.
        precision: How the weights are stored and used, see `StoredModel`.
    """

    #: Shape of the inputs of `predict_tokens`: [B, S].
    ids_shape: tuple[int | None, ...] = (None, None)

    def __init__(
        self,
        model: AlbertForPretraining | AlbertForTask,
        rows: TextPreprocessor,
        precision: str = "float32",
    ):
        super().__init__(name="string_model")
        self._pooling = model.head if isinstance(model, AlbertForSimilarity) else Pooling()
        # Only its tokenizer is tracked: a Keras layer would be saved with call functions.
        vars(self)["rows"] = rows
        self.tokenizer = rows.graph_tokenizer
        # Only the weights are tracked: a Keras model as an attribute would be saved a second
        # time, with all its call functions.
        self.stored = StoredModel(model, precision)
        self.weights = self.stored.variables
        # The blocks that a position attends to depend on the length of the whole batch.
        self.packer = rows.packer(model.config.is_sparse_at(rows.sequence_length))
        self.buckets = self.packer.buckets  # lengths of sequences, in tokens
        self._unk_id, self._mask_id = rows.tokenizer.unk_id, rows.tokenizer.mask_id
        # Traced and saved once for all signatures; as tf.functions they would be saved once more.
        self.sequences_of, self.encoded, self.outputs = (
            functools.partial(tf.function(function, autograph=False))
            for function in (self._build_sequences, self.stored.encode, self.stored.outputs)
        )
        #: The signatures over strings, by name.
        self.functions = self._functions() | {
            "embed": string_function(self._embed, "text"),
        }
        #: The signatures over ids.
        self.token_functions = {"predict_tokens": self.token_function()}

    def _functions(self):
        """Returns the signatures of the subclass, a dict of name -> tf.function."""
        raise NotImplementedError

    def _predict_tokens(self, packed):
        """Returns the outputs of the model for sequences, a dict of tensors."""
        raise NotImplementedError

    @property
    def max_bytes(self) -> int:
        """Bytes of a text that are read."""
        return self.rows.max_bytes

    def ids(self, texts):
        """Returns the ids of texts, string [B] → ragged int32 [B, None]."""
        return self.tokenizer(readable(texts, self.max_bytes))

    def num_tokens(self, texts, ids):
        """Counts the tokens of texts, int64 [B]; `ids` are the ids of the part that is read."""
        return num_tokens_of(texts, ids, self.max_bytes)

    def _build_sequences(self, *texts):
        """Builds the sequences of one text each, string [B], or of two, see `TextPacker.pack`.

        Returns:
            dict, as `TextPacker.pack`; int32 [B], the tokens that are not in the sequence.
        """
        ids = [self.ids(part) for part in texts]
        packed = self.packer.pack(*ids)
        num_tokens = sum(self.num_tokens(*part) for part in zip(texts, ids, strict=True))
        return packed, self.packer.num_dropped(packed, num_tokens)

    def _embed(self, text):
        packed, dropped = self.sequences_of(text)  # of one text, even in a task of pairs
        vectors = self._pooling(self.encoded(packed), packed["input_mask"])
        return {"embedding": tf.math.l2_normalize(vectors, axis=-1), "dropped_tokens": dropped}

    def token_function(self, shape: tuple[int | None, ...] | None = None) -> Callable:
        """Returns `predict_tokens` for inputs of a shape, by default of `ids_shape`."""
        names = ("input_ids", "input_mask", "segment_ids")
        specs = [tf.TensorSpec(shape or self.ids_shape, tf.int32, name=name) for name in names]

        @tf.function(input_signature=specs, autograph=False)
        def predict_tokens(input_ids, input_mask, segment_ids):
            size = self.tokenizer.pieces.shape[0]
            is_known = (input_ids >= 0) & (input_ids < size)
            packed = {
                "input_ids": tf.where(is_known, input_ids, self._unk_id),
                "input_mask": tf.cast(input_mask > 0, tf.int32),
                "segment_ids": tf.cast(segment_ids > 0, tf.int32),
            }
            return self._predict_tokens(packed)

        return predict_tokens


def string_function(function, *names):
    """Converts a function of tensors to a tf.function whose inputs are strings with names.

    They are string [B], and "options" [B, C].
    """

    def named(*texts):
        return function(*texts)

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    parameters = [inspect.Parameter(name, kind) for name in names]
    named.__signature__ = inspect.Signature(parameters)
    specs = [
        tf.TensorSpec([None, None] if name == "options" else [None], tf.string, name)
        for name in names
    ]
    return tf.function(named, input_signature=specs, autograph=False)
