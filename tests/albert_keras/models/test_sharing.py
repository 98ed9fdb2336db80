import pytest

from albert_keras.models.sharing import layer_plan


@pytest.mark.parametrize(
    "sharing, attention_sets, feed_forward_sets",
    [("all", 1, 1), ("attention", 1, 12), ("ffn", 12, 1), ("none", 12, 12)],
)
def test_sharing_decides_how_many_parameter_sets_exist(sharing, attention_sets, feed_forward_sets):
    plan = layer_plan(num_hidden_layers=12, sharing=sharing)
    assert len(plan) == 12
    assert len({use.attention for use in plan}) == attention_sets
    assert len({use.feed_forward for use in plan}) == feed_forward_sets


def test_groups_and_inner_blocks_run_in_order():
    plan = layer_plan(4, num_hidden_groups=2, inner_group_num=2)
    blocks = [(0, 0), (0, 1), (0, 0), (0, 1), (1, 0), (1, 1), (1, 0), (1, 1)]
    assert plan == tuple((block, block) for block in blocks)


def test_groups_still_count_where_only_attention_is_shared():
    plan = layer_plan(4, "attention", num_hidden_groups=2)
    assert [use.attention.group for use in plan] == [0, 0, 1, 1]
    assert [use.feed_forward.group for use in plan] == [0, 1, 2, 3]


@pytest.mark.parametrize("layers", [12, 22, 24, 49])
def test_as_many_groups_as_layers_share_nothing(layers):
    plan = layer_plan(layers, num_hidden_groups=layers)
    assert plan == layer_plan(layers, "none")


def test_unknown_sharing_is_refused():
    with pytest.raises(ValueError, match="feed_forward"):
        layer_plan(2, "feed_forward")
