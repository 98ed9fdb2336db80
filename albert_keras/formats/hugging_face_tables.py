"""What transformers calls tensors and settings: data, one `Family` for each kind of model.

The tables have the names of models with heads; a model without heads omits the first part of each
name. In transformers, kernels of dense layers have the shape [out, in].

Source: `modeling_albert.py`, `modeling_bert.py`, `modeling_roberta.py` and
`modeling_distilbert.py` of transformers 5.23 and 5.24.
"""

from typing import Any, NamedTuple

from albert_keras.config import SHAPE_KEYS
from albert_keras.formats.model_weights import BERT_DEFAULTS
from albert_keras.formats.tensor_table import Naming, Row
from albert_keras.shape import POOLER, PROJECTION

_TORCH = Naming(".weight", ".bias", ".weight", ".bias", "transposed")
_TYPES, _POSITIONS = "token_type_embeddings", "position_embeddings"
_BOTH = ("masked_lm", "sentence_order")
#: Our setting of the activation.
ACTIVATION = "hidden_act"
_NORM_KEY = {"layer_norm_epsilon": "layer_norm_eps"}
_DEFAULTS = BERT_DEFAULTS | {"type_vocab_size": 2, "layer_norm_epsilon": 1e-12}


class Family(NamedTuple):
    """A kind of model in transformers."""

    name: str  #: Its `model_type`.
    prefix: str  #: What the names of the encoder's tensors start with.
    encoder: tuple[Row, ...]  #: Without the pooler.
    #: Models that do not use it do not store it; empty if only classifiers have one.
    pooler: tuple[Row, ...]
    heads: dict[str, tuple[Row, ...]]  #: See `HEADS` in `model_weights.py`.
    #: Name -> name of the tensor that it equals; at most one of the two is missing.
    copies: dict[str, str]
    classes: dict[tuple[str, ...], tuple[str, ...]]  #: By heads; the first class is written.
    #: Ends of the names of classes that have no pooler.
    without_pooler: tuple[str, ...] = ("MaskedLM", "TokenClassification", "QuestionAnswering")
    #: End of the name of a class -> rows of its pooler and of its classifier, if they are others.
    #: Such a pooler is part of the classifier there.
    classifiers: dict[str, tuple[tuple[Row, ...], tuple[Row, ...]]] = {}
    shares: bool = False  #: Whether depths share weights.
    keys: dict[str, str] = _NORM_KEY  #: Our setting -> its key, where that has another name.
    defaults: dict[str, Any] = _DEFAULTS  #: Our setting -> what a missing key means.
    fixed: dict[str, Any] = {}  #: What all models of the kind have, and no file contains.
    activation: str = "gelu"  #: Theirs, if a file has none.

    def key_of(self, setting: str) -> str:
        """Returns the key of one of our settings."""
        return self.keys.get(setting, setting)

    def known_keys(self) -> set[str]:
        """Returns the keys that have a meaning here."""
        return {*map(self.key_of, (*SHAPE_KEYS, *self.defaults, ACTIVATION))}

    def rows(self, heads: tuple[str, ...], class_name: str) -> tuple[Row, ...]:
        """Returns the table of a class with these heads."""
        pooler, classifier = self.pooler, self.heads["classifier"]
        for end, rows in self.classifiers.items():
            if class_name.endswith(end):
                pooler, classifier = rows
        known = self.heads | {"classifier": classifier}
        return sum((known.get(head, ()) for head in heads), self.encoder + pooler)

    def heads_in(self, names) -> tuple[str, ...]:
        """Returns the heads that have at least one of these tensors, in any class."""
        ends = tuple(classifier for _, classifier in self.classifiers.values())
        rows = self.heads | {"classifier": sum(ends, self.heads["classifier"])}
        return tuple(
            head for head, of_head in rows.items() if any(row.theirs in names for row in of_head)
        )

    def theirs_of_heads(self) -> set[str]:
        """Returns the names of all tensors of heads, in any class, and of copies."""
        rows = sum(self.heads.values(), ())
        rows += sum((row for pair in self.classifiers.values() for row in pair), ())
        return {row.theirs for row in rows} | self.copies.keys()

    def needs_pooler(self, heads: tuple[str, ...], class_name: str) -> bool:
        """Returns whether a head of a class reads the pooler."""
        return "sentence_order" in heads or (
            "classifier" in heads and not class_name.endswith(self.without_pooler)
        )


def class_rows(ours: str, theirs: str) -> tuple[Row, ...]:
    """Returns the rows of a head with one row of weights per class in both formats."""
    parts = (("output_weights", "weight"), ("output_bias", "bias"))
    return tuple(Row(f"{ours}{our_part}", f"{theirs}.{part}") for our_part, part in parts)


def _embeddings(prefix, *names):
    names = ("word_embeddings", *names)
    rows = (Row(f"bert/embeddings/{name}", f"{prefix}embeddings.{name}.weight") for name in names)
    return (*rows, *_TORCH.norm("bert/embeddings/LayerNorm", f"{prefix}embeddings.LayerNorm"))


def masked_lm_rows(transform: str, normalization: str, bias: str) -> tuple[Row, ...]:
    """Returns the rows of a masked-LM head for the names of its three parts."""
    return (
        *_TORCH.dense("cls/predictions/transform/dense", transform),
        *_TORCH.norm("cls/predictions/transform/LayerNorm", normalization),
        Row("cls/predictions/output_bias", bias),
    )


