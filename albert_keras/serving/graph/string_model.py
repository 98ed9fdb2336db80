"""Models that take plain strings: tokenizer, packing and heads in one graph.

Made of core operations and of tensorflow-text's tokenizers only, so that
`tensorflow_model_server` can load it. Here is what all such models answer; what pre-trained ones
answer is in `text_model.py`, and those of tasks are in `task_model.py`.
"""

import tensorflow as tf

from albert_keras.serving.graph.precision import StoredModel
from albert_keras.serving.graph.text_packing import TextPacker, readable
from data_pipeline.errors import InputError
from data_pipeline.tokenizers import graph_tokenization

#: Places of a row whose attention is shown; an answer grows with their square.
_SHOWN = 64


class StringModel(tf.Module):
    """Base of the models: signatures over plain strings, batch dimension free.

    Of each text `TextPacker.max_bytes` bytes are read, and what is not UTF-8 is U+FFFD. Whatever
    the content, nothing raises.

    encode          `text` string [B], or what a subclass takes → `pooled_output` and
                    `mean_output` float32 [B, H], the latter the mean over all real places;
                    `sequence_output` float32 [B, bucket, H]; and where `layers` are chosen,
                    `layer_outputs` float32 [B, bucket, n H], what these gave, side by side
    explain_tokens  likewise → `pieces` string and `ids` int32 [B, bucket], what the encoder
                    reads; "" and the id of padding fill up
    attention       likewise → `pieces` string [B, P] and `attention` float32 [B, blocks, heads, P,
                    P], how much the piece of a row took of that of a column; the first 64 places
                    of a row at most, 0 for padding
    predict_tokens  `input_ids`, `input_mask`, `segment_ids` int32 [B, S] → what a subclass says

    Args:
        model: AlbertForPretraining or AlbertForTask, float32.
        tokenizer: Tokenizer.
        max_seq_length: int. Longer texts are cut to it, [CLS] and [SEP] included, S.
        precision: str. How the weights are stored and used, see `StoredModel`.
        layers: sequence of int. Blocks whose outputs `encode` gives, from 1, the first after the
            embeddings, to `num_hidden_layers * inner_group_num`.
        graph_tokenizer: AligningTokenizer or None. Made of `tokenizer` if None.

    Attributes:
        stored: StoredModel.
        functions: dict of name -> tf.function. The signatures over strings.
        token_functions: dict of name -> tf.function. Those over ids.
    """

    #: Places of a row of `predict_tokens`: [B, S].
    _ids_shape = (None, None)

    def __init__(
        self, model, tokenizer, max_seq_length, precision, layers=(), graph_tokenizer=None
    ):
        super().__init__(name="string_model")
        self._layers = check_layers(layers, model.config)
        self.tokenizer = graph_tokenizer or graph_tokenization.graph_tokenizer(tokenizer)
        # The weights alone are tracked: a Keras model as an attribute would be saved a second
        # time, with all its call functions.
        self.stored = StoredModel(model, precision)
        self.weights = self.stored.variables
        self.packer = TextPacker(tokenizer, max_seq_length)
        self._unk_id = tokenizer.unk_id
        self.functions = self._functions() | {
            "encode": string_function(self._encode, "text"),
            "explain_tokens": string_function(self._explain_tokens, "text"),
            "attention": string_function(self._attention, "text"),
        }
        self.token_functions = {"predict_tokens": self._token_function()}

    def _functions(self):
        """Returns the signatures of the subclass, a dict of name -> tf.function."""
        raise NotImplementedError

    def _predict_tokens(self, packed):
        """Returns what the model says of rows, a dict of tensors."""
        raise NotImplementedError

    def ids(self, texts):
        """Returns the ids of texts, string [B] → ragged int32 [B, None]."""
        return self.tokenizer(readable(texts, self.packer.max_bytes))

    def _packed(self, text):
        """Lays out what `encode` and `explain_tokens` were given, string [B]."""
        return self._pack(self.ids(text))

    def _pack(self, first, second=None):
        return self.packer.pack(first, second)

    def _encode(self, text):
        packed = self._packed(text)
        outputs = self.stored.encode(packed, return_all_layers=bool(self._layers))
        sequence = tf.cast(outputs["sequence_output"], tf.float32)
        is_real = tf.cast(packed["input_mask"], tf.float32)[:, :, None]
        answer = {
            "pooled_output": tf.cast(outputs["pooled_output"], tf.float32),
            "mean_output": tf.reduce_sum(sequence * is_real, axis=1)
            / tf.reduce_sum(is_real, axis=1),
            "sequence_output": sequence,
        }
        if self._layers:
            chosen = [outputs["layer_outputs"][layer - 1] for layer in self._layers]
            answer["layer_outputs"] = tf.cast(tf.concat(chosen, axis=-1), tf.float32)
        return answer

    def _explain_tokens(self, text):
        packed = self._packed(text)
        return {"pieces": self._pieces(packed), "ids": packed["input_ids"]}

    def _attention(self, text):
        packed = self._packed(text)
        # The row is computed whole: a shorter one would be another.
        probs = self.stored.encode(packed, return_attention=True)["attention"]
        shown = [block[:, :, :_SHOWN, :_SHOWN] for block in probs]
        is_real = tf.cast(packed["input_mask"], tf.float32)[:, None, None, :_SHOWN, None]
        return {
            "pieces": self._pieces(packed)[:, :_SHOWN],
            "attention": tf.cast(tf.stack(shown, axis=1), tf.float32) * is_real,
        }

    def _pieces(self, packed):
        """Returns the pieces of rows, string [B, bucket]; "" for padding."""
        pieces = tf.gather(self.tokenizer.pieces, packed["input_ids"])
        return tf.where(packed["input_mask"] > 0, pieces, "")

    def _token_function(self):
        names = ("input_ids", "input_mask", "segment_ids")
        specs = [tf.TensorSpec(self._ids_shape, tf.int32, name=name) for name in names]

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


def check_layers(layers, config):
    """Returns numbers of blocks as a tuple; raises InputError if the encoder has no such block."""
    layers = tuple(layers)
    depth = config.num_hidden_layers * config.inner_group_num
    wrong = [layer for layer in layers if not 1 <= layer <= depth]
    if wrong or len(set(layers)) < len(layers):
        raise InputError(
            f"`layers` should be different numbers from 1 to {depth}, the depth of the encoder. "
            f"Received: {', '.join(map(str, layers))}."
        )
    return layers


def string_function(function, *names):
    """Makes a tf.function over string [B] of these names out of one over as many tensors."""
    specs = [tf.TensorSpec([None], tf.string, name=name) for name in names]
    return tf.function(function, input_signature=specs, autograph=False)
