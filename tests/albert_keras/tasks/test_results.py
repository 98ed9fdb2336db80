"""Results are read as they were saved; their lines say how good it is, and what to doubt."""

import json
import tempfile

import pytest

from albert_keras.formats.detection import best_run
from albert_keras.tasks.metrics import Interval
from albert_keras.tasks.results import (
    BagOfWords,
    FinetuneResult,
    SeedResult,
    as_json,
    baseline_scores,
    best_seed,
    first_split,
    lines,
    read_results,
    save_results,
    verdict_of,
)
from data_pipeline.errors import InputError


def seed_of(seed, score, half=0.025, **changes):
    scores = changes.pop("scores", {"dev": {"accuracy": score}})
    interval = Interval(score - half, score + half)
    values = {"best_step": 600, "last_step": 2106, "interval": interval} | changes
    return SeedResult(seed, f"seed-{seed}", scores=scores, **values)


def result_of(*seeds, majority=0.509, random=0.795, **changes):
    values = {
        "majority": {"dev": {"accuracy": majority}},
        "random": random and seed_of(1, random),
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
        tuned={"null_threshold": -1.5},
        origin="runs/books at step 6000",
        loaded=("encoder: 25 weights from the checkpoint", "head: new, ändert sich"),
        files={"errors": "errors.tsv", "predictions": ["a.tsv", "b.tsv"]},
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
    text = path.read_text()
    path.write_text(text.replace("0.875", "0.876", 1))
    with pytest.raises(InputError, match="is damaged or was edited"):
        read_results(tmp_path)
    with pytest.raises(InputError, match="is damaged or was edited"):
        best_run(tmp_path)
    values = as_json(result)  # of an older version
    del values["bag_of_words"], values["positive_class"]
    path.write_text(json.dumps(values))
    assert read_results(tmp_path) == result._replace(bag_of_words=None, positive_class=None)


def test_the_best_seed_is_that_of_the_first_split(result):
    assert first_split(result) == "dev"
    assert best_seed(result).seed == 2  # as good as seed 4, and before it
    assert baseline_scores(result) == {"majority": 0.509, "bag_of_words": 0.78, "random": 0.795}


def warnings_of(result):
    return [line for line in lines(result) if line.startswith("warning: ")]


def test_a_label_without_examples_explains_its_score():
    absent = {"train": ["c"], "dev": [f"{number}" for number in range(10)]}
    train, dev = warnings_of(
        result_of(seed_of(1, 0.832), random=None, majority=0.1, absent=absent)
    )[:2]
    assert train == "warning: train has no example of `c`: scores of such labels are 0"
    assert "`7` and 2 more: scores" in dev


def test_a_seed_without_baselines_is_one_line():
    seed = seed_of(1, 0.832, last_step=900, stopped_early=True)
    assert lines(result_of(seed, majority=0, random=None)._replace(majority=None, examples={})) == [
        "accuracy 0.832 [0.807, 0.857] (best at step 600 of 900, stopped early)"
    ]


def test_each_split_has_its_lines():
    scores = {"dev_matched": {"accuracy": 0.8}, "dev_mismatched": {"accuracy": 0.75}}
    majority = {name: {"accuracy": 0.35} for name in scores}
    examples = {"dev_matched": 9815, "dev_mismatched": 9832}
    result = result_of(seed_of(1, 0.8, scores=scores), random=None)
    assert lines(result._replace(majority=majority, examples=examples)) == [
        "dev_matched: accuracy 0.800 [0.775, 0.825] on 9,815 examples (best at step 600 of 2,106)",
        "  majority class  0.350  difference +0.450",
        "dev_mismatched: accuracy 0.750 on 9,832 examples",
        "  majority class  0.350  difference +0.400",
        "worth using: better than the majority class by 45.0 points [42.5, 47.5]: accuracy 0.800 "
        "versus 0.350 on 9,815 examples",
    ]


def test_several_seeds_have_a_row_each_and_a_median():
    seeds = (
        seed_of(1, 0.832),
        seed_of(2, 0.821, best_step=1200, stopped_early=True),
        seed_of(10, 0.509, best_step=60, collapse="all 872 answers are `1`"),
    )
    assert lines(result_of(*seeds, random=0.75)) == [
        "seed  accuracy   95 % interval  best at",
        "   1     0.832  [0.807, 0.857]  step 600 of 2,106",
        "   2     0.821  [0.796, 0.846]  step 1,200 of 2,106, stopped early",
        "  10     0.509  [0.484, 0.534]  step 60 of 2,106, collapsed",
        "accuracy median 0.821, 0.509 to 0.832 over 3 seeds (1 collapsed) on 872 "
        "examples (standard deviation 0.183)",
        "  majority class                  0.509  difference +0.312",
        "  same model from random weights  0.750  difference +0.071",
        "warning: seed 10 collapsed: all 872 answers are `1`. On SST-2, LAMB at 3e-3 and AdamW at "
        "2e-4 did this, and half the rate, or `optimizer.name=lamb` with `optimizer.lr=1e-3`, did "
        "not.",
        "worth using: better than the majority class by 31.2 points [28.7, 33.7]: accuracy 0.821 "
        "versus 0.509 on 872 examples",
    ]


@pytest.mark.parametrize(
    "ours, random, says",
    [
        (0.9, 0.7, None),
        (0.7, 0.8, "no better than the same model from random weights: accuracy 0.700 versus"),
        (
            0.83,
            0.8,
            "the lead over the same model from random weights may be due to chance: "
            "accuracy 0.830 versus 0.800",
        ),
        (0.84, 0.8, None),  # the intervals overlap, but 0.04 is more than 0.025 * sqrt(2)
    ],
)
def test_a_pre_training_that_is_worth_nothing_is_doubtful(ours, random, says):
    found = warnings_of(result_of(seed_of(1, ours), random=random))
    assert [one.startswith(f"warning: {says}") for one in found] == ([True] if says else [])


@pytest.mark.parametrize(
    "ours, words, says",
    [
        (
            0.9,
            0.78,
            "worth using: better than the bag of words by 12.0 points [8.8, 15.2]: accuracy 0.900 "
            "versus 0.780 on 872 examples",
        ),
        (
            0.79,
            0.78,
            "warning: ahead by 1.0 points [-2.2, +4.2]; 872 examples are too few to be sure (if "
            "the difference stays, about 9,000 would do): accuracy 0.790 versus 0.780 of the "
            "bag of words",
        ),
        (0.815, 0.78, "worth using: better than the bag of words by 3.5 points [0.3, 6.7]"),
        (
            0.7,
            0.78,
            "warning: not worth using: use the bag of words, which is better by 8.0 points [4.8, "
            "11.2]",
        ),
        (0.77, 0.78, "warning: behind by 1.0 points [-2.2, +4.2]; 872 examples are too few to be "),
        (
            0.78,
            0.78,
            "warning: no difference, 0.0 points [-3.2, +3.2]; 872 examples are too few to ",
        ),
    ],
)
def test_one_sentence_says_whether_the_model_is_worth_using(ours, words, says):
    words = BagOfWords({"dev": {"accuracy": words}}, Interval(words - 0.02, words + 0.02), 4000)
    result = result_of(seed_of(1, ours), random=None, bag_of_words=words)
    assert lines(result)[-1].startswith(says)
    assert verdict_of(result).better == ("bag_of_words" if "use the bag" in says else "")


def test_the_verdict_takes_the_difference_on_the_same_rows():
    words = BagOfWords({"dev": {"accuracy": 0.735}}, Interval(0.68, 0.79), 4000)
    leads = {"bag_of_words": Interval(-0.025, 0.128), "majority": Interval(0.2, 0.3)}
    known = {"random": None, "bag_of_words": words, "examples": {"dev": 226}}
    assert lines(result_of(seed_of(1, 0.788, leads=leads), **known))[-1] == (
        "warning: ahead by 5.3 points [-2.5, +12.8]; 226 examples are too few to be sure (if "
        "the difference stays, about 490 would do): accuracy 0.788 versus 0.735 of the bag of words"
    )
    leads |= {"bag_of_words": Interval(0.002, 0.1)}
    better = result_of(seed_of(1, 0.788, leads=leads), **known)
    assert (
        "worth using: better than the bag of words by 5.3 points [0.2, 10.0]" in lines(better)[-1]
    )
    median = result_of(seed_of(1, 0.788, leads=leads), seed_of(2, 0.798, leads=leads), **known)
    assert "by 5.8 points [0.7, 10.5]" in lines(median)[-1]
    assert read_again(better) == better


def read_again(result):
    with tempfile.TemporaryDirectory() as folder:
        save_results(folder, result)
        return read_results(folder)


def test_examples_that_all_have_one_label_show_nothing():
    same = result_of(seed_of(1, 1.0), majority=1.0, random=None, only_label="3.5")
    assert warnings_of(same) == [
        "warning: nothing can be shown with 872 examples that all have `3.5`"
    ]


def test_the_baseline_of_tags_is_a_linear_model():
    words = BagOfWords({"dev": {"entity_f1": 0.61}}, Interval(0.6, 0.62), 2000)
    seed = seed_of(1, 0.569, scores={"dev": {"entity_f1": 0.569}}, half=0.01)
    tags = result_of(seed, random=None, bag_of_words=words)
    tags = tags._replace(task="tagging", metric="entity_f1", majority=None)
    says = "not worth using: use the linear model of words and their neighbours, which is better by"
    assert says in lines(tags)[-1]


def test_a_tiny_development_set_is_a_warning():
    few = result_of(seed_of(1, 1.0), majority=0.5, random=None, examples={"dev": 1})
    caution, verdict = warnings_of(few)
    assert caution.endswith("has only 1 example, which is too few for a reliable accuracy")
    assert verdict.startswith("warning: ahead by 50.0 points [")
    assert "; 1 example is too few to be sure (if the difference stays, about 30 would" in verdict