#: Of all families, where the class has no other ones.
_TASK_HEADS = {
    "classifier": class_rows("", "classifier"),
    "spans": class_rows("cls/squad/", "qa_outputs"),  # row 0 scores starts, 1 ends, in both
}


def _heads(predictions, transform, order):
    """Returns the rows of all heads. Class 1 of `order` is swapped, or a random sentence."""
    return {
        "masked_lm": masked_lm_rows(
            f"{transform}dense", f"{transform}LayerNorm", f"{predictions}.bias"
        ),
        "sentence_order": class_rows("cls/seq_relationship/", order),
        **_TASK_HEADS,
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
        ("masked_lm",): (f"{name}ForMaskedLM",),
        ("classifier",): tuple(f"{name}For{task}" for task in tasks),
        ("spans",): (f"{name}ForQuestionAnswering",),
    }


ALBERT = Family(
    name="albert",
    prefix="albert.",
    encoder=_embeddings("albert.", _TYPES, _POSITIONS)
    + _TORCH.dense(PROJECTION, "albert.encoder.embedding_hidden_mapping_in")
    + _TORCH.block(
        "albert.encoder.albert_layer_groups.{g}.albert_layers.{k}.",
        query="attention.{}",
        output="attention.dense",
        attention_norm="attention.LayerNorm",
        wide="ffn",
        narrow="ffn_output",
        last_norm="full_layer_layer_norm",
    ),
    pooler=_TORCH.dense(POOLER, "albert.pooler"),
    heads=_heads("predictions", "predictions.", "sop_classifier.classifier"),
    copies=_copies("albert.", "predictions"),
    classes=_class_names("Albert") | {_BOTH: ("AlbertForPreTraining",)},
    shares=True,
    defaults=_DEFAULTS
    | {
        "embedding_size": 128,
        "num_hidden_groups": 1,
        "inner_group_num": 1,
        "down_scale_factor": 1,  # unknown there, but present in the released files
        "hidden_dropout_prob": 0.0,
        "attention_probs_dropout_prob": 0.0,
    },
    activation="gelu_new",
)

_BERT_BLOCK = {
    "query": "attention.self.{}",
    "output": "attention.output.dense",
    "attention_norm": "attention.output.LayerNorm",
    "wide": "intermediate.dense",
    "narrow": "output.dense",
    "last_norm": "output.LayerNorm",
}

BERT = Family(
    name="bert",
    prefix="bert.",
    encoder=_embeddings("bert.", _TYPES, _POSITIONS)
    + _TORCH.block("bert.encoder.layer.{g}.", **_BERT_BLOCK),
    pooler=_TORCH.dense(POOLER, "bert.pooler.dense"),
    heads=_heads("cls.predictions", "cls.predictions.transform.", "cls.seq_relationship"),
    copies=_copies("bert.", "cls.predictions"),
    classes=_class_names("Bert")
    | {_BOTH: ("BertForPreTraining",), ("sentence_order",): ("BertForNextSentencePrediction",)},
)

ROBERTA = Family(
    name="roberta",
    prefix="roberta.",
    encoder=_embeddings("roberta.", _TYPES, _POSITIONS)
    + _TORCH.block("roberta.encoder.layer.{g}.", **_BERT_BLOCK),
    pooler=_TORCH.dense(POOLER, "roberta.pooler.dense"),
    heads={
        "masked_lm": masked_lm_rows("lm_head.dense", "lm_head.layer_norm", "lm_head.bias"),
        **_TASK_HEADS,
    },
    copies=_copies("roberta.", "lm_head"),
    classes=_class_names("Roberta"),
    classifiers={
        "SequenceClassification": (
            _TORCH.dense(POOLER, "classifier.dense"),
            class_rows("", "classifier.out_proj"),
        )
    },
    fixed={"position_embedding": "absolute", "pooler": "on_demand", "pooler_activation": "tanh"},
)

DISTILBERT = Family(
    name="distilbert",
    prefix="distilbert.",
    encoder=_embeddings("distilbert.", _POSITIONS)
    + _TORCH.block(
        "distilbert.transformer.layer.{g}.",
        query="attention.{1}_lin",
        output="attention.out_lin",
        attention_norm="sa_layer_norm",
        wide="ffn.lin1",
        narrow="ffn.lin2",
        last_norm="output_layer_norm",
    ),
    pooler=(),
    heads={
        "masked_lm": masked_lm_rows("vocab_transform", "vocab_layer_norm", "vocab_projector.bias"),
        **_TASK_HEADS,
    },
    copies={"vocab_projector.weight": "distilbert.embeddings.word_embeddings.weight"},
    classes=_class_names("DistilBert"),
    classifiers={
        end: (_TORCH.dense(POOLER, "pre_classifier"), class_rows("", "classifier"))
        for end in ("SequenceClassification", "MultipleChoice")
    },
    keys={
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "hidden_act": "activation",
    },
    defaults=BERT_DEFAULTS,
    fixed={
        "type_vocab_size": 0,
        "position_embedding": "absolute",
        "position_offset": 0,
        "layer_norm_epsilon": 1e-12,
        "pooler": "on_demand",
        "pooler_activation": "relu",
    },
)

#: `model_type` -> the family.
FAMILIES = {family.name: family for family in (ALBERT, BERT, ROBERTA, DISTILBERT)}
