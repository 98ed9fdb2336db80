"""Plans for a number of hours: the model is chosen by the law, settings and commands are valid."""

import functools
import re
import shlex
from pathlib import Path

import pytest
import typer
import yaml

from albert_keras import recipes
from albert_keras.cli import app
from albert_keras.models.weight_count import count_weights
from albert_keras.planning.budget import plan_budget
from albert_keras.planning.budget_text import (
    budget_assumptions,
    budget_commands,
    budget_lines,
    budget_warnings,
    config_text,
)
from albert_keras.planning.candidates import BudgetRequest
from albert_keras.planning.ladder import (
    LADDER,
    Rung,
    bytes_per_piece,
    run_settings,
    stages_for,
    vocabulary_size,
)
from albert_keras.planning.scaling import LEAST_UPDATES
from albert_keras.planning.sizes import parse_bytes
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.cost.flops import training_flops
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.progress import parse_duration

#: The peak at which 6x256 trains 10,500 tokens per second, as on the machine of docs/search.md.
TFLOPS = 0.784


@functools.cache
def plan_for(hours, corpus_bytes=52e6, **changes):
    values = {"tflops": TFLOPS} | changes
    return plan_budget(BudgetRequest(seconds=3600 * hours, corpus_bytes=corpus_bytes, **values))


def recipe(name):
    return yaml.safe_load(recipes.path(name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "corpus_bytes, pieces",
    [(1e6, 4000), (3e6, 8000), (9.9e6, 8000), (52e6, 16_000), (1e9, 30_000), (1e12, 30_000)],
)
def test_the_vocabulary_follows_the_text(corpus_bytes, pieces):
    assert vocabulary_size(corpus_bytes) == pieces
    assert 250 * pieces <= corpus_bytes and 3 < bytes_per_piece(pieces) < 5


@pytest.mark.parametrize("rung", LADDER, ids=[rung.name for rung in LADDER])
def test_every_model_of_the_ladder_is_a_valid_run(rung):
    config = PretrainingConfig.of(run_settings(rung, 5000, stages_for(7200)))
    shape = config.albert_config(vocab_size=16_000)
    assert shape == rung.config(16_000) and shape.sharing == "all"
    assert (shape.num_hidden_layers, shape.hidden_size) == rung
    assert shape.hidden_size == 64 * shape.num_attention_heads == shape.intermediate_size // 4
    config.chosen_optimizer().warmup_for(5000)


def test_the_settings_admit_long_records():
    stage = stages_for(600)[0]._replace(max_seq_length=1024)
    settings = run_settings(LADDER[0], 5000, (stage,))
    assert settings["model"].pop("max_position_embeddings") == 1024
    assert settings == run_settings(LADDER[0], 5000, stages_for(600))


def test_the_settings_are_those_of_the_model_in_the_box():
    settings = run_settings(Rung(6, 256), 18_000, stages_for(9000))
    box = recipe("albert-mini-en")
    # The box has the positions of the reference, so that other formats can store it.
    assert settings["model"].pop("position_embedding") == "rotary"
    assert settings == box


def test_a_plan_for_two_and_a_half_hours_is_about_the_model_in_the_box():
    plan = plan_for(2.5)
    same = next(one for one in plan.candidates if one.rung == Rung(6, 256))
    assert same.steps == pytest.approx(20_000, rel=0.03)
    assert same.positions_per_second == pytest.approx(9_700, rel=0.03)


@pytest.mark.parametrize("name, hours", [("albert-cpu-30-minutes", 0.5), ("albert-cpu-night", 8)])
def test_the_recipes_by_time_follow_the_plan(name, hours):
    """If the measured runs change, change the recipes to what `plan --hours` says now."""
    plan, settings = plan_for(hours), recipe(name)
    steps = settings["training"]["steps"]
    assert settings == run_settings(plan.chosen.rung, steps, plan.stages)
    assert 0.9 * plan.chosen.steps < steps <= plan.chosen.steps


def test_time_text_and_speed_add_up():
    plan = plan_for(8)
    assert sum(plan.parts.values()) == pytest.approx(8 * 3600)
    budget = parse_duration(plan.config["training"]["time_budget"])
    assert plan.parts["training"] - 60 < budget <= plan.parts["training"]
    assert plan.text_tokens == pytest.approx(52e6 / 4.18, rel=1e-6)
    for one in plan.candidates:
        config = one.rung.config(plan.vocab_size)
        seconds = [
            training_flops(
                config, stage.batch_size, stage.max_seq_length, stage.max_predictions_per_seq
            )
            / (TFLOPS * 1e12 * one.mfu)
            for stage in plan.stages
        ]
        shares = zip(plan.stages, seconds, strict=True)
        steps = sum(0.97 * plan.parts["training"] * stage.share / time for stage, time in shares)
        assert one.steps == pytest.approx(steps, abs=1) and one.tokens == 4096 * one.steps
        assert one.weights == count_weights(config).total
    seen = plan.chosen.tokens / (plan.text_tokens / 79 * 64)
    assert plan.chosen.epochs == pytest.approx(seen)


def test_more_time_and_more_text_teach_more():
    plans = [plan_for(hours) for hours in (0.5, 2, 8, 32)]
    losses = [plan.chosen.expected.loss for plan in plans]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1] + 0.2
    sizes = [plan.chosen.weights for plan in plans]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1]
    small, large = plan_for(8, 2e6), plan_for(8, 500e6)
    assert small.chosen.expected.loss > plans[2].chosen.expected.loss
    assert large.chosen.expected.loss < plans[2].chosen.expected.loss
    assert any("More text would teach more" in words for words in budget_warnings(small))


