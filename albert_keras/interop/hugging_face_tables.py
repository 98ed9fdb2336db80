"""Which tensor of transformers is which of ours: data, one `Family` for each kind of model.

The names are those of models with heads; a model without heads omits their first part. Kernels of
their dense layers have the shape [out, in].

Source: `modeling_albert.py` and `modeling_bert.py` of transformers 5.23.
"""

from typing import NamedTuple

from albert_keras.interop.model_weights import PROJECTION
from albert_keras.interop.tensor_table import Row, dense_rows, norm_rows

_BLOCK = "bert/encoder/transformer/group_{g}/inner_group_{k}"


class Family(NamedTuple):
    """A kind of model in transformers."""

    name: str  #: Its `model_type`.
    prefix: str  #: What the names of the encoder's tensors start with.
    encoder: tuple[Row, ...]  #: Without the pooler.
    pooler: tuple[Row, ...]  #: Models that do not use it do not store it.
    heads: dict[str, tuple[Row, ...]]  #: See `HEADS` in `model_weights.py`.
    #: Name -> name of the tensor that it equals; at most one of the two is missing.
    copies: dict[str, str]
    classes: dict[tuple[str, ...], tuple[str, ...]]  #: By heads; the first class is written.
    #: Ends of the names of classes that have no pooler.
    without_pooler: tuple[str, ...] = ("MaskedLM", "TokenClassification", "QuestionAnswering")


def _dense(ours, theirs):
    return dense_rows(ours, theirs, (".weight", ".bias"), "transposed")


def _norm(ours, theirs):
    return norm_rows(ours, theirs, (".weight", ".bias"))


def _classes(ours, theirs):
    """Returns the rows of a head with one row of weights per class in both formats."""
    parts = (("output_weights", "weight"), ("output_bias", "bias"))
    return tuple(Row(f"{ours}{our_part}", f"{theirs}.{part}") for our_part, part in parts)


def _embeddings(prefix):
    names = ("word_embeddings", "token_type_embeddings", "position_embeddings")
    rows = (Row(f"bert/embeddings/{name}", f"{prefix}embeddings.{name}.weight") for name in names)
    return (*rows, *_norm("bert/embeddings/LayerNorm", f"{prefix}embeddings.LayerNorm"))


def _block(theirs, query, output, attention_norm, wide, narrow, norm):
    """Returns the rows of a block; `query` is without its last part."""
    attention = f"{_BLOCK}/attention_1"
    rows = [
        _dense(f"{attention}/self/{part}", f"{theirs}.{query}.{part}")
        for part in ("query", "key", "value")
    ]
    rows += [
        _dense(f"{attention}/output/dense", f"{theirs}.{output}"),
        _norm(f"{_BLOCK}/LayerNorm", f"{theirs}.{attention_norm}"),
        _dense(f"{_BLOCK}/ffn_1/intermediate/dense", f"{theirs}.{wide}"),
        _dense(f"{_BLOCK}/ffn_1/intermediate/output/dense", f"{theirs}.{narrow}"),
        _norm(f"{_BLOCK}/LayerNorm_1", f"{theirs}.{norm}"),
    ]
    return sum(rows, ())


def _heads(predictions, transform, order):
    """Returns the rows of all heads. Class 1 of `order` is swapped, or a random sentence."""
    return {
        "masked_lm": _dense("cls/predictions/transform/dense", f"{transform}dense")
        + _norm("cls/predictions/transform/LayerNorm", f"{transform}LayerNorm")
        + (Row("cls/predictions/output_bias", f"{predictions}.bias"),),
        "sentence_order": _classes("cls/seq_relationship/", order),
        "classifier": _classes("", "classifier"),
        "spans": _classes("cls/squad/", "qa_outputs"),  # row 0 scores starts, 1 ends, in both
    }


def _copies(prefix, predictions):
    return {
        f"{predictions}.decoder.weight": f"{prefix}embeddings.word_embeddings.weight",
        f"{predictions}.decoder.bias": f"{predictions}.bias",
    }


def _class_names(name):
    tasks = ("SequenceClassification", "TokenClassification", "MultipleChoice")
    return {
        (): (f"{name}Model",),
        ("masked_lm", "sentence_order"): (f"{name}ForPreTraining",),
        ("masked_lm",): (f"{name}ForMaskedLM",),
        ("classifier",): tuple(f"{name}For{task}" for task in tasks),
        ("spans",): (f"{name}ForQuestionAnswering",),
    }


ALBERT = Family(
    name="albert",
    prefix="albert.",
    encoder=_embeddings("albert.")
    + _dense(PROJECTION, "albert.encoder.embedding_hidden_mapping_in")
    + _block(
        "albert.encoder.albert_layer_groups.{g}.albert_layers.{k}",
        query="attention",
        output="attention.dense",
        attention_norm="attention.LayerNorm",
        wide="ffn",
        narrow="ffn_output",
        norm="full_layer_layer_norm",
    ),
    pooler=_dense("bert/pooler/dense", "albert.pooler"),
    heads=_heads("predictions", "predictions.", "sop_classifier.classifier"),
    copies=_copies("albert.", "predictions"),
    classes=_class_names("Albert"),
)

BERT = Family(
    name="bert",
    prefix="bert.",
    encoder=_embeddings("bert.")
    + _block(
        "bert.encoder.layer.{g}",
        query="attention.self",
        output="attention.output.dense",
        attention_norm="attention.output.LayerNorm",
        wide="intermediate.dense",
        narrow="output.dense",
        norm="output.LayerNorm",
    ),
    pooler=_dense("bert/pooler/dense", "bert.pooler.dense"),
    heads=_heads("cls.predictions", "cls.predictions.transform.", "cls.seq_relationship"),
    copies=_copies("bert.", "cls.predictions"),
    classes=_class_names("Bert") | {("sentence_order",): ("BertForNextSentencePrediction",)},
)

#: `model_type` -> the family.
FAMILIES = {family.name: family for family in (ALBERT, BERT)}
