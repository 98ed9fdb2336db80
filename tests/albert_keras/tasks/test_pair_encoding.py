"""Fine-tuning that encodes the texts of a pair separately, from settings to answers and exports."""

import numpy as np
import pytest

from albert_keras.serving.predictor import Predictor
from albert_keras.serving.publish import export
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.predict import predict_task
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.tasks.task_data import with_pair_encoding
from data_pipeline.errors import InputError


@pytest.mark.slow
def test_an_export_answers_as_the_run_and_encodes_one_text(
    tune, tiny_run, tiny_corpus, end_at_once, tmp_path
):
    pairs = zip(tiny_corpus[:20], tiny_corpus[1:], strict=False)
    rows = ["\t".join((*pair, "ab"[number % 2])) for number, pair in enumerate(pairs)]
    (tmp_path / "train.tsv").write_text("\n".join(["a\tb\tlabel", *rows]) + "\n")
    words = {"task": "pair", "train": tmp_path / "train.tsv", "pair_encoding": "separate"}
    words |= {"text": "a", "pair": "b", "label": "label", "max_seq_length": 32, "steps": 2}
    words |= {"random_baseline": False, "precision": "float32"}
    with end_at_once():
        tuned = tune(tmp_path / "out", None, tiny_run, **words).path
    pairs = [
        {"text": "The ferry left Bergen.", "pair": "It left Bergen at six."},
        {"text": "Fog.", "pair": ""},
    ]
    exported = Predictor(export(tuned, tmp_path / "exported").path)
    for answer, found in zip(
        predict_task(tuned, pairs).answers, exported.answer(pairs), strict=True
    ):
        assert found.label == answer.label
        assert found.probability == pytest.approx(answer.probability, abs=1e-5)
    with_tab, with_space = exported.encode(["The ferry\tleft.", "The ferry left."])
    np.testing.assert_allclose(with_tab, with_space, atol=1e-6)


@pytest.mark.parametrize("name", ["sst-2", "race", "similarity"])
def test_only_classes_and_scores_of_pairs_can_be_compared(name):
    with pytest.raises(InputError, match="`pair_encoding` separate requires pairs of texts"):
        build_task(TaskConfig(name=name, pair_encoding="separate"))


@pytest.mark.parametrize(
    "settings, chosen",
    [
        ({"name": "sts-b"}, "separate"),
        ({"name": "mrpc", "pair_encoding": "joint"}, "joint"),
        ({"name": "sst-2"}, "auto"),
        ({"name": "similarity"}, "auto"),
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
