"""A training for similarity learns, is scored beside its baselines, and is exported."""

import numpy as np
import pytest

from albert_keras import embed
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.finetuned import open_run, task_of
from albert_keras.tasks.results import lines


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
    return str(path)


@pytest.fixture(scope="module")
def config(tiny_corpus, tmp_path_factory):
    """Returns settings that train on 80 pairs with scores, and score 60 others."""
    folder = tmp_path_factory.mktemp("pairs")
    table = {"text": "a", "pair": "b", "label": "score", "max_seq_length": 32}
    for seed, (name, count) in enumerate({"train": 80, "dev": 60}.items()):
        table[name] = write_pairs(folder / f"{name}.tsv", tiny_corpus, count, seed)
    training = {"steps": 30, "batch_size": 16, "evaluate_every": 15, "precision": "float32"}
    optimizer = {"lr": 3e-3, "warmup_steps": 3}
    return FinetuneConfig(
        task={"name": "similarity"} | table, training=training, optimizer=optimizer
    )


@pytest.fixture(scope="module")
def result(tiny_run, config, end_at_once, tmp_path_factory):
    """Returns the FinetuneResult of a training that ended at once."""
    with end_at_once():
        return finetune(tiny_run, tmp_path_factory.mktemp("tuned") / "similar", config)


@pytest.mark.slow
def test_it_surpasses_the_mean_vector_before_the_training(tiny_run, config, tmp_path):
    result = finetune(tiny_run, tmp_path / "similar", config)
    [seed] = result.seeds
    before = result.baselines["mean vector before training"]["dev"]["spearman"]
    assert seed.scores["dev"]["spearman"] > before + 0.1


def test_the_baselines_are_words_and_the_mean_vector_of_the_initial_weights(
    result, tiny_run, config
):
    assert result.metric == "spearman"
    assert set(result.baselines) == {"mean vector before training", "TF-IDF cosine"}
    assert all(any(name in line for line in lines(result)) for name in result.baselines)
    with open(config.task.dev) as file:
        first, second, _ = zip(*(line.split("\t") for line in file.readlines()[1:]), strict=True)
    first, second = (embed(tiny_run, list(texts)).vectors for texts in (first, second))
    task = task_of(open_run(result.path))
    examples = task.read("dev")
    answers = task.read_out(examples, (first * second).sum(axis=1, keepdims=True))
    expected = task.scores(examples, answers)["spearman"]
    found = result.baselines["mean vector before training"]["dev"]["spearman"]
    assert found == pytest.approx(expected, abs=1e-3)
