"""Which model of transformers one of ours is, and its `config.json`."""

from albert_keras.config import AlbertConfig
from albert_keras.interop.hugging_face_tables import FAMILIES, Family
from albert_keras.interop.model_weights import check_expressible
from albert_keras.models.sharing import layer_plan
from data_pipeline.errors import InputError

#: Defaults of transformers for missing keys, which have the same names there and here.
_BERT_DEFAULTS = {
    "vocab_size": 30_522,
    "hidden_size": 768,
    "num_hidden_layers": 12,
    "num_attention_heads": 12,
    "intermediate_size": 3072,
    "hidden_dropout_prob": 0.1,
    "attention_probs_dropout_prob": 0.1,
    "max_position_embeddings": 512,
    "type_vocab_size": 2,
    "initializer_range": 0.02,
}
_ALBERT_DEFAULTS = _BERT_DEFAULTS | {
    "vocab_size": 30_000,
    "embedding_size": 128,
    "hidden_size": 4096,
    "num_hidden_groups": 1,
    "num_attention_heads": 64,
    "intermediate_size": 16_384,
    "inner_group_num": 1,
    "down_scale_factor": 1,  # unknown there, but present in the released files
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
}
_DEFAULTS = {"albert": _ALBERT_DEFAULTS, "bert": _BERT_DEFAULTS}
_DEFAULT_ACTIVATION = {"albert": "gelu_new", "bert": "gelu"}
#: Their activation -> ours. Of several equal ones the first is written.
_ACTIVATIONS = {
    "gelu_new": "gelu",
    "gelu_pytorch_tanh": "gelu",
    "gelu_python_tanh": "gelu",
    "gelu_fast": "gelu",
    "gelu": "gelu_erf",
    "gelu_python": "gelu_erf",
    "relu": "relu",
    "tanh": "tanh",
    "silu": "silu",
    "swish": "silu",
    "linear": "linear",
}
_NORM = "layer_norm_eps"
#: Key -> the values it may have, if it is present: anything else is a model we cannot express.
_ALLOWED = {
    _NORM: (1e-12,),
    "position_embedding_type": ("absolute", None),
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
    "auto_map": ({}, None),  # code in the folder
}
_LABELS = ("id2label", "label2id", "num_labels")


def family_of(values: dict) -> Family:
    """Returns the kind of model, from `model_type` or, in old files without it, the class.

    InputError if it is neither ALBERT nor BERT.
    """
    name = values.get("model_type")
    if name is None:
        classes = values.get("architectures")
        first = str(classes[0]) if isinstance(classes, list) and classes else ""
        name = next((name for name in FAMILIES if first.lower().startswith(name)), first)
    if not isinstance(name, str) or name not in FAMILIES:
        known = " or ".join(FAMILIES)
        raise InputError(f"`model_type` of a config.json must be {known}. Received: {name!r}.")
    return FAMILIES[name]


def family_for(config: AlbertConfig) -> tuple[Family, int]:
    """Chooses the kind of model and number of groups as which one of our models is written.

    InputError if ALBERT and BERT of transformers cannot express the model.
    """
    check_expressible("ALBERT and BERT of transformers", config, ())
    is_bert = config.sharing == "none" and config.inner_group_num == 1
    if is_bert and not config.projects_embeddings:
        return FAMILIES["bert"], config.num_hidden_layers
    depths, inner = config.num_hidden_layers, config.inner_group_num
    plan = layer_plan(depths, config.sharing, config.num_hidden_groups, inner)
    for groups in (config.num_hidden_groups, depths):
        if layer_plan(depths, "all", groups, inner) == plan:
            check_groups(config.replace(sharing="all", num_hidden_groups=groups))
            return FAMILIES["albert"], groups
    raise InputError(
        'transformers cannot express this model: `sharing` must be "all" or "none". '
        f"Received: {config.sharing!r}."
    )


def class_of(family: Family, heads: tuple[str, ...], foreign: dict) -> str:
    """Returns the class of transformers with these heads: the source's class, or the usual one.

    The source's class may be that of another family, such as AlbertForTokenClassification of a
    BERT. InputError if there is no class with these heads.
    """
    classes = family.classes.get(tuple(heads))
    if classes is None:
        known = "; ".join(" and ".join(heads) or "none" for heads in family.classes)
        raise InputError(
            f"transformers has no {family.name} with the heads {' and '.join(heads)}. It has: "
            f"{known}."
        )
    named = foreign.get("architectures")
    first = str(named[0]) if isinstance(named, list) and len(named) == 1 else ""
    _, _, head = first.partition("For")
    return next((name for name in classes if head and name.endswith(f"For{head}")), classes[0])


