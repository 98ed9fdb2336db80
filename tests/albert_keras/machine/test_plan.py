"""Plans: the text is examined, the batch fits, time adds up, the model is chosen by the law."""

import json
import math
import os
import re
import shlex

import pytest
import yaml

from albert_keras import recipes
from albert_keras.cli import main
from albert_keras.machine import plan as planning, step_time
from albert_keras.machine.corpus import examine_text
from albert_keras.machine.doctor import Memory
from albert_keras.machine.ladder import (
    LADDER,
    Stage,
    run_settings,
    rung,
    stages_for,
    vocabulary_size,
)
from albert_keras.machine.law import LEAST_UPDATES
from albert_keras.machine.plan import (
    Device,
    PlanRequest,
    make_plan,
    suggest_config,
    this_device,
)
from albert_keras.machine.plan_text import HELD_OUT, plan_commands, plan_lines, plan_warnings
from albert_keras.report import parse_bytes
from albert_keras.training import peak
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.flops import training_flops
from data_pipeline.building.build import build_records
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import DatasetInfo

#: The peak at which 6x256 trains 10,500 tokens per second, as on the machine of docs/measured.md.
TFLOPS = 0.784
ARABIC = "ابتثجحخدذرزسشصضطظعغفقكلمنهوي"
BOATS = "عادت القوارب في وقت متأخر من المساء، ولم يرد أحد أن يتحدث عن الطقس. "


@pytest.fixture(autouse=True)
def usual_machine(monkeypatch, tmp_path):
    """The machine has 0.8 TFLOP/s; the working directory is empty."""
    monkeypatch.setattr(peak, "measure_peak", lambda precision, seconds, on_cpu: 0.8e12)
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))
    monkeypatch.chdir(tmp_path)


def plan_for(hours=8, corpus_bytes=52e6, **changes):
    values = {"tflops": TFLOPS} | changes
    return make_plan(PlanRequest(hours=hours, corpus_bytes=corpus_bytes, **values))


def test_sizes_are_read():
    sizes = {"12GB": 12e9, "12GiB": 12 * 1024**3, "1.5 TB": 1.5e12, "9b": 9}
    assert [parse_bytes(text) for text in sizes] == list(sizes.values())
    for text in ("12", "-1GB", "0GB"):
        with pytest.raises(InputError, match="`--disk` must be a size with its unit"):
            parse_bytes(text, "--disk")


@pytest.mark.parametrize("layers, hidden_size", LADDER)
def test_every_model_of_the_ladder_is_a_valid_run_and_shares(layers, hidden_size):
    model = rung(layers, hidden_size, 16_000)
    config = PretrainingConfig.of(run_settings(model, 5000, stages_for(7200)))
    assert config.albert_config(vocab_size=16_000) == model
    assert model.sharing == "all" and config.size.startswith("albert-")
    assert model.embedding_size == 128
    config.chosen_optimizer().warmup_for(5000)


@pytest.mark.parametrize("name, hours", [("albert-cpu-30-minutes", 0.5), ("albert-cpu-night", 8)])
def test_the_recipes_by_time_follow_the_plan(name, hours):
    """If the measured runs change, change the recipes to what `plan` says now."""
    plan, settings = plan_for(hours), yaml.safe_load(recipes.path(name).read_text())
    steps = settings["training"]["steps"]
    assert settings == run_settings(plan.chosen.config, steps, plan.stages)
    assert 0.9 * plan.chosen.steps < steps <= plan.chosen.steps


def test_time_text_and_speed_add_up():
    plan = plan_for()
    assert sum(plan.parts.values()) == pytest.approx(8 * 3600)
    assert plan.text.tokens == pytest.approx(52e6 / 4.27, rel=0.01)
    for one in plan.candidates:
        batches = [(stage.batch_size, *stage[:2]) for stage in plan.stages]
        mfu = 0.38 if one.config.hidden_size < 256 else 0.45
        flops = [training_flops(one.config, *batch) for batch in batches]
        assert one.step_seconds == pytest.approx([each / (TFLOPS * 1e12 * mfu) for each in flops])
        shares = zip(plan.stages, one.step_seconds, strict=True)
        steps = sum(0.97 * plan.parts["training"] * stage.share / time for stage, time in shares)
        assert one.steps == pytest.approx(steps, abs=1) and one.tokens == 4096 * one.steps
        assert one.epochs == pytest.approx(one.tokens / (plan.text.tokens / 0.9))


def test_more_time_and_more_text_teach_more():
    plans = [plan_for(hours) for hours in (0.5, 2, 8, 32)]
    losses = [plan.chosen.expected.loss for plan in plans]
    assert losses == sorted(losses, reverse=True) and losses[0] > losses[-1] + 0.2
    small, large = plan_for(8, 2e6), plan_for(8, 500e6)
    assert small.chosen.expected.loss > plans[2].chosen.expected.loss
    assert large.chosen.expected.loss < plans[2].chosen.expected.loss
    assert "More text would teach more" in " ".join(plan_warnings(small))
    assert [vocabulary_size(size) for size in (1e6, 3e6, 52e6, 1e12)] == [
        4000,
        8000,
        16_000,
        30_000,
    ]