@pytest.mark.parametrize("hours, size", [(0.5, 52e6), (8, 52e6), (8, 5e6), (2, 5e9)])
def test_the_records_have_a_copy_of_the_text_for_each_pass(hours, size):
    plan = plan_for(hours, size)
    passes = plan.chosen.epochs / len(plan.stages)
    assert passes <= plan.copies < passes + 2 or plan.copies == 10 < passes + 1
    builds = budget_commands(plan, ["a.txt"], "plan.yaml")[1:-1]
    assert all((f"--copies {plan.copies}" in build) == (plan.copies > 1) for build in builds)
    seconds = len(plan.stages) * (5 + size * (1 / 5e6 + (plan.copies - 1) / 13e6))
    assert plan.parts["records"] == pytest.approx(seconds)


def test_the_smallest_of_equal_models_is_chosen_and_none_that_is_hardly_trained():
    for hours in (0.2, 0.5, 2, 8):
        plan = plan_for(hours)
        trained = [one for one in plan.candidates if not one.objection]
        assert all(one.steps >= LEAST_UPDATES for one in trained)
        lowest = min(one.expected.loss for one in trained)
        assert plan.chosen in trained and plan.chosen.expected.loss <= lowest + 0.03
        smaller = trained[: trained.index(plan.chosen)]
        assert all(one.expected.loss > lowest + 0.03 for one in smaller)


def test_a_large_model_is_not_chosen_for_little_text():
    plan = plan_for(8, 2e6)
    largest = plan.candidates[-1]
    assert largest.expected.loss < plan.chosen.expected.loss - 0.03
    assert largest.objection == "too little text" and not plan.chosen.objection
    lines = budget_lines(plan, budget_assumptions(plan, BudgetRequest(seconds=1, corpus_bytes=1)))
    assert any("12x768" in line and line.endswith("   too little text") for line in lines)


def test_stages_are_for_runs_of_an_hour_or_more():
    (only,) = plan_for(0.9).stages
    assert (only.max_seq_length, only.batch_size, only.mask_rate) == (64, 64, 0.3)
    first, second = plan_for(1).stages
    assert (first.share, second.share) == (0.55, 0.45)
    assert (second.max_seq_length, second.batch_size, second.mask_rate) == (128, 32, 0.2)
    assert "stages" not in plan_for(0.9).config and len(plan_for(1).config["stages"]) == 2


def test_too_little_time_to_leave_the_plateau_is_said():
    plan = plan_for(0.05, 3e6, tflops=0.1)
    assert plan.chosen.rung == LADDER[0] and plan.chosen.steps < LEAST_UPDATES
    assert "too few to learn more than frequent words" in budget_warnings(plan)[0]


@pytest.mark.parametrize("device", ["v100", "a100", "tpu-v3-8"])
def test_a_plan_for_an_accelerator_fits_and_says_that_it_is_untested(device):
    plan = plan_for(24, 10e9, device=device, tflops=None)
    training = plan.config["training"]
    assert training["batch_size"] == 2048 and training["precision"].startswith("mixed_")
    assert 128 % training.get("accumulation_steps", 1) == 0
    warnings = " ".join(budget_warnings(plan))
    for words in ("calculated and untested", "an extrapolation", "Replace SAMPLE"):
        assert words in warnings
    assert "--corpus SAMPLE" in budget_commands(plan, (), "plan.yaml")[0]
    assert "assumed" in budget_assumptions(plan, BudgetRequest(seconds=1, corpus_bytes=1))["speed"]


@pytest.mark.parametrize(
    "hours, changes, message",
    [
        (8, {"corpus_bytes": 9e5}, "at least 1 MB of text .* Received: 900 kB. Add text, or"),
        (0.02, {}, "`--hours` must be at least 0.0596: the vocabulary and the records of 52 MB"),
        (8, {"device": "abacus"}, "not a known device"),
        (8, {"devices": 5}, "`--devices` must divide the batch of 32. Received: 5."),
        (
            8,
            {"memory_bytes": 1e8},
            "`--memory` must be at least .* for the smallest model. Received: 100 MB.",
        ),
        (8, {"precision": "bfloat"}, "`precision` must be one of"),
    ],
)
def test_what_cannot_be_planned_is_refused(hours, changes, message):
    with pytest.raises(InputError, match=message):
        plan_for(hours, **changes)


