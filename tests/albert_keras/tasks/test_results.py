"""Results are read as they were saved; the best seed and the spread are over all seeds."""

import json

import pytest

from albert_keras.tasks.metrics import Interval
from albert_keras.tasks.results import (
    BagOfWords,
    FinetuneResult,
    SeedResult,
    as_json,
    baseline_scores,
    best_seed,
    first_split,
    read_results,
    save_results,
)


def seed_of(seed, accuracy, **changes):
    scores = {"dev": {"accuracy": accuracy, "total": 872}, "extra": {"accuracy": 1 - accuracy}}
    values = {"best_step": 600, "last_step": 2106, "interval": Interval(accuracy - 0.1, 1.0)}
    return SeedResult(seed, f"runs/sst-2/seed-{seed}", scores=scores, **values | changes)


@pytest.fixture
def result():
    seeds = (
        seed_of(1, 0.75),
        seed_of(2, 0.875, stopped_early=True, seconds=12.5),
        seed_of(3, 0.5, collapse="all 872 answers are `1`"),
        seed_of(4, 0.875),
    )
    return FinetuneResult(
        path="runs/sst-2",
        task="sst-2",
        metric="accuracy",
        seeds=seeds,
        majority={"dev": {"accuracy": 0.5}, "extra": {"accuracy": 0.5}},
        random=seed_of(1, 0.625),
        tuned={"null_threshold": -1.5},
        origin="runs/books at step 6000",
        loaded=("encoder: 25 weights from the checkpoint", "head: new, ändert sich"),
        files={"errors": "errors.tsv", "predictions": ["a.tsv", "b.tsv"]},
        examples={"dev": 872, "extra": 10},
        bag_of_words=BagOfWords({"dev": {"accuracy": 0.78}}, Interval(0.7, 0.8), 4000, 0.5),
        positive_class="1",
    )


def test_results_are_read_as_they_were_saved(tmp_path, result):
    path = save_results(tmp_path, result)
    assert path == tmp_path / "results.json"
    read = read_results(tmp_path)
    assert read == result
    assert isinstance(read.seeds[0].interval, Interval)
    assert type(read.seeds[0].scores["dev"]["total"]) is int
    assert list(tmp_path.iterdir()) == [path]
    values = as_json(result)  # of an older version
    del values["bag_of_words"], values["positive_class"]
    path.write_text(json.dumps(values))
    assert read_results(tmp_path) == result._replace(bag_of_words=None, positive_class=None)


def test_the_best_seed_is_that_of_the_first_split(result):
    assert first_split(result) == "dev"
    assert best_seed(result).seed == 2  # as good as seed 4, and before it
    assert baseline_scores(result) == {"majority": 0.5, "bag_of_words": 0.78, "random": 0.625}
