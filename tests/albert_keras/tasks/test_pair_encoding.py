"""Fine-tuning that encodes the texts of a pair separately, from settings to answers and exports."""

import pytest

from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.tasks.task_data import with_pair_encoding
from data_pipeline.errors import InputError


@pytest.mark.parametrize("name", ["sst-2", "race", "tagging"])
def test_only_classes_and_scores_of_pairs_can_be_compared(name):
    with pytest.raises(InputError, match="`pair_encoding` separate requires pairs of texts"):
        build_task(TaskConfig(name=name, pair_encoding="separate"))


@pytest.mark.parametrize(
    "settings, chosen",
    [
        ({"name": "sts-b"}, "separate"),
        ({"name": "mrpc", "pair_encoding": "joint"}, "joint"),
        ({"name": "sst-2"}, "auto"),
        ({"name": "similarity", "text": "a", "pair": "b"}, "auto"),
        ({"name": "pair", "text": "a", "pair": "b"}, "separate"),
    ],
    ids=str,
)
def test_narrow_models_encode_the_texts_of_pairs_separately(settings, chosen, caplog):
    with caplog.at_level("INFO"):
        assert with_pair_encoding(TaskConfig(**settings), 256).pair_encoding == chosen
    assert ("pair encoding: separate, by the rule for models of its size" in caplog.text) == (
        chosen == "separate"
    )
    wide = with_pair_encoding(TaskConfig(**settings), 768).pair_encoding
    assert wide == ("auto" if chosen == "auto" else "joint")