@pytest.mark.parametrize(
    "hours, corpus_bytes, received",
    [
        (0.028, 1e6, "0.028"),
        (0.9, 15e9, "0.9"),
        (1, 15e9, "1"),
        (100, 1e12, "100"),
        (1e-5, 52e6, "0.00001"),
        (0.9, 14.4995e9, "0.9"),  # one stage needs 0.99997 h, and an hour has two
    ],
)
def test_the_least_time_that_is_stated_suffices(hours, corpus_bytes, received):
    with pytest.raises(InputError, match=rf"Received: {received}\. Allow") as caught:
        plan_for(hours, corpus_bytes)
    stated = float(re.search(r"at least ([\d.]+):", str(caught.value))[1])
    assert hours < stated
    plan_for(stated, corpus_bytes)


def test_copies_for_which_no_time_is_left_are_not_planned():
    plan = plan_for(0.225, 300e6, device="a100", tflops=None)
    assert plan.copies == 1 and plan.parts["training"] == pytest.approx(110)
    assert sum(plan.parts.values()) == pytest.approx(810)


@pytest.mark.parametrize(
    "hours, changes",
    [
        (0.5, {}),
        (8, {}),
        (8, {"precision": "mixed_bfloat16"}),
        (8, {"device": "a100"}),
        (8, {"device": "tpu-v3-8"}),
        (8, {"device": "tpu-v3-8", "devices": 1024}),
    ],
)
def test_the_least_memory_that_is_stated_suffices(hours, changes):
    with pytest.raises(InputError, match="Received: 1 MB.") as caught:
        plan_for(hours, memory_bytes=1e6, **changes)
    stated = parse_bytes(re.search(r"at least (\S+ .B)", str(caught.value))[1])
    plan_for(hours, memory_bytes=stated, **changes)
    with pytest.raises(InputError, match="`--memory` must be at least"):
        plan_for(hours, memory_bytes=0.99 * stated, **changes)


@pytest.mark.parametrize("hours", [0.5, 8])
def test_the_commands_are_accepted_and_fit_together(hours):
    plan = plan_for(hours)
    commands = budget_commands(plan, ["my books/", "b.txt"], "plan.yaml", "sentences")
    parsed = [arguments_of(shlex.split(command)) for command in commands]
    vocab, *builds, train = parsed
    assert vocab["corpus"] == ["my books/", "b.txt"] and vocab["size"] == plan.vocab_size
    config = PretrainingConfig.of(yaml.safe_load(config_text(plan)))
    assert config == PretrainingConfig.of(plan.config)
    assert str(train["config"]) == "plan.yaml"
    assert Path(train["data"]) == Path(builds[-1]["out"])
    folders = [Path(build["out"]) for build in builds]
    assert [stage.data for stage in config.stages if stage.data] == folders[:-1]
    for build, stage in zip(builds, plan.stages, strict=True):
        assert build["corpus"] == vocab["corpus"] and build["corpus_format"] == "sentences"
        data = PretrainingDataConfig(
            max_seq_length=build["max_seq_length"],
            max_predictions_per_seq=build["max_predictions_per_seq"],
            static_masks=build["static_masks"],
        )
        assert data.num_predictions >= stage.mask_rate * data.max_num_tokens
        assert not data.static_masks and build["assignments"] == ["masking.max_ngram=1"]


def arguments_of(words):
    """Returns the arguments of a command line, as the program parses them (dict)."""
    command, context = typer.main.get_command(app), None
    words = words[1:]
    while hasattr(command, "commands") and words and words[0] in command.commands:
        name, *words = words
        context, command = (
            command.make_context(name, [], parent=context, resilient_parsing=True),
            (command.commands[name]),
        )
    with command.make_context(name, words, parent=context) as own:
        return {
            key: str(value)
            if key in ("data", "out")
            else list(value)
            if isinstance(value, tuple)
            else value
            for key, value in own.params.items()
        }


def test_every_number_is_shown_with_its_assumption():
    plan = plan_for(8)
    request = BudgetRequest(seconds=1, corpus_bytes=1, tflops=TFLOPS)
    assumptions = budget_assumptions(plan, request, "mixed_bfloat16")
    text = " ".join(" ".join(budget_lines(plan, assumptions)).split())
    for reason in assumptions.values():
        assert reason in text
    for words in ("English novels", "8,000 pieces", "other text has other losses", "<- chosen"):
        assert words in text
    assert "0.784 TFLOP/s per replica, measured here in mixed_bfloat16" in text
    assert all(f" {one.rung.name} " in text for one in plan.candidates)


def test_no_number_is_shown_with_an_exponent():
    plan = plan_for(100, 1e6, device="h100", tflops=1500)
    request = BudgetRequest(seconds=1, corpus_bytes=1, tflops=1500)
    text = "\n".join(budget_lines(plan, budget_assumptions(plan, request)))
    assert "1,500 TFLOP/s" in text and not re.search(r"\de[+-]\d", text)
