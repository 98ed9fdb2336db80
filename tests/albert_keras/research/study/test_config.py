"""Studies are checked completely before anything runs; the studies of the package are valid."""

import copy
import re

import pytest
import yaml

from albert_keras.research.study.config import (
    SCALES,
    StudyConfig,
    find_study,
    read_study,
    study_names,
)
from albert_keras.research.study.planned import plan_study
from albert_keras.research.study.updates import updates_in_time
from data_pipeline.errors import InputError
from data_pipeline.settings import SettingsError
from tests.albert_keras.research.study.conftest import MICRO
from tests.repository import ROOT, needs_repository


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", study_names())
def test_a_study_of_the_package_is_valid_at_every_scale(name, scale):
    planned = plan_study(read_study(name), scale)
    assert len({run.name for run in planned.runs}) == len(planned.runs) >= 2
    for run in planned.runs:
        planned.followed(run)


def test_all_problems_of_a_file_are_reported(tmp_path):
    path = tmp_path / "mine.yaml"
    path.write_text(
        "title: Mine\n"
        "runs:\n"
        "  - name: a\n"
        "    scales: {tny: {corpus_share: 0.5}}\n"
        "  - name: b\n"
        "    teacher: c\n"
        "seds: 3\n"
    )
    with pytest.raises(SettingsError) as caught:
        read_study(path)
    listed = str(caught.value)
    assert "`runs.0.scales.tny` is not a known key. Did you mean `tiny`?" in listed
    assert "`seds` is not a known key. Did you mean `seeds`?" in listed


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"reference": "sop"}, "`runs` must contain the `reference`"),
        ({"runs": [{"name": "a"}, {"name": "a"}]}, "must be unique"),
        ({"runs": [{"name": "a", "teacher": "b"}]}, "must be another run"),
        ({"runs": [{"name": "a", "published": {"sopp": 1}}]}, "Did you mean `sop`?"),
        ({"evaluate": {"masked_lm": {"title": "x"}}}, "must contain `sop`"),
        ({"runs": []}, "must be a list of at least one run"),
    ],
)
def test_parts_of_a_study_fit_together(changes, message):
    with pytest.raises(SettingsError, match=message):
        StudyConfig(**(MICRO | changes))


def test_merged_settings_are_checked(micro_study):
    run = {"name": "b", "model": {"hidden_size": 33}, "training": {"stepps": 3}}
    with pytest.raises(SettingsError, match="run `b` at scale tiny") as caught:
        plan_study(micro_study(runs=[{"name": "a"}, run]), "tiny")
    paths = [".".join(problem.path) for problem in caught.value.problems]
    assert paths == ["model.hidden_size", "training.stepps"]


def test_later_settings_take_precedence(micro_study):
    run = {"name": "a", "training": {"steps": 8}, "scales": {"tiny": {"training": {"seed": 9}}}}
    study = micro_study(runs=[run], scales={"tiny": {"training": {"batch_size": 4}}})
    training = plan_study(study, "tiny", {"training": {"report_every": 1}}).runs[0].config.training
    assert (training.steps, training.seed, training.batch_size, training.report_every) == (
        8,
        9,
        4,
        1,
    )
    assert plan_study(study, "mini").runs[0].config.training.batch_size == 8


def test_the_language_is_that_of_all_records(micro_study):
    planned = plan_study(micro_study(), "tiny", {"data": {"copies": 2}}, language="ar")
    configs = [run.data for run in planned.runs]
    assert {config.copies for config in configs} == {2}
    configs += [*planned.held_out.values(), planned.base_data]
    assert {config.language for config in configs} == {"ar"}
    with pytest.raises(InputError, match="`language=xx` is unknown"):
        plan_study(micro_study(), "tiny", language="xx")


def test_an_unknown_study_names_the_nearest_one():
    with pytest.raises(InputError, match="Did you mean `sentence-task`?"):
        find_study("sentense-task")


def test_updates_are_equal_in_what_the_study_says(micro_study):
    runs = [{"name": "a"}, {"name": "b", "training": {"batch_size": 32}}]
    seconds = {"a": 0.5, "b": 2.0}
    by_updates = plan_study(micro_study(runs=runs), "tiny")
    assert updates_in_time(by_updates, seconds, None) == {"a": 6, "b": 6}
    assert updates_in_time(by_updates, seconds, 1.0) == {"a": 30, "b": 30}
    by_sequences = plan_study(micro_study(runs=runs, equal="sequences"), "tiny")
    assert updates_in_time(by_sequences, {}, None) == {"a": 6, "b": 2}
    by_time = plan_study(micro_study(runs=runs, equal="time"), "tiny")
    assert updates_in_time(by_time, seconds, 1.0) == {"a": 120, "b": 30}
    assert updates_in_time(by_time, seconds, None) == {"a": 6, "b": 1}


def test_a_run_that_is_added_later_does_not_change_the_updates_of_others(micro_study):
    runs = [{"name": "a"}, {"name": "slow"}]
    planned = plan_study(micro_study(runs=runs), "tiny")
    seconds = {"a": 0.5, "slow": 50.0}
    assert updates_in_time(planned, seconds, 1.0, {"a": 30}) == {"a": 30, "slow": 30}


def test_held_out_records_do_not_depend_on_the_masks_of_the_training(micro_study):
    base = copy.deepcopy(MICRO["base"])
    base["data"] |= {"static_masks": False, "masking": {"masked_lm_prob": 0.4, "max_ngram": 3}}
    held_out = plan_study(micro_study(base=base), "tiny").held_out["masked_lm"]
    assert held_out.static_masks and held_out.masking.masked_lm_prob == 0.15
    assert held_out.masking.max_ngram == 1 and held_out.max_seq_length == 32


@needs_repository
def test_the_study_in_the_documentation_is_valid():
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    _, block = re.findall(r"```yaml\n(.*?)```", page, re.DOTALL)
    planned = plan_study(StudyConfig(**yaml.safe_load(block)), "tiny")
    assert [run.name for run in planned.runs if run.teacher] == ["student"]
