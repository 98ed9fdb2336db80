"""Results are read as they were saved; their lines say how good it is, and what to doubt."""

import pytest

from albert_keras.formats.detection import best_run
from albert_keras.tasks.metrics import Interval
from albert_keras.tasks.results import (
    FinetuneResult,
    SeedResult,
    baseline_scores,
    best_seed,
    first_split,
    lines,
    read_results,
    save_results,
    verdict_of,
)
from data_pipeline.errors import InputError

WORDS, GUESS = "bag of words", "most frequent answer"


def seed_of(seed, score, half=0.025, **changes):
    scores = changes.pop("scores", {"dev": {"accuracy": score}})
    interval = Interval(score - half, score + half)
    leads = {
        GUESS: Interval(0.2, 0.4),
        WORDS: Interval(score - 0.812, score - 0.748),
    }
    values = {"best_step": 600, "last_step": 2106, "interval": interval, "leads": leads} | changes
    return SeedResult(seed, f"seed-{seed}", scores=scores, **values)


def result_of(*seeds, guess=0.509, words=0.78, **changes):
    found = {GUESS: guess, WORDS: words}
    values = {
        "baselines": {
            name: {"dev": {"accuracy": score}} for name, score in found.items() if score is not None
        },
        "examples": {"dev": 872},
    }
    return FinetuneResult("runs/x", "sst-2", "accuracy", seeds, **values | changes)


