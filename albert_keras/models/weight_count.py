"""What a model is: its family and its weights, counted from its shape, without TensorFlow."""

from collections import Counter
from typing import NamedTuple

from albert_keras.models.sharing import layer_plan


class WeightCount(NamedTuple):
    """Number of weights of a model, by part."""

    embeddings: int  # tables, their normalisation, the projection to the encoder's size
    blocks: int  # all attention and feed-forward blocks; shared ones count once
    pooler: int
    masked_lm_head: int  # without the output table, which is the embedding table
    sentence_head: int

    @property
    def total(self):
        """int. Number of all weights."""
        return sum(self)


def count_weights(config, masked_lm_head=True, sentence_head=True):
    """Returns the WeightCount of a model.

        embeddings   (V + positions + offset + segments)·E + 2·E, and E·H + H if E != H
        attention    4·(H·H + H) + 2·H       for each set of weights
        feed-forward 2·H·I + I + H + 2·H     for each set of weights
        pooler       H·H + H; if it is on demand, only with the sentence head
        masked LM    H·E + E + 2·E + V
        sentences    2·H + 2

    V = `vocab_size`, E = `embedding_size`, H = `hidden_size`, I = `intermediate_size` of the
    AlbertConfig. A classifier of two classes in fine-tuning is as large as the sentence head.

    Source:
        The variables of google-research/albert, `modeling.py` and `run_pretraining.py`.
    """
    size, narrow = config.hidden_size, config.embedding_size
    rows = config.vocab_size + config.position_rows + config.type_vocab_size
    embeddings = rows * narrow + 2 * narrow
    if config.projects_embeddings:
        embeddings += narrow * size + size
    attention, feed_forward = block_uses(config)
    has_pooler = config.pooler == "always" or sentence_head
    return WeightCount(
        embeddings=embeddings,
        blocks=len(attention) * attention_weights(config)
        + len(feed_forward) * feed_forward_weights(config),
        pooler=size * size + size if has_pooler else 0,
        masked_lm_head=size * narrow + 3 * narrow + config.vocab_size if masked_lm_head else 0,
        sentence_head=2 * size + 2 if sentence_head else 0,
    )


def block_uses(config) -> tuple[Counter, Counter]:
    """Counts how often each attention and each feed-forward block runs in one pass, by name."""
    plan = layer_plan(config)
    return Counter(use.attention for use in plan), Counter(use.feed_forward for use in plan)


def attention_weights(config) -> int:
    """Returns the number of weights of one attention block, its normalisation included."""
    size = config.hidden_size
    return 4 * (size * size + size) + 2 * size


def feed_forward_weights(config) -> int:
    """Returns the number of weights of one feed-forward block, normalisation included."""
    size, inner_size = config.hidden_size, config.intermediate_size
    return 2 * size * inner_size + inner_size + 3 * size


def family_name(config) -> str:
    """Returns what people call a model: "ALBERT" if its layers share weights, otherwise "RoBERTa",
    "DistilBERT" or "BERT".
    """
    if config.sharing != "none":
        return "ALBERT"
    if config.position_offset:
        return "RoBERTa"
    return "DistilBERT" if config.type_vocab_size == 0 else "BERT"


def model_line(config, num_parameters: int | None = None) -> str:
    """Describes a model in one line for logs, cards and lists.

    Args:
        config: AlbertConfig.
        num_parameters: int or None. Number of weights that the model has; None counts those of a
            model for pre-training.

    Returns:
        str. Such as "ALBERT, 6 layers that share one set of weights, 4.4 M parameters" or
        "BERT, 12 layers, each with its own weights, 110.1 M parameters".
    """
    attention, feed_forward = map(len, block_uses(config))
    depth = config.num_hidden_layers * config.inner_group_num
    layers = f"{depth:,} layer{'s' if depth > 1 else ''}"
    if config.sharing == "none":
        layers += ", each with its own weights" if depth > 1 else ""
    elif config.sharing != "all":
        shared = {"attention": "attention", "ffn": "feed-forward"}[config.sharing]
        layers += f" that share their {shared} weights"
    elif depth > 1:
        sets = max(attention, feed_forward)
        layers += f" that share {f'{sets:,} sets' if sets > 1 else 'one set'} of weights"
    if config.position_embedding == "rotary":
        layers += ", rotary positions"
    total = count_weights(config).total if num_parameters is None else num_parameters
    return f"{family_name(config)}, {layers}, {total / 1e6:,.1f} M parameters"
