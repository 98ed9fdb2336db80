"""Base of the models that take plain strings: tokenizer, packing and heads in one graph.

The graph contains core operations and tokenizers of tensorflow-text only, so that
`tensorflow_model_server` can load it. `text_model.py` has pre-trained models, `string_tasks.py`
fine-tuned ones.
"""

import functools
import inspect

import tensorflow as tf

from albert_keras.layers.text_packing import num_tokens_of
from albert_keras.models.encoder_with_head import AlbertForTask
from albert_keras.models.pooling import Pooling
from albert_keras.models.preprocessor import TextPreprocessor
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.similarity import AlbertForSimilarity
from albert_keras.serving.graph.precision import StoredModel


class StringModel(tf.Module):
    """Signatures over plain strings, with a free batch dimension.

    Of each text `max_bytes` of the rows are read, and bytes that are not UTF-8 become U+FFFD.
    No content raises an error. Most signatures also return `dropped_tokens` int32 [B], the tokens
    of their texts that did not fit into the sequence, see `num_tokens_of`.

    embed  `text` string [B], always a text alone → `embedding` float32 [B, H], of length 1: the
        mean over all real positions, unless the model is for similarity and pools otherwise

    Args:
        model: float32.
        rows: TextPreprocessor. What makes the rows of texts, as for the model in training.
        precision: How the weights are stored and used, see `StoredModel`.
    """

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
        # Traced and saved once for all signatures; as tf.functions they would be saved once more.
        self.sequences_of, self.encoded, self.outputs = (
            functools.partial(tf.function(function, autograph=False))
            for function in (self._build_sequences, self.stored.encode, self.stored.outputs)
        )
        #: The signatures by name.
        self.functions = self._functions() | {"embed": string_function(self._embed, "text")}

    def _functions(self):
        """Returns the signatures of the subclass, a dict of name -> tf.function."""
        raise NotImplementedError

    def _build_sequences(self, *texts):
        """Builds the sequences of one text each, string [B], or of two, see `TextPacker.pack`.

        Returns:
            dict, as `TextPacker.pack`; int32 [B], the tokens that are not in the sequence.
        """
        ids = [self.rows.ids(part) for part in texts]
        packed = self.packer.pack(*ids)
        parts = zip(texts, ids, strict=True)
        num_tokens = sum(num_tokens_of(*part, self.rows.max_bytes) for part in parts)
        return packed, self.packer.num_dropped(packed, num_tokens)

    def _embed(self, text):
        packed, dropped = self.sequences_of(text)  # of one text, even in a task of pairs
        vectors = self._pooling(self.encoded(packed), packed["input_mask"])
        return {"embedding": tf.math.l2_normalize(vectors, axis=-1), "dropped_tokens": dropped}


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