@pytest.fixture
def result():
    """Returns a result with two splits and everything that a result can have."""
    scores = [
        {"dev": {"accuracy": one, "total": 872}, "extra": {"accuracy": 1 - one}}
        for one in (0.75, 0.875, 0.5, 0.875)
    ]
    seeds = [seed_of(number, 0.5, scores=one) for number, one in enumerate(scores, 1)]
    seeds[1] = seeds[1]._replace(stopped_early=True, seconds=12.5)
    seeds[2] = seeds[2]._replace(collapse="all 872 answers are `1`")
    return result_of(
        *seeds,
        thresholds={"null_threshold": -1.5},
        origin="runs/books at step 6000",
        loaded=("encoder: 25 weights from the checkpoint", "head: new, ändert sich"),
        files={"errors": "errors.tsv", "predictions": ["a.tsv", "b.tsv"]},
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
    text = path.read_text()
    path.write_text(text.replace("0.875", "0.876", 1))
    with pytest.raises(InputError, match="is damaged or was edited"):
        read_results(tmp_path)
    with pytest.raises(InputError, match="is damaged or was edited"):
        best_run(tmp_path)


def test_the_best_seed_is_that_of_the_first_split(result):
    assert first_split(result) == "dev"
    assert best_seed(result).seed == 2  # as good as seed 4, and before it
    assert baseline_scores(result) == {GUESS: 0.509, WORDS: 0.78}


def warnings_of(result):
    return [line for line in lines(result) if line.startswith("warning: ")]


def test_a_label_without_examples_explains_its_score():
    absent = {"train": ["c"], "dev": [f"{number}" for number in range(10)]}
    train, dev = warnings_of(result_of(seed_of(1, 0.832), absent=absent))
    assert train == "warning: train has no example of `c`: scores of such labels are 0"
    assert "`7` and 2 more: scores" in dev


def test_a_seed_without_baselines_is_one_row_and_has_no_verdict():
    seed = seed_of(1, 0.832, last_step=900, stopped_early=True)
    assert lines(result_of(seed, baselines={})) == [
        "sst-2, dev: 872 examples",
        "                                              accuracy   95 % interval",
        "  this model, step 600 of 900, stopped early     0.832  [0.807, 0.857]",
    ]


def test_each_split_has_its_table():
    scores = {"dev_matched": {"accuracy": 0.8, "f1": 0.7}, "dev_mismatched": {"accuracy": 0.75}}
    baselines = {GUESS: {name: {"accuracy": 0.35} for name in scores}}
    examples = {"dev_matched": 9815, "dev_mismatched": 9832}
    seed = seed_of(1, 0.8, scores=scores, leads={GUESS: Interval(0.425, 0.475)})
    assert lines(result_of(seed, baselines=baselines, examples=examples)) == [
        "sst-2, dev_matched: 9,815 examples",
        "                                 accuracy   95 % interval  difference of the model",
        "  this model, step 600 of 2,106     0.800  [0.775, 0.825]",
        "  most frequent answer              0.350                  +0.450 [+0.425, +0.475]",
        "  also f1 0.700",
        "sst-2, dev_mismatched: 9,832 examples",
        "                                 accuracy  95 % interval  difference of the model",
        "  this model, step 600 of 2,106     0.750",
        "  most frequent answer              0.350                                  +0.400",
        "worth using: accuracy 0.800 versus 0.350 of the most frequent answer on 9,815 examples, "
        "difference +0.450 [+0.425, +0.475]",
    ]


def test_several_seeds_have_a_row_each_and_a_median():
    seeds = (
        seed_of(1, 0.832),
        seed_of(2, 0.821, best_step=1200, stopped_early=True),
        seed_of(10, 0.509, best_step=60, collapse="all 872 answers are `1`"),
    )
    _, _, first, second, third, median, *_, words, warning, verdict = lines(result_of(*seeds))
    assert first == f"  {'seed 1, step 600 of 2,106':46}    0.832  [0.807, 0.857]"
    assert second.startswith("  seed 2, step 1,200 of 2,106, stopped early ")
    assert third.startswith("  seed 10, step 60 of 2,106, collapsed ")
    assert median == "  this model, median (standard deviation 0.183)     0.821"
    assert words.endswith("0.780                  +0.041 [+0.009, +0.073]")
    assert warning == "warning: seed 10 collapsed: all 872 answers are `1`"
    assert verdict.endswith("difference +0.041 [+0.009, +0.073]")


@pytest.mark.parametrize(
    "ours, is_better, says",
    [
        (
            0.9,
            True,
            "worth using: accuracy 0.900 versus 0.780 of the bag of words on 872 examples, "
            "difference +0.120 [+0.088, +0.152]",
        ),
        (
            0.7,
            False,
            "not worth using: accuracy 0.700 versus 0.780 of the bag of words on 872 examples, "
            "difference -0.080 [-0.112, -0.048]",
        ),
        (
            0.79,
            None,
            "undecided: accuracy 0.790 versus 0.780 of the bag of words on 872 examples, "
            "difference +0.010 [-0.022, +0.042]; if it stays, about 9,000 examples are enough to "
            "be sure",
        ),
        (
            0.78,
            None,
            "undecided: accuracy 0.780 versus 0.780 of the bag of words on 872 examples, "
            "difference +0.000 [-0.032, +0.032]",
        ),
    ],
)
def test_the_verdict_follows_the_interval_of_the_difference(ours, is_better, says):
    result = result_of(seed_of(1, ours))
    assert verdict_of(result) == (is_better, says)
    assert lines(result)[-1] == says


def test_the_verdict_is_sure_of_few_rows_if_its_interval_excludes_0():
    leads = {GUESS: Interval(0.2, 0.3), WORDS: Interval(0.02, 0.4)}
    few = result_of(seed_of(1, 0.9, leads=leads), examples={"dev": 9})
    (caution,) = warnings_of(few)
    assert caution.endswith("has only 9 examples, which is too few for a reliable accuracy")
    assert lines(few)[-1].startswith("worth using: accuracy 0.900 versus 0.780 of the bag of words")


def test_the_median_of_two_seeds_moves_the_interval():
    leads = {WORDS: Interval(0.002, 0.1), GUESS: Interval(0.2, 0.3)}
    seeds = seed_of(1, 0.788, leads=leads), seed_of(2, 0.798, leads=leads)
    assert "difference +0.058 [+0.007, +0.105]" in lines(result_of(*seeds, words=0.735))[-1]
