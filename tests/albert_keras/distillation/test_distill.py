"""A distillation is a pre-training run with a teacher."""

import pytest

from albert_keras.distillation.distill import distill
from albert_keras.distillation.teaching import Teaching
from albert_keras.formats.open_weights import open_weights
from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from data_pipeline.errors import InputError
from tests.albert_keras.checkpoint_tensors import tensors_of


def with_settings(config, **settings):
    return config.replace(distillation=config.distillation.replace(**settings))


@pytest.mark.slow
def test_the_run_is_one_of_pre_training_with_nothing_of_the_teacher(tiny_student, tiny_run):
    run = Run.open(tiny_student)
    assert run.kind == "pretraining" and run.albert_config.num_hidden_layers == 1
    settings = run.record["config"]["distillation"]
    assert settings["cosine_weight"] == 1 and settings["soft_target_weight"] == 5
    assert len(run.record["data"]["teacher_digest"]) == 64
    assert run.record["data"]["origin_digest"] is None
    assert open_weights(tiny_student).heads == ("masked_lm", "sentence_order")
    found, teachers = (
        {name for name in tensors_of(path, 12) if not name.startswith("training/")}
        for path in (tiny_student, tiny_run)
    )
    assert found == teachers


def test_the_log_has_the_losses_and_the_loss_is_their_weighted_sum(tiny_student):
    for line in read_log(tiny_student):
        weighted = (
            2 * line["masked_lm_loss"]
            + line["sentence_order_loss"]
            + 5 * line["soft_target_loss"]
            + line["cosine_loss"]
        )
        assert line["loss"] == pytest.approx(weighted, rel=0.02)
        assert 0 <= line["soft_target_accuracy"] <= 1 and "cosine_accuracy" not in line


def test_other_settings_or_another_teacher_do_not_resume_a_run(
    tiny_student, tiny_run, tiny_records, distillation
):
    changed = with_settings(distillation, temperature=3.0)
    with pytest.raises(InputError, match=r"config\.distillation\.temperature: was "):
        distill(tiny_run, tiny_records, tiny_student, changed)
    with pytest.raises(InputError, match=r"data\.teacher_digest: was "):
        distill(tiny_run, tiny_records, tiny_student, distillation, teacher_step=5)


def test_a_student_of_another_size_starts_from_random_weights(tiny_run, distillation):
    config = with_settings(distillation, cosine_weight=0.0, warm_start=False)
    config = config.replace(model=config.model | {"hidden_size": 16})
    student = config.albert_config(307)
    teaching = Teaching(open_weights(tiny_run), config, student)
    assert teaching.trained_positions == 0


@pytest.mark.parametrize(
    "settings, message",
    [
        ({}, r"cosine_weight` must be 0 .* same hidden size.*1, .* 16 and 32"),
        ({"cosine_weight": 0.0}, r"(?s)hidden_size: 32 in.*warm_start=False"),
    ],
)
def test_what_does_not_fit_the_teacher_is_refused(
    tiny_run, tiny_records, distillation, tmp_path, settings, message
):
    config = with_settings(distillation, **settings)
    config = config.replace(model=config.model | {"hidden_size": 16})
    with pytest.raises(InputError, match=message):
        distill(tiny_run, tiny_records, tmp_path / "run", config)
    assert not (tmp_path / "run").exists()


def test_a_teacher_needs_a_masked_lm_head(tiny_run, tiny_records, distillation, tmp_path):
    shape = {"albert_config": Run.open(tiny_run).albert_config, "tokenizer": tiny_run / "tokenizer"}
    with pytest.raises(InputError, match="teacher `random` must be a pre-trained model"):
        distill("random", tiny_records, tmp_path / "run", distillation, **shape)