def test_the_smallest_of_equal_models_is_chosen_and_none_that_is_hardly_trained():
    for hours in (0.2, 0.5, 2, 8):
        plan = plan_for(hours)
        trained = [one for one in plan.candidates if not one.objection]
        assert all(one.steps >= LEAST_UPDATES for one in trained)
        lowest = min(one.expected.loss for one in trained)
        assert plan.chosen in trained and plan.chosen.expected.loss <= lowest + 0.03
        smaller = trained[: trained.index(plan.chosen)]
        assert all(one.expected.loss > lowest + 0.03 for one in smaller)
    short = plan_for(0.05, 3e6, tflops=0.1)
    assert short.chosen.name == "2x128" and "too few to learn more" in plan_warnings(short)[0]


@pytest.mark.parametrize("hours, size", [(0.5, 52e6), (8, 5e6)])
def test_the_records_have_a_copy_of_the_text_for_each_pass(hours, size):
    plan = plan_for(hours, size)
    passes = plan.chosen.epochs / len(plan.stages)
    assert passes <= plan.copies < passes + 2 or plan.copies == 10 < passes + 1
    seconds = len(plan.stages) * (5 + size * (1 / 5e6 + (plan.copies - 1) / 13e6))
    assert plan.parts["records"] == pytest.approx(seconds)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"corpus_bytes": None}, "A plan needs a text"),
        ({"corpus_bytes": 9e5}, "at least 1 MB of text .* Received: 900 kB. Add text, or"),
        ({"hours": 0.02}, "`hours` must be at least 0.06: vocabulary and records take"),
        ({"hours": math.nan}, "hours"),
    ],
)
def test_what_cannot_be_planned_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        plan_for(**changes)


@pytest.mark.parametrize(
    "text, language, model",
    [
        ("The old man sat. " * 9, None, "albert-mini-en"),
        (BOATS, "ar", "MODEL, one for `ar`"),
    ],
)
def test_a_small_text_is_not_continued_with_a_model_of_another_language(
    tmp_path, text, language, model
):
    (tmp_path / "a.txt").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=f"--init-from {re.escape(model)}\\."):
        plan_for(corpus=(str(tmp_path),), language=language)


def test_only_models_that_fit_into_memory_are_planned(monkeypatch):
    monkeypatch.setattr(planning, "read_memory", lambda: Memory(2_000_000_000, 0))
    names = [one.name for one in plan_for().candidates]
    assert "6x256" in names and "12x768" not in names
    monkeypatch.setattr(planning, "read_memory", lambda: Memory(500_000_000, 0))
    with pytest.raises(InputError, match="needs .* of memory. Received: a machine with 500 MB"):
        plan_for()


def test_every_number_is_shown_without_an_exponent():
    text = " ".join(plan_lines(plan_for(100, 1e6, tflops=1500)))
    assert "1,500 TFLOP/s" in text and not re.search(r"\de[+-]\d", text)
    for words in ("English novels", "<- chosen", "language en"):
        assert words in " ".join(text.split())


def words_of(letters, size=1_050_000):
    """Returns text of random words of these letters, in lines with sentences."""
    import random

    source = random.Random(5)
    words = ["".join(source.choices(letters, k=source.randint(2, 7))) for _ in range(20_000)]
    lines = []
    while size > 0:
        lines.append(" ".join(source.choices(words, k=12)) + ". " + " ".join(words[:4]) + ".")
        size -= len(lines[-1].encode())
    return "\n\n".join(lines)


def test_text_is_english_unless_its_language_is_given(tmp_path):
    (tmp_path / "a.txt").write_text(BOATS * 9, encoding="utf-8")
    with pytest.raises(InputError, match="The language of the text must be given"):
        examine_text([str(tmp_path)], "auto", 2000)
    assert examine_text([str(tmp_path)], "auto", 2000, language="fa").language == "fa"
    (tmp_path / "a.txt").write_text("The boats returned late in the evening. " * 500)
    assert examine_text([str(tmp_path)], "auto", 2000).language == "en"


@pytest.mark.slow
def test_the_printed_commands_train_a_model(tmp_path, capsys):
    (tmp_path / "my books").mkdir()
    (tmp_path / "my books" / "a.txt").write_text(words_of(ARABIC), encoding="utf-8")
    words = ["plan", "--corpus", "my books", "--hours", "0.3", "--tflops", "0.01", "--json"]
    words += ["--language", "ar"]
    assert main(words) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["text"]["language"] == "ar"
    written = PretrainingConfig.of(yaml.safe_load((tmp_path / "plan.yaml").read_text()))
    assert written == PretrainingConfig.of(plan["config"])
    (tmp_path / "kept.txt").write_text(words_of(ARABIC[::-1]), encoding="utf-8")
    assert [command.split()[1] for command in plan["commands"]] == [
        *("vocab", "data", "data", "pretrain", "evaluate", "export")
    ]
    for command in plan["commands"]:
        words = shlex.split(command.replace(HELD_OUT, "kept.txt"))[1:]
        if words[0] == "pretrain":  # not for a quarter of an hour
            words += ["--steps", "2", "--set", "training.time_budget=null"]
            words += ["--set", "optimizer.warmup_steps=0"]
        assert main(words) == 0, command
        capsys.readouterr()
    info = DatasetInfo.read(tmp_path / "records-64")
    assert plan["text"]["tokens"] == pytest.approx(
        info.num_records * 64 * 0.9 / info.config["copies"], rel=0.25
    )


