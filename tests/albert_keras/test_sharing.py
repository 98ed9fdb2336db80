import pytest

from albert_keras.config import AlbertConfig
from albert_keras.sharing import layer_plan


def plan_of(layers, **changes):
    return layer_plan(AlbertConfig(num_hidden_layers=layers, **changes))


@pytest.mark.parametrize("layers", [4, 22, 49])
def test_as_many_groups_as_layers_share_nothing(layers):
    assert plan_of(layers, num_hidden_groups=layers) == plan_of(layers, sharing="none")
