"""Each row is answered by a model that did not train on it, and the verdict is of all rows."""

from pathlib import Path

import pytest

from albert_keras.tasks.cross_validation import SPLIT
from albert_keras.tasks.labels import in_parts
from albert_keras.tasks.results import first_split, read_results, rows, verdict_of
from data_pipeline.errors import InputError
from tests.albert_keras.tasks.small_tasks import make_examples


def without_dev(config):
    """Returns the settings of a toy whose development rows are held out, for a few steps."""
    training = config.training.replace(steps=2, evaluate_every=1, patience=None)
    return config.replace(task=config.task.replace(dev=None), training=training)


def test_all_rows_are_answered_and_decide(tune, untrained, toy_config, toy, tmp_path):
    config, out = without_dev(toy_config), tmp_path / "out"
    result = tune(out, config, cross_validate=True)
    count = len((toy / "train.tsv").read_text().splitlines()) - 1
    assert first_split(result) == SPLIT and list(result.examples)[:2] == [SPLIT, "dev"]
    assert result.examples[SPLIT] == count > result.examples["dev"] > 0
    assert sorted(untrained) == [f"part-{number}" for number in range(1, 6)] + ["seed-12345"]
    answers = (out / f"predictions-{SPLIT}.jsonl").read_text().splitlines()
    assert len(answers) == count and f" on {count} examples" in verdict_of(result).sentence
    shown = {row.name for row in rows(result) if row.split == SPLIT and row.difference}
    assert shown == set(result.baselines) == {"most frequent answer", "bag of words"}
    assert result.baselines["bag of words"][SPLIT]["accuracy"] > 0.9
    assert read_results(out) == result


def test_the_same_call_again_trains_no_part_again(tune, untrained, toy_config, tmp_path):
    config, out = without_dev(toy_config), tmp_path / "out"
    first = tune(out, config, cross_validate=True)
    untrained.clear()
    again = tune(out, config, cross_validate=True)
    assert not untrained and again.seeds[0].scores == first.seeds[0].scores


@pytest.mark.parametrize(
    "change", [{"seeds": 2}, {"task": {"dev": "dev.tsv"}}, {"task": {"name": "sst-2"}}], ids=str
)
def test_rows_must_be_held_out_and_of_one_training(change, tune, toy_config, tmp_path):
    config = without_dev(toy_config)
    task = change.get("task", {})
    if "name" in task:
        task = task | {"text": None, "label": None}
    config = config.replace(task=config.task.replace(**task))
    with pytest.raises(InputError, match="`cross_validate` requires one seed, and a file of your"):
        tune(tmp_path / "out", config, seeds=change.get("seeds", 1), cross_validate=True)
    assert not Path(tmp_path / "out").exists()


def test_parts_are_of_all_rows_and_alike(tiny_corpus):
    examples = make_examples(tiny_corpus, "classification", 60)
    examples += [one._replace(id=f"again {one.id}") for one in examples[:20]]
    parts = in_parts(examples, 5)
    classes = {one.label for one in examples}
    assert sorted(one.id for _, part in parts for one in part) == sorted(x.id for x in examples)
    for rest, part in parts:
        assert [one for one in examples if one in part] == part and len(rest + part) == 80
        assert not {one[1:3] for one in rest} & {one[1:3] for one in part}  # the two texts
        assert {one.label for one in part} == classes and len(part) >= 12
    with pytest.raises(InputError, match="at least 5 different texts. Received: 4"):
        in_parts([*examples[:4], *examples[60:64]], 5)
