"""Fine-tuning that encodes the texts of a pair separately, from settings to answers and exports."""

import pytest

from albert_keras.conversion.convert import convert
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.publish import export
from albert_keras.tasks.finetuned import open_finetuned
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.predict import predict_task
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.tasks.task_data import with_pair_encoding, with_pooling
from data_pipeline.errors import InputError
from tests.albert_keras.tasks.conftest import SHAPE

#: A task with so many labels that texts are read by their mean.
MANY = {"name": "classification", "text": "a", "label": "c"}
MANY |= {"labels": [str(number) for number in range(20)]}


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


@pytest.mark.parametrize(
    "settings, narrow, wide",
    [
        (MANY, "mean", "pooler"),
        (MANY | {"pooling": "pooler"}, "pooler", "pooler"),
        (MANY | {"labels": MANY["labels"][1:]}, "pooler", "pooler"),
        (MANY | {"name": "pair", "pair": "b"}, "pooler", "pooler"),
        ({"name": "sts-b"}, "pooler", "pooler"),
        ({"name": "similarity", "text": "a", "pair": "b"}, "mean", "mean"),
        ({"name": "tagging"}, "auto", "auto"),
    ],
    ids=str,
)
def test_narrow_models_read_the_mean_over_the_tokens_for_many_labels(settings, narrow, wide):
    config = TaskConfig(**settings)
    for size, sharing, chosen in ((511, "all", narrow), (511, "none", wide), (512, "all", wide)):
        shape = SHAPE.replace(hidden_size=size, num_attention_heads=1, sharing=sharing)
        assert with_pooling(config, build_task(config), shape).pooling == chosen


def test_a_pooling_must_be_one_of_the_task():
    for name, pooling in (("tagging", "mean"), ("sst-2", "cls")):
        with pytest.raises(InputError, match="pooling"):
            build_task(TaskConfig(name=name, pooling=pooling))


def test_a_head_on_the_mean_answers_and_is_in_no_other_format(
    tune, untrained, toy_config, tmp_path
):
    config = toy_config.replace(task=toy_config.task.replace(pooling="mean"))
    tuned = tune(tmp_path / "out", config).path
    assert open_finetuned(tuned).pooling == "mean"
    [answer] = predict_task(tuned, ["a window"]).answers
    [found] = Predictor(export(tuned, tmp_path / "exported").path).answer(["a window"])
    assert found.probability == pytest.approx(answer.probability, abs=1e-5)
    with pytest.raises(InputError, match="must be a run whose head reads the pooled output"):
        convert(tuned, tmp_path / "converted", to="hugging-face")
