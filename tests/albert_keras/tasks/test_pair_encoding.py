"""Fine-tuning that encodes the texts of a pair separately, from settings to answers and exports."""

import json

import numpy as np
import pytest

from albert_keras.serving.predictor import Predictor
from albert_keras.serving.publish import export
from albert_keras.tasks.evaluate import evaluate_task
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.predict import predict_task
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.tasks.task_data import with_pair_encoding
from data_pipeline.errors import InputError

STEPS = 60


def write_pairs(path, corpus, count, seed):
    """Writes a table of pairs: "same" if the second text is a part of the first one."""
    rng = np.random.default_rng(seed)
    lines = ["a\tb\tlabel"]
    for _ in range(count):
        first, second = (" ".join(text.split()[:8]) for text in rng.choice(corpus, 2))
        is_same = rng.random() < 0.5
        if is_same:
            second = " ".join(first.split()[2:])
        lines.append(f"{first}\t{second}\t{'same' if is_same else 'other'}")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def config(tiny_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("pairs")
    return FinetuneConfig(
        task={
            "name": "pair",
            "train": write_pairs(folder / "train.tsv", tiny_corpus, 200, seed=0),
            "dev": write_pairs(folder / "dev.tsv", tiny_corpus, 60, seed=1),
            **{"text": "a", "pair": "b", "label": "label", "max_seq_length": 48},
            "pair_encoding": "separate",
        },
        training={
            **{"steps": STEPS, "batch_size": 16, "evaluate_every": STEPS // 2},
            **{"checkpoint_every": STEPS // 2, "precision": "float32", "peak_tflops": 1.0},
        },
        optimizer={"lr": 3e-3, "warmup_steps": 6},
    )


@pytest.fixture(scope="module")
def tuned(tiny_run, config, tmp_path_factory):
    """Returns the folder of a fine-tuning on pairs of texts."""
    out = tmp_path_factory.mktemp("tuned") / "out"
    finetune(tiny_run, out, config, random_baseline=False, bag_of_words=False)
    return out


@pytest.mark.slow
def test_it_learns_to_compare(tuned):
    result = json.loads((tuned / "results.json").read_text())
    score = result["seeds"][0]["scores"]["dev"]["accuracy"]
    assert score >= 0.8
    assert evaluate_task(tuned, bag_of_words=False).scores["accuracy"] == score


@pytest.mark.slow
def test_an_export_answers_as_the_run_and_encodes_one_text(tuned, tmp_path):
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


@pytest.mark.parametrize(
    "settings",
    [
        {"name": "sst-2"},
        {"name": "race"},
        {"name": "similarity"},
        {"name": "classification", "text": "a"},
    ],
    ids=lambda settings: settings["name"],
)
def test_only_classes_and_scores_of_pairs_can_be_compared(settings):
    with pytest.raises(InputError, match="`pair_encoding` separate requires pairs of texts"):
        build_task(TaskConfig(**settings, pair_encoding="separate"))


@pytest.mark.parametrize(
    "settings, chosen",
    [
        ({"name": "mrpc"}, "separate"),
        ({"name": "sts-b"}, "separate"),
        ({"name": "mrpc", "pair_encoding": "joint"}, "joint"),
        ({"name": "sst-2"}, "auto"),
        ({"name": "race"}, "auto"),
        ({"name": "similarity"}, "auto"),
        ({"name": "pair", "text": "a", "pair": "b"}, "separate"),
        ({"name": "regression", "text": "a", "pair": "b", "label": ("x", "y")}, "separate"),
    ],
    ids=str,
)
def test_narrow_models_encode_the_texts_of_pairs_separately(settings, chosen, caplog):
    with caplog.at_level("INFO"):
        assert with_pair_encoding(TaskConfig(**settings), 256).pair_encoding == chosen
    assert ("pair encoding: separate" in caplog.text) == (chosen == "separate")
    wide = with_pair_encoding(TaskConfig(**settings), 768).pair_encoding
    assert wide == ("auto" if chosen == "auto" else "joint")