def check_groups(config: AlbertConfig):
    """Raises InputError if a layer would be in another group in transformers, which divides floats.

    This is the case for a few numbers of layers and groups only.
    """
    depths, groups = config.num_hidden_layers, config.num_hidden_groups
    for depth in range(depths):
        if int(depth / (depths / groups)) != depth * groups // depths:
            raise InputError(
                f"{groups} groups of {depths} depths are not the same in transformers: by its "
                f"rounding depth {depth} is in group {int(depth / (depths / groups))}, not in "
                f"{depth * groups // depths}."
            )


def to_albert_config(family: Family, values: dict, heads: tuple[str, ...] = ()) -> AlbertConfig:
    """Converts the values of a `config.json` of a model with these heads into ours.

    Keys without a meaning here that `to_values` would not write become `foreign_keys`.
    transformers' ALBERT always projects the embeddings. InputError if our models cannot express it.
    """
    for key, allowed in _ALLOWED.items():
        if key in values and values[key] not in allowed:
            raise InputError(f"`{key}` must be {allowed[0]!r}. Received: {values[key]!r}.")
    defaults = _DEFAULTS[family.name]
    ours = {name: values.get(name, default) for name, default in defaults.items()}
    activation = values.get("hidden_act", _DEFAULT_ACTIVATION[family.name])
    if not isinstance(activation, str) or activation not in _ACTIVATIONS:
        known = ", ".join(_ACTIVATIONS)
        raise InputError(f"`hidden_act` must be one of {known}. Received: {activation!r}.")
    ours["hidden_act"] = _ACTIVATIONS[activation]
    if family.name == "bert":
        ours |= {"embedding_size": ours["hidden_size"], "sharing": "none"}
    elif ours["embedding_size"] == ours["hidden_size"]:
        ours["embedding_projection"] = "always"
    config = AlbertConfig(**ours, foreign_keys=_foreign_keys(family, values, heads))
    clashes = sorted(AlbertConfig.model_fields.keys() & config.foreign_keys.keys())
    if clashes:
        raise InputError(
            f"`{clashes[0]}` has no meaning for {family.name} in transformers, but another one "
            "here. Remove it from config.json."
        )
    check_groups(config)
    return config


def read_labels(values: dict) -> tuple[str, ...]:
    """Returns the names of the classes; empty where they are only numbered.

    InputError if they are not numbered from 0.
    """
    names = values.get("id2label") or {}
    numbers = [str(number) for number in range(len(names))]
    if not isinstance(names, dict) or names.keys() != set(numbers):
        raise InputError(f"`id2label` must name classes numbered from 0. Received: {names!r}.")
    labels = tuple(str(names[number]) for number in numbers)
    return () if labels == _numbered(len(labels)) else labels


def to_values(config: AlbertConfig, heads: tuple[str, ...], labels=(), num_classes=0) -> dict:
    """Converts one of our configurations into the values of a `config.json`.

    `labels` are the names of the classifier's classes and may be empty; `num_classes` is 0 without
    a classifier.

    Raises:
        InputError: If transformers has no such model, or the number of labels is not the number of
            classes.
    """
    family, groups = family_for(config)
    foreign = dict(config.foreign_keys)
    values = {"architectures": [class_of(family, heads, foreign)], "model_type": family.name}
    values |= {name: getattr(config, name) for name in _DEFAULTS[family.name]}
    if family.name == "albert":
        values["num_hidden_groups"] = groups
    values["hidden_act"] = next(
        theirs for theirs, ours in _ACTIVATIONS.items() if ours == config.hidden_act
    )
    values |= {_NORM: 1e-12, "tie_word_embeddings": True}
    values["dtype" if "dtype" in foreign else "torch_dtype"] = "float32"
    if num_classes and not values["architectures"][0].endswith("MultipleChoice"):
        for key in _LABELS:
            foreign.pop(key, None)
        if labels and len(labels) != num_classes:
            raise InputError(
                f"There must be a label for each of {num_classes} classes. Received: {labels}."
            )
        if labels or num_classes != 2:  # transformers omits its default as well
            labels = labels or _numbered(num_classes)
            values["id2label"] = {str(number): name for number, name in enumerate(labels)}
            values["label2id"] = {name: number for number, name in enumerate(labels)}
    values = foreign | values
    to_albert_config(family, values, heads)  # refuses what could not be read again
    return values


def _foreign_keys(family, values, heads):
    """Returns the keys that are neither known here nor written in any case."""
    written = {"model_type": family.name, "tie_word_embeddings": True, _NORM: 1e-12}
    written["torch_dtype"] = values.get("torch_dtype")
    written["architectures"] = list(family.classes.get(tuple(heads), ("",)))[:1]
    known = {*_DEFAULTS[family.name], "hidden_act"}
    if "classifier" in heads:
        known.update(_LABELS)
    return {
        key: value
        for key, value in values.items()
        if key not in known and not (key in written and written[key] == value)
    }


def _numbered(number):
    return tuple(f"LABEL_{index}" for index in range(number))
