"""A training for similarity learns, resumes, is scored beside its baselines, and is exported."""

import numpy as np
import pytest

from albert_keras import Predictor, embed, export
from albert_keras.runs.run import Run
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.finetuned import find_run, task_of
from albert_keras.tasks.results import lines

TRAINING = {
    "steps": 30,
    "batch_size": 16,
    "evaluate_every": 15,
    "checkpoint_every": 15,
    "report_every": 10,
    "precision": "float32",
    "peak_tflops": 1.0,
}


def write_pairs(path, corpus, count, seed):
    """Writes a table of pairs, similar if they begin alike, however they end; returns the path."""
    rng = np.random.default_rng(seed)
    lines = ["a\tb\tscore"]
    for _ in range(count):
        first, second = rng.choice(corpus, 2)
        is_similar = rng.random() < 0.5
        if is_similar:
            second = " ".join(first.split()[:5] + second.split()[-3:])
        lines.append(f"{first}\t{second}\t{4.5 if is_similar else 0.5}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def pairs(tiny_corpus, tmp_path_factory):
    """Returns the table of 60 development pairs."""
    return write_pairs(tmp_path_factory.mktemp("pairs") / "dev.tsv", tiny_corpus, 60, seed=1)


@pytest.fixture(scope="module")
def config(pairs, tiny_corpus):
    """Returns settings that train on 80 pairs with scores."""
    train = write_pairs(pairs.with_name("train.tsv"), tiny_corpus, 80, seed=0)
    table = {"train": str(train), "dev": str(pairs), "text": "a", "pair": "b", "label": "score"}
    return FinetuneConfig(
        task={"name": "similarity", "max_seq_length": 32} | table,
        training=TRAINING,
        optimizer={"lr": 3e-3, "warmup_steps": 3},
    )


@pytest.fixture(scope="module")
def result(tiny_run, config, tmp_path_factory):
    """Returns the FinetuneResult of a training on pairs with scores."""
    return finetune(tiny_run, tmp_path_factory.mktemp("tuned") / "similar", config)


@pytest.mark.slow
def test_it_surpasses_the_mean_vector_before_the_training(result):
    [seed] = result.seeds
    assert result.metric == "spearman" and result.random is None and result.majority is None
    assert set(result.baselines) == {"mean vector before training", "TF-IDF cosine"}
    before = result.baselines["mean vector before training"]["dev"]["spearman"]
    assert seed.scores["dev"]["spearman"] > before + 0.1
    shown = lines(result)
    assert any("mean vector before training" in line for line in shown)
    assert any("TF-IDF cosine" in line for line in shown)


def test_the_baseline_is_the_mean_vector_of_the_initial_weights(result, tiny_run, pairs):
    rows = [line.split("\t") for line in pairs.read_text().splitlines()[1:]]
    first, second = (
        embed(tiny_run, [row[side] for row in rows], normalize=True).vectors for side in (0, 1)
    )
    task = task_of(Run.open(find_run(result.path)))
    examples = task.read("dev")
    answers = task.answers(examples, None, {"cosine": (first * second).sum(axis=1)})
    expected = task.scores(examples, answers)["spearman"]
    found = result.baselines["mean vector before training"]["dev"]["spearman"]
    assert found == pytest.approx(expected, abs=1e-3)


@pytest.mark.slow
def test_an_export_embeds_texts_and_scores_pairs_as_the_run(result, tmp_path):
    exported = export(result.path, tmp_path / "similar")
    assert {"embed", "text_pair", "regress", "encode"} <= set(exported.signatures)
    texts = ["The old ferry left the harbour.", "Rain had washed the chalk marks.", "goat"]
    predictor = Predictor(tmp_path / "similar")
    vectors = predictor.ask("embed", text=texts)["embedding"]
    expected = embed(result.path, texts, normalize=True)
    assert expected.settings.pooling == "mean" and expected.settings.max_seq_length == 32
    np.testing.assert_allclose(vectors, expected.vectors, atol=1e-5)
    found = predictor.ask("text_pair", first=texts, second=texts[::-1])["score"]
    np.testing.assert_allclose(found, (vectors * vectors[::-1]).sum(axis=1), atol=1e-5)
    by_tab = predictor.ask("serving_default", text=[f"{texts[0]}\t{texts[2]}"])["score"]
    np.testing.assert_allclose(by_tab, found[:1], atol=1e-5)
    inputs = [{"text": texts[0], "pair": texts[2]}]
    assert predictor.answer(inputs)[0].score == pytest.approx(float(found[0]), abs=1e-5)
