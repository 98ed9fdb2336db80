"""Parameter sharing as data: which weights run at which depth. Plain Python."""

from typing import NamedTuple


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


def layer_plan(
    num_hidden_layers: int,
    sharing: str = "all",
    num_hidden_groups: int = 1,
    inner_group_num: int = 1,
) -> tuple[BlockUse, ...]:
    """Returns which blocks run at each depth.

    Args:
        num_hidden_layers: int. Depth of the encoder, L.
        sharing: str. What the depths of one group share: "all", "attention", "ffn" or "none".
        num_hidden_groups: int. Neighbouring depths are split into this many groups.
        inner_group_num: int. Blocks run one after the other at each depth, K.

    Returns:
        tuple of L * K `BlockUse`, in the order in which they run.

    Raises:
        ValueError: If `sharing` is not one of the four.

    Source:
        ALBERT, section 3.1 and table 4 (https://arxiv.org/abs/1909.11942); groups:
        `transformer_model` in google-research/albert, `modeling.py`.
    """
    if sharing not in ("all", "attention", "ffn", "none"):
        raise ValueError(
            '`sharing` must be one of "all", "attention", "ffn", "none". '
            f"Received: sharing={sharing!r}."
        )
    plan = []
    for depth in range(num_hidden_layers):
        # In integers: google-research/albert computes int(depth / L * groups), which puts depth
        # 15 of 22 into group 14 of 22. No released size is affected.
        group = depth * num_hidden_groups // num_hidden_layers
        attention_group = group if sharing in ("all", "attention") else depth
        feed_forward_group = group if sharing in ("all", "ffn") else depth
        for inner in range(inner_group_num):
            plan.append(
                BlockUse(BlockName(attention_group, inner), BlockName(feed_forward_group, inner))
            )
    return tuple(plan)
