"""Parameter sharing as data: which weights run at which depth. Plain Python."""

from typing import NamedTuple

from albert_keras.config import AlbertConfig


class BlockName(NamedTuple):
    """The block part of the names of weights: `group_G/inner_group_K`.

    Attributes:
        group: int. Group of depths that share it, or the depth itself where nothing is shared.
        inner: int. Position among the blocks run at one depth.
    """

    group: int
    inner: int

    @property
    def scope(self):
        """str. Part of the name of a weight, as in the reference."""
        return f"group_{self.group}/inner_group_{self.inner}"


class BlockUse(NamedTuple):
    """The two blocks that run at one depth. Equal names mean the same weights."""

    attention: BlockName
    feed_forward: BlockName


def layer_plan(config: AlbertConfig, num_hidden_layers: int | None = None) -> list[BlockUse]:
    """Returns which blocks run at each depth, list of L * K `BlockUse` in their order.

    Args:
        config: AlbertConfig.
        num_hidden_layers: int. Depth of the encoder, L; None takes the depth in `config`.

    Source:
        ALBERT, section 3.1 and table 4 (https://arxiv.org/abs/1909.11942); groups:
        `transformer_model` in google-research/albert, `modeling.py`.
    """
    layers = config.num_hidden_layers if num_hidden_layers is None else num_hidden_layers
    plan = []
    for depth in range(layers):
        # In integers: google-research/albert computes int(depth / L * groups), which puts depth
        # 15 of 22 into group 14 of 22. No released size is affected.
        group = depth * config.num_hidden_groups // layers
        attention_group = group if config.sharing in ("all", "attention") else depth
        feed_forward_group = group if config.sharing in ("all", "ffn") else depth
        for inner in range(config.inner_group_num):
            plan.append(
                BlockUse(BlockName(attention_group, inner), BlockName(feed_forward_group, inner))
            )
    return plan
