"""The keys of `config.json` in transformers, by kind of model: data for `hugging_face_config`."""

#: Defaults of transformers for missing keys, under our names.
_BERT = {
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
DEFAULTS = {
    "albert": _BERT
    | {
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
    },
    "bert": _BERT,
    "roberta": _BERT | {"vocab_size": 50_265, "layer_norm_epsilon": 1e-12},
    "roformer": _BERT
    | {
        "vocab_size": 50_000,
        "embedding_size": None,  # as wide as the layers
        "max_position_embeddings": 1536,
        "layer_norm_epsilon": 1e-12,
    },
    "distilbert": {name: value for name, value in _BERT.items() if name != "type_vocab_size"}
    | {"num_hidden_layers": 6},
}
#: Keys that have another name there than here.
KEYS = {
    "roberta": {"layer_norm_epsilon": "layer_norm_eps"},
    "roformer": {"layer_norm_epsilon": "layer_norm_eps"},
    "distilbert": {
        "hidden_size": "dim",
        "num_hidden_layers": "n_layers",
        "num_attention_heads": "n_heads",
        "intermediate_size": "hidden_dim",
        "hidden_dropout_prob": "dropout",
        "attention_probs_dropout_prob": "attention_dropout",
        "hidden_act": "activation",
    },
}
#: What all models of a kind have, and their files do not contain.
FIXED = {
    "roberta": {"pooler": "on_demand", "pooler_activation": "tanh"},
    "roformer": {"position_embedding": "rotary", "pooler": "on_demand"},
    "distilbert": {
        "type_vocab_size": 0,
        "position_embedding": "absolute",
        "position_offset": 0,
        "layer_norm_epsilon": 1e-12,
        "pooler": "on_demand",
        "pooler_activation": "relu",
    },
}
DEFAULT_ACTIVATION = {"albert": "gelu_new"}
#: The id of padding, from which RoBERTa counts positions, and its default.
PAD, PAD_ID = "pad_token_id", 1
#: Their activation -> ours. Of several equal ones the first is written.
ACTIVATIONS = {
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
ACTIVATION, NORM = "hidden_act", "layer_norm_eps"
#: Key -> the values it may have, if it is present: anything else is a model we cannot express.
ALLOWED = {
    "position_embedding_type": ("absolute", None),
    "rotary_value": (False, None),  # whether RoFormer rotates values, too
    "is_decoder": (False, None),
    "add_cross_attention": (False, None),
    "pruned_heads": ({}, None),
    "auto_map": ({}, None),  # code in the folder
}
