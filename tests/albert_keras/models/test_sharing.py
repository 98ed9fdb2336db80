import pytest

from albert_keras.config import AlbertConfig
from albert_keras.models.sharing import layer_plan


def plan_of(layers, **changes):
    return layer_plan(AlbertConfig(num_hidden_layers=layers, **changes))


@pytest.mark.parametrize(
    "sharing, attention_sets, feed_forward_sets",
    [("all", 1, 1), ("attention", 1, 12), ("ffn", 12, 1), ("none", 12, 12)],
)
def test_sharing_decides_how_many_parameter_sets_exist(sharing, attention_sets, feed_forward_sets):
    plan = plan_of(12, sharing=sharing)
    assert len(plan) == 12
    assert len({use.attention for use in plan}) == attention_sets
    assert len({use.feed_forward for use in plan}) == feed_forward_sets


def test_groups_and_inner_blocks_run_in_order():
    blocks = [(0, 0), (0, 1), (0, 0), (0, 1), (1, 0), (1, 1), (1, 0), (1, 1)]
    assert plan_of(4, num_hidden_groups=2, inner_group_num=2) == [(each, each) for each in blocks]


def test_groups_still_count_where_only_attention_is_shared():
    plan = plan_of(4, sharing="attention", num_hidden_groups=2)
    assert [use.attention.group for use in plan] == [0, 0, 1, 1]
    assert [use.feed_forward.group for use in plan] == [0, 1, 2, 3]


@pytest.mark.parametrize("layers", [4, 22, 49])
def test_as_many_groups_as_layers_share_nothing(layers):
    assert plan_of(layers, num_hidden_groups=layers) == plan_of(layers, sharing="none")
