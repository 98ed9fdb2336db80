"""KerasNLP's configurations of ALBERT: their JSON read strictly, without making what it names."""

import json

from albert_keras.config import AlbertConfig
from data_pipeline.errors import InputError

#: The backbone's argument -> our field. `dropout` is both of ours.
ARGUMENTS = {
    "vocabulary_size": "vocab_size",
    "num_layers": "num_hidden_layers",
    "num_heads": "num_attention_heads",
    "num_groups": "num_hidden_groups",
    "num_inner_repetitions": "inner_group_num",
    "embedding_dim": "embedding_size",
    "hidden_dim": "hidden_size",
    "intermediate_dim": "intermediate_size",
    "max_sequence_length": "max_position_embeddings",
    "num_segments": "type_vocab_size",
}
_MODULES = {
    "AlbertBackbone": "keras_nlp.src.models.albert.albert_backbone",
    "AlbertMaskedLM": "keras_nlp.src.models.albert.albert_masked_lm",
    "AlbertMaskedLMPreprocessor": "keras_nlp.src.models.albert.albert_masked_lm_preprocessor",
    "AlbertTokenizer": "keras_nlp.src.models.albert.albert_tokenizer",
}
#: Keys of a serialised object; the last two stand in older presets.
_OBJECT_KEYS = {"module", "class_name", "config", "registered_name", "assets", "weights"}
_NOT_SIZES = {"dropout", "name", "trainable", "dtype"}
_MOST_BYTES = 2**20


def config_of(arguments):
    """Returns the AlbertConfig of a backbone's arguments (dict of name -> value)."""
    sizes = {ours: arguments[theirs] for theirs, ours in ARGUMENTS.items()}
    dropout = arguments["dropout"]
    return AlbertConfig(
        hidden_act="gelu",
        hidden_dropout_prob=dropout,
        attention_probs_dropout_prob=dropout,
        **sizes,
    )


def arguments_of(config):
    """Returns the backbone's arguments (dict of name -> value).

    Args:
        config: AlbertConfig.

    Raises:
        InputError: If the backbone cannot express it: another activation than "gelu", other
            sharing than "all", two different dropouts, or groups of unequal depth.
    """
    dropouts = (config.hidden_dropout_prob, config.attention_probs_dropout_prob)
    rules = (
        ("sharing", config.sharing == "all", 'should be "all"', config.sharing),
        ("hidden_act", config.hidden_act == "gelu", 'should be "gelu"', config.hidden_act),
        (
            "hidden_dropout_prob",
            dropouts[0] == dropouts[1],
            "should equal `attention_probs_dropout_prob`",
            dropouts,
        ),
        (
            "num_hidden_layers",
            config.num_hidden_layers % config.num_hidden_groups == 0,
            "should be a multiple of `num_hidden_groups`",
            (config.num_hidden_layers, config.num_hidden_groups),
        ),
    )
    problems = [
        f"`{field}` {says}. Received: {received!r}."
        for field, holds, says, received in rules
        if not holds
    ]
    if problems:
        raise InputError(f"KerasNLP's AlbertBackbone cannot express this: {' '.join(problems)}")
    arguments = {theirs: getattr(config, ours) for theirs, ours in ARGUMENTS.items()}
    return arguments | {"dropout": config.hidden_dropout_prob}


def read_json(path):
    """Reads a JSON object of at most one MiB: dict; InputError if it is none."""
    try:
        with open(path, "rb") as file:
            text = file.read(_MOST_BYTES + 1)
        values = json.loads(text) if len(text) <= _MOST_BYTES else None
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"`{path}` should be a readable JSON file. Received: {error}.") from error
    if not isinstance(values, dict):
        raise InputError(f"`{path}` should hold a JSON object of at most one MiB.")
    return values


def settings_of(values, class_name, place):
    """Returns the settings (dict) of a serialised object of exactly one class.

    Args:
        values: object. What the JSON says.
        class_name: str. The class that is wanted.
        place: str. Where it stands, for messages.

    Raises:
        InputError: If it names another class, has unknown keys or no settings.
    """
    received = values if isinstance(values, dict) else {}
    wanted = {"class_name": class_name, "registered_name": f"keras_nlp>{class_name}"}
    found = {key: received.get(key) for key in wanted}
    if found != wanted or not str(received.get("module")).startswith("keras_nlp."):
        raise InputError(
            f"`{place}` should describe KerasNLP's {class_name}. Received: "
            f"{[received.get('module'), *found.values()]}."
        )
    unknown = sorted(set(received) - _OBJECT_KEYS)
    if unknown or not isinstance(received.get("config"), dict):
        raise InputError(f"`{place}` should hold `config`. Received keys: {sorted(received)}.")
    return received["config"]


def read_backbone(values, place):
    """Returns the AlbertConfig of a serialised AlbertBackbone.

    Args:
        values: object. What the JSON says.
        place: str. Where it stands, for messages.

    Raises:
        InputError: If it is something else, a key is missing or unknown, or a value is not valid.
    """
    settings = settings_of(values, "AlbertBackbone", place)
    wanted = set(ARGUMENTS) | {"dropout"}
    missing, unknown = wanted - set(settings), set(settings) - wanted - _NOT_SIZES
    if missing or unknown:
        raise InputError(
            f"`{place}` should have the arguments of AlbertBackbone. "
            f"Missing: {sorted(missing)}; not known: {sorted(unknown)}."
        )
    for name in ARGUMENTS:
        if type(settings[name]) is not int:
            raise InputError(
                f"`{name}` in `{place}` should be an integer. Received: {settings[name]!r}."
            )
    config = config_of(settings)
    arguments_of(config)  # groups of unequal depth
    return config


def serialized(class_name, settings):
    """Returns what KerasNLP writes of an object (dict of JSON values)."""
    return {
        "module": _MODULES[class_name],
        "class_name": class_name,
        "config": settings,
        "registered_name": f"keras_nlp>{class_name}",
    }
