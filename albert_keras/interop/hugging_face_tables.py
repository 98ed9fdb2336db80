"""Which tensor of transformers is which of ours: data, one `Family` for each kind of model.

Theirs are the names of models with heads; a model without one leaves the first part out. Their
dense layers lie [out, in].

Source: `modeling_albert.py` and `modeling_bert.py` of transformers 5.23.
"""

from typing import NamedTuple

from albert_keras.interop.tensor_table import Row

_BLOCK = "bert/encoder/transformer/group_{g}/inner_group_{k}"


class Family(NamedTuple):
    """A kind of model in transformers.

    Attributes:
        name: str. Its `model_type`.
        prefix: str. What the names of the encoder's tensors begin with.
        encoder: tuple of Row. Without the pooler.
        pooler: tuple of Row. Models that do not use it come without.
        heads: dict of head -> tuple of Row, see `HEADS` in `model_weights.py`.
        copies: dict of their name -> their name. Tensors that have to equal another, or are
            missing; at most one of the two is.
        classes: dict of heads -> tuple of str. Classes with these heads, the one we write first.
        without_pooler: tuple of str. How names of classes end that come without a pooler.
    """

    name: str
    prefix: str
    encoder: tuple[Row, ...]
    pooler: tuple[Row, ...]
    heads: dict[str, tuple[Row, ...]]
    copies: dict[str, str]
    classes: dict[tuple[str, ...], tuple[str, ...]]
    without_pooler: tuple[str, ...] = ("MaskedLM", "TokenClassification", "QuestionAnswering")


def _dense(ours, theirs):
    return (
        Row(f"{ours}/kernel", f"{theirs}.weight", "transposed"),
        Row(f"{ours}/bias", f"{theirs}.bias"),
    )


def _norm(ours, theirs):
    return Row(f"{ours}/gamma", f"{theirs}.weight"), Row(f"{ours}/beta", f"{theirs}.bias")


def _linear(ours, theirs):
    """A head with one row per class, as they lie there, too."""
    start = f"{ours}/" if ours else ""
    return (
        Row(f"{start}output_weights", f"{theirs}.weight"),
        Row(f"{start}output_bias", f"{theirs}.bias"),
    )


def _embeddings(prefix):
    names = ("word_embeddings", "token_type_embeddings", "position_embeddings")
    rows = (Row(f"bert/embeddings/{name}", f"{prefix}embeddings.{name}.weight") for name in names)
    return (*rows, *_norm("bert/embeddings/LayerNorm", f"{prefix}embeddings.LayerNorm"))


def _block(theirs, denses, norms):
    rows = [_dense(f"{_BLOCK}/{ours}", f"{theirs}.{name}") for ours, name in denses.items()]
    rows += [_norm(f"{_BLOCK}/{ours}", f"{theirs}.{name}") for ours, name in norms.items()]
    return sum(rows, ())


_TASK_HEADS = {
    "classifier": _linear("", "classifier"),
    "spans": _linear("cls/squad", "qa_outputs"),  # row 0 scores starts, 1 ends, there and here
}

#: Sentence order: class 0 in order, 1 swapped, there and here.
ALBERT = Family(
    name="albert",
    prefix="albert.",
    encoder=_embeddings("albert.")
    + _dense(
        "bert/encoder/embedding_hidden_mapping_in", "albert.encoder.embedding_hidden_mapping_in"
    )
    + _block(
        "albert.encoder.albert_layer_groups.{g}.albert_layers.{k}",
        {
            "attention_1/self/query": "attention.query",
            "attention_1/self/key": "attention.key",
            "attention_1/self/value": "attention.value",
            "attention_1/output/dense": "attention.dense",
            "ffn_1/intermediate/dense": "ffn",
            "ffn_1/intermediate/output/dense": "ffn_output",
        },
        {"LayerNorm": "attention.LayerNorm", "LayerNorm_1": "full_layer_layer_norm"},
    ),
    pooler=_dense("bert/pooler/dense", "albert.pooler"),
    heads={
        "masked_lm": _dense("cls/predictions/transform/dense", "predictions.dense")
        + _norm("cls/predictions/transform/LayerNorm", "predictions.LayerNorm")
        + (Row("cls/predictions/output_bias", "predictions.bias"),),
        "sentence_order": _linear("cls/seq_relationship", "sop_classifier.classifier"),
    }
    | _TASK_HEADS,
    copies={
        "predictions.decoder.weight": "albert.embeddings.word_embeddings.weight",
        "predictions.decoder.bias": "predictions.bias",
    },
    classes={
        (): ("AlbertModel",),
        ("masked_lm", "sentence_order"): ("AlbertForPreTraining",),
        ("masked_lm",): ("AlbertForMaskedLM",),
        ("classifier",): (
            "AlbertForSequenceClassification",
            "AlbertForTokenClassification",
            "AlbertForMultipleChoice",
        ),
        ("spans",): ("AlbertForQuestionAnswering",),
    },
)

#: Next sentence: class 0 the next one, 1 a random one, there and here.
BERT = Family(
    name="bert",
    prefix="bert.",
    encoder=_embeddings("bert.")
    + _block(
        "bert.encoder.layer.{g}",
        {
            "attention_1/self/query": "attention.self.query",
            "attention_1/self/key": "attention.self.key",
            "attention_1/self/value": "attention.self.value",
            "attention_1/output/dense": "attention.output.dense",
            "ffn_1/intermediate/dense": "intermediate.dense",
            "ffn_1/intermediate/output/dense": "output.dense",
        },
        {"LayerNorm": "attention.output.LayerNorm", "LayerNorm_1": "output.LayerNorm"},
    ),
    pooler=_dense("bert/pooler/dense", "bert.pooler.dense"),
    heads={
        "masked_lm": _dense("cls/predictions/transform/dense", "cls.predictions.transform.dense")
        + _norm("cls/predictions/transform/LayerNorm", "cls.predictions.transform.LayerNorm")
        + (Row("cls/predictions/output_bias", "cls.predictions.bias"),),
        "sentence_order": _linear("cls/seq_relationship", "cls.seq_relationship"),
    }
    | _TASK_HEADS,
    copies={
        "cls.predictions.decoder.weight": "bert.embeddings.word_embeddings.weight",
        "cls.predictions.decoder.bias": "cls.predictions.bias",
    },
    classes={
        (): ("BertModel",),
        ("masked_lm", "sentence_order"): ("BertForPreTraining",),
        ("masked_lm",): ("BertForMaskedLM",),
        ("sentence_order",): ("BertForNextSentencePrediction",),
        ("classifier",): (
            "BertForSequenceClassification",
            "BertForTokenClassification",
            "BertForMultipleChoice",
        ),
        ("spans",): ("BertForQuestionAnswering",),
    },
)

#: `model_type` -> the family.
FAMILIES = {family.name: family for family in (ALBERT, BERT)}