def test_the_command_writes_its_file_and_replaces_no_other(tmp_path, capsys):
    words = ["plan", "--corpus-size", "50MB", "--hours", "1"]
    assert main(words) == 0 and main(words) == 0
    assert "0.8 TFLOP/s, measured)" in capsys.readouterr().out
    (tmp_path / "plan.yaml").write_text("training: {}\n")
    assert main(words) == 2
    assert "`plan.yaml` exists, and is not overwritten" in capsys.readouterr().err


@pytest.fixture(scope="module")
def unmasked_records(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path_factory):
    """Returns records without static masks, with room for 12 predictions in 32 tokens."""
    config = tiny_data_config.replace(static_masks=False, max_predictions_per_seq=12)
    out = tmp_path_factory.mktemp("records") / "unmasked"
    return build_records(tiny_documents, tiny_tokenizer, out, config).path


def config_for(time_budget, **flags):
    return PretrainingConfig.of({}, time_budget=time_budget, **flags)


def test_a_time_budget_chooses_a_model_for_the_records(unmasked_records, tmp_path):
    config = suggest_config(unmasked_records, config_for("4m"))
    assert config.model == {"size": "albert-tiny", "position_embedding": "rotary"}
    assert (config.optimizer.name, config.optimizer.lr) == ("muon", 0.004)
    assert config.training.batch_size == 128 and config.training.mask_rate == 0.3
    DatasetInfo.read(unmasked_records).replace(max_seq_length=1024).save(tmp_path)
    long = suggest_config(tmp_path, config_for("4m"))
    assert long.albert_config(1000).max_position_embeddings == 1024
    given = suggest_config(unmasked_records, config_for("4m", batch_size=16, steps=70, lr="0.01"))
    assert (given.training.batch_size, given.training.steps) == (16, 70)
    assert given.optimizer == PretrainingConfig.of({}, lr="0.01").optimizer
    plan = plan_for(0.1, None, data=str(unmasked_records))
    assert len(plan_commands(plan, "plan.yaml")) == 2 and plan.text.language == "en"


def test_a_gpu_gets_large_batches_and_its_steps_are_timed(monkeypatch):
    timed = []
    monkeypatch.setattr(
        step_time, "step_seconds", lambda config, stage: timed.append(stage) or 0.02
    )
    device = Device("GPU", 700.0, True, 24e9)
    plan = make_plan(PlanRequest(corpus_bytes=300e6, hours=1), device=device)
    assert [stage.batch_size * stage.max_seq_length for stage in plan.stages] == [65_536]
    assert len(timed) == len(plan.candidates) < len(LADDER)  # the largest does not fit
    assert plan.chosen.step_seconds == (0.02,)
    text = " ".join(plan_lines(plan))
    assert "on a GPU" in text and "(at 700 TFLOP/s, measured)" in text
    # With a given peak the plan is for a CPU, whatever this machine has.
    assert this_device(0.5)[:3] == ("CPU", 0.5, False)


def test_a_step_is_timed():
    stage = Stage(32, 5, 1.0, 2, 0.15)
    assert 0 < step_time.step_seconds(rung(2, 128, 100, 32), stage) < 60


def test_static_masks_keep_their_rate(tiny_records):
    config = suggest_config(tiny_records, config_for("4m"))
    assert config.training.mask_rate is None and config.size == "albert-tiny"
    dynamic = suggest_config(tiny_records, config_for("4m", masks="dynamic"))
    assert dynamic.training.mask_rate == 0.156  # 5 of 32 tokens are the room of the records
    plan = plan_for(0.1, None, data=str(tiny_records))
    assert "mask_rate" not in plan.config["training"]


def test_an_existing_run_keeps_its_model(unmasked_records, tiny_run, monkeypatch):
    monkeypatch.setattr(planning, "this_device", None)
    config = suggest_config(unmasked_records, config_for("4m"), tiny_run)
    assert config.model["hidden_size"] == 32 and config.training.steps == 12
    assert config.training.time_budget == "4m"


@pytest.mark.slow
def test_the_command_chooses_a_model_and_resumes_with_it(unmasked_records, tmp_path, capsys):
    out = tmp_path / "run"
    words = ["pretrain", "--data", str(unmasked_records), "--time-budget", "4s", "--out", str(out)]
    assert main(words) == 0
    shown = capsys.readouterr().err
    assert "chosen for 4 s on this machine: ALBERT, 2 layers that share one set" in shown
    assert main([*words, "--debug"]) == 0
    assert "resuming" in capsys.readouterr().err
    assert main([*words, "--batch-size", "8"]) == 2
    assert "config.training.batch_size: was 128, is now 8" in capsys.readouterr().err
