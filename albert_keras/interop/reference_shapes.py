"""Which tensors a model of google-research/albert has, and of what shape. Plain Python."""

from albert_keras.interop.model_weights import HEADS
from albert_keras.models.sharing import layer_plan
from data_pipeline.errors import InputError

#: Tensor -> its axes, by letter, see `_sizes`.
_EMBEDDINGS = {
    "bert/embeddings/word_embeddings": "VE",
    "bert/embeddings/token_type_embeddings": "TE",
    "bert/embeddings/position_embeddings": "PE",
    "bert/embeddings/LayerNorm/beta": "E",
    "bert/embeddings/LayerNorm/gamma": "E",
}
_PROJECTION = {
    "bert/encoder/embedding_hidden_mapping_in/kernel": "EH",
    "bert/encoder/embedding_hidden_mapping_in/bias": "H",
}
_POOLER = {"bert/pooler/dense/kernel": "HH", "bert/pooler/dense/bias": "H"}
#: What follows `inner_group_K/`, of the attention and of the feed-forward part of a block.
ATTENTION = {
    "attention_1/self/query/kernel": "HH",
    "attention_1/self/query/bias": "H",
    "attention_1/self/key/kernel": "HH",
    "attention_1/self/key/bias": "H",
    "attention_1/self/value/kernel": "HH",
    "attention_1/self/value/bias": "H",
    "attention_1/output/dense/kernel": "HH",
    "attention_1/output/dense/bias": "H",
    "LayerNorm/beta": "H",
    "LayerNorm/gamma": "H",
}
FEED_FORWARD = {
    "ffn_1/intermediate/dense/kernel": "HI",
    "ffn_1/intermediate/dense/bias": "I",
    "ffn_1/intermediate/output/dense/kernel": "IH",
    "ffn_1/intermediate/output/dense/bias": "H",
    "LayerNorm_1/beta": "H",
    "LayerNorm_1/gamma": "H",
}
_HEADS = {
    "masked_lm": {
        "cls/predictions/transform/dense/kernel": "HE",
        "cls/predictions/transform/dense/bias": "E",
        "cls/predictions/transform/LayerNorm/beta": "E",
        "cls/predictions/transform/LayerNorm/gamma": "E",
        "cls/predictions/output_bias": "V",
    },
    "sentence_order": {
        "cls/seq_relationship/output_weights": "2H",
        "cls/seq_relationship/output_bias": "2",
    },
    "classifier": {"output_weights": "CH", "output_bias": "C"},
    "spans": {"cls/squad/output_weights": "2H", "cls/squad/output_bias": "2"},
    "spans_or_none": {
        "start_logits/dense/kernel": "H1",
        "start_logits/dense/bias": "1",
        "end_logits/dense_0/kernel": "DH",
        "end_logits/dense_0/bias": "H",
        "end_logits/LayerNorm/beta": "H",
        "end_logits/LayerNorm/gamma": "H",
        "end_logits/dense_1/kernel": "H1",
        "end_logits/dense_1/bias": "1",
        "answer_class/dense_0/kernel": "DH",
        "answer_class/dense_0/bias": "H",
        "answer_class/dense_1/kernel": "H1",  # has no bias
    },
}


def encoder_shapes(config):
    """Returns the encoder's tensors: dict of name -> shape.

    Args:
        config: AlbertConfig. With any sharing.
    """
    sizes = _sizes(config)
    letters = dict(_EMBEDDINGS)
    if config.projects_embeddings:
        letters |= _PROJECTION
    plan = layer_plan(
        config.num_hidden_layers,
        config.sharing,
        config.num_hidden_groups,
        config.inner_group_num,
    )
    for use in plan:
        for block, part in ((use.attention, ATTENTION), (use.feed_forward, FEED_FORWARD)):
            scope = f"bert/encoder/transformer/{block.scope}"
            letters |= {f"{scope}/{name}": axes for name, axes in part.items()}
    return _shapes(letters | _POOLER, sizes)


def head_shapes(config, tensors):
    """Returns all tensors of those heads of which there is one at least: dict of name -> shape.

    Args:
        config: AlbertConfig.
        tensors: mapping of name -> array. Of the whole model, named as in the reference.
    """
    letters = {}
    for head, starts in HEADS.items():
        if any(name.startswith(start) for name in tensors for start in starts):
            letters |= _HEADS[head]
    return _shapes(letters, _sizes(config) | {"C": _num_classes(tensors)})


def _num_classes(tensors):
    """Returns the length of the classifier's bias, which no transposition can hide; 0 if none."""
    for name in ("output_bias", "output_weights"):
        if name in tensors and tensors[name].ndim:
            return tensors[name].shape[0]
    return 0


def _sizes(config):
    return {
        "V": config.vocab_size,
        "E": config.embedding_size,
        "H": config.hidden_size,
        "D": 2 * config.hidden_size,
        "I": config.intermediate_size,
        "P": config.max_position_embeddings,
        "T": config.type_vocab_size,
        "1": 1,
        "2": 2,
    }


def _shapes(letters, sizes):
    return {name: tuple(sizes[letter] for letter in axes) for name, axes in letters.items()}


def check_expressible(what, rules):
    """Makes sure that a format has a place for a model.

    Args:
        what: str. The format, for the message.
        rules: iterable of (field of the configuration, whether it holds, what it should be, what
            it is).

    Raises:
        InputError: With all rules that do not hold.
    """
    problems = [
        f"`{field}` should be {wanted}. Received: {received!r}."
        for field, holds, wanted, received in rules
        if not holds
    ]
    if problems:
        raise InputError(f"{what} cannot have this model: {' '.join(problems)}")
