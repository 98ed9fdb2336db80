"""Plans: sizes are read, the batch fits, time and text add up, commands are valid."""

import re
import shlex

import pytest

from albert_keras.config import AlbertConfig
from albert_keras.planning.batch_fit import (
    LENGTHS,
    PUBLISHED,
    batch_table,
    batch_table_lines,
    choose_fit,
    fit_batch,
)
from albert_keras.planning.devices import DEVICES
from albert_keras.planning.plan import (
    PlanRequest,
    choose_recipe,
    make_plan,
    plan_lines,
    recipe_config,
)
from albert_keras.planning.sizes import parse_bytes, rounded_up
from albert_keras.report import bytes_text, number_text
from albert_keras.training.cost.flops import training_flops
from albert_keras.training.cost.memory import step_memory
from data_pipeline.config import LONGEST_RECORD
from data_pipeline.errors import InputError

ALBERT = {"size": "albert-base", "batch_size": 4096, "memory_bytes": 12e9, "corpus_bytes": 16e9}


@pytest.mark.parametrize(
    "text, number",
    [
        ("12GB", 12e9),
        ("12GiB", 12 * 1024**3),
        ("500MB", 5e8),
        ("1.5 TB", 1.5e12),
        ("7kib", 7168),
        ("9b", 9),
    ],
)
def test_sizes_are_read(text, number):
    assert parse_bytes(text) == number


@pytest.mark.parametrize("text", ["12", "GB", "12G", "-1GB", "0GB", "1e9B", "12GBB", ""])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(InputError, match="`--memory` must be a size with its unit"):
        parse_bytes(text, "--memory")


@pytest.mark.parametrize(
    "number, text", [(999, "999 bytes"), (12.34e9, "12.3 GB"), (5e8, "500 MB"), (1e12, "1 TB")]
)
def test_sizes_are_told(number, text):
    assert bytes_text(number) == text


@pytest.mark.parametrize(
    "number, text",
    [
        (2.15e-12, "0.00000000000215"),
        (0.02836, "0.0284"),
        (8.7, "8.7"),
        (99.96, "100"),
        (999.6, "1,000"),
        (1196.4, "1,196"),
        (14_049.2, "14,049"),
        (float("inf"), "inf"),
    ],
)
def test_numbers_are_told_without_an_exponent(number, text):
    assert number_text(number) == text


def test_a_minimum_is_rounded_up():
    assert [rounded_up(number) for number in (0.028301, 0.1, 1, 111.01)] == [0.0284, 0.1, 1, 112]


def test_parts_are_as_large_as_fits():
    config = AlbertConfig.from_name("albert-base")
    kept, again = fit_batch(config, 512, 12e9, 512, 77, precision="float32")
    for fit in (kept, again):
        assert fit.part * fit.accumulation_steps == 512 and fit.memory.total <= 0.9 * 12e9
        larger = 2 * fit.part
        held = step_memory(
            config, 512, 512, 77, recompute=fit.recompute, accumulation_steps=512 // larger
        )
        assert held.total > 0.9 * 12e9
    assert again.part > kept.part
    assert choose_fit((kept, again), 512, 512) == kept


def test_blocks_are_computed_again_where_parts_would_be_small():
    config = AlbertConfig.from_name("albert-xxlarge")
    fits = fit_batch(config, 64, 16e9, 512, 77, precision="mixed_bfloat16")
    assert fits[0].part * 512 < 4096 and choose_fit(fits, 64, 512) == fits[1]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("size", ["albert-mini", "albert-base", "albert-large-v1", "bert-base"])
def test_time_and_text_add_up(device, size):
    plan = make_plan(PlanRequest(**ALBERT | {"size": size, "device": device}))
    of_device = DEVICES[device]
    assert plan.share * plan.replicas == 4096 and plan.max_seq_length == 512
    assert plan.chosen in plan.fits and plan.chosen.memory.total <= 0.9 * 12e9
    config = AlbertConfig.from_name(size, vocab_size=30_000)
    assert plan.flops_per_step == training_flops(config, 4096, 512, 77)
    rate = of_device.tflops * 1e12 * of_device.mfu * plan.replicas
    work = plan.flops_per_step * (4 / 3 if plan.chosen.recompute else 1)
    assert plan.seconds == pytest.approx(plan.steps * work / rate)
    assert plan.records == round(16e9 / 4.3 / 509)
    assert plan.epochs == pytest.approx(plan.steps * 4096 / plan.records)
    assert plan.disk_bytes == plan.records * (200 + 6 * 512)


def test_steps_are_those_of_as_much_text():
    plan = make_plan(PlanRequest(**ALBERT | {"device": "tpu-v3-8", "batch_size": 1024}))
    assert plan.recipe == "albert-base-paper" and plan.steps == 500_000
    assert make_plan(PlanRequest(**ALBERT, steps=7)).steps == 7


@pytest.mark.parametrize(
    "size, kind, name",
    [
        ("albert-base", "cpu", "albert-base-cpu"),
        ("albert-base-v2", "gpu", "albert-base-one-gpu"),
        ("albert-base", "tpu", "albert-base-paper"),
        ("albert-xxlarge", "gpu", "albert-xxlarge-paper"),
        ("albert-tiny", "tpu", "albert-mini-cpu"),
        ("bert-large", "gpu", "bert-large-paper"),
        ("bert-xlarge", "gpu", "bert-base-paper"),
        ("roberta-large", "tpu", "roberta-large-paper"),
        ("distilbert-base", "gpu", "distilbert-base-paper"),
        ("roberta-mini", "cpu", "albert-mini-cpu"),
    ],
)
def test_a_recipe_is_chosen_by_size_and_device(size, kind, name):
    assert choose_recipe(size, kind) == name


@pytest.mark.parametrize(
    "size",
    [
        "albert-base",
        "albert-xxlarge",
        "bert-base",
        "albert-mini",
        "roberta-base",
        "roberta-tiny",
        "roberta-mini",
        "distilbert-tiny",
        "distilbert-mini",
    ],
)
@pytest.mark.parametrize("device", ["cpu", "v100", "tpu-v3-8"])
@pytest.mark.parametrize("steps", [None, 100])
def test_the_commands_can_be_pasted(size, device, steps):
    plan = make_plan(
        PlanRequest(size=size, device=device, memory_bytes=40e9, batch_size=512, steps=steps)
    )
    _, build, train = (shlex.split(command) for command in plan.commands)
    assert build[:3] == ["albert-keras", "data", "build"] and "--no-static-masks" in build
    options = dict(zip(train, train[1:], strict=False))
    config = recipe_config(options["--config"]).with_flags(
        size=options["--size"],
        batch_size=int(options["--batch-size"]),
        steps=int(options["--steps"]),
        accumulation_steps=int(options["--accumulate"]),
        precision=options["--precision"],
        recompute="--recompute" in train,
        lr=options.get("--lr"),
    )
    warmup = re.fullmatch(r"optimizer.warmup_steps=(\d+)", options.get("--set", ""))
    if warmup:
        config = config.replace(optimizer=config.optimizer.replace(warmup_steps=int(warmup[1])))
    config.optimizer.warmup_for(config.training.steps)
    # Records with one segment have no labels; a recipe must not ask for them.
    config.resolved("float32", has_sentence_labels="full-sentences" not in build)
    assert config.training.batch_size == 512 and config.training.steps == plan.steps
    assert 512 // plan.replicas % config.training.accumulation_steps == 0


def test_every_number_is_told_with_its_assumption():
    plan = make_plan(PlanRequest(**ALBERT, device="v100"))
    text = "\n".join(plan_lines(plan))
    for words in plan.assumptions.items():
        if words[0] != "recompute" or plan.chosen.recompute:
            assert words[1] in text
    assert "<- chosen" in text and plan.commands[-1] in text
    measured = make_plan(PlanRequest(**ALBERT, tflops=0.1), is_measured=True)
    assert "0.1 TFLOP/s per replica, measured here" in "\n".join(plan_lines(measured))


def test_no_number_is_told_with_an_exponent():
    request = PlanRequest(size="bert-large", batch_size=8192, corpus_bytes=1e8, tflops=1500)
    text = "\n".join(plan_lines(make_plan(request)))
    assert "1,500 TFLOP/s" in text and not re.search(r"\de[+-]\d", text)


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"device": "tpu-v9-8"}, "Did you mean"),
        ({"size": "albert-bas"}, "Did you mean"),
        ({"precision": "bfloat"}, "`precision` must be one of"),
        (
            {"batch_size": 4095, "device": "tpu-v3-8"},
            "`--batch` must be a multiple of the 8 replicas. Received: 4095.",
        ),
        ({"size": "bert-xlarge"}, "`--memory` must be at least .* GB for bert-xlarge"),
        ({"max_seq_length": 4}, "max_seq_length"),
        ({"max_seq_length": LONGEST_RECORD + 1}, "max_seq_length"),
    ],
)
def test_what_cannot_be_planned_is_refused(changes, message):
    with pytest.raises(InputError, match=message):
        make_plan(PlanRequest(**ALBERT | changes))


@pytest.mark.parametrize("batch_size", [1, 2, 64])
@pytest.mark.parametrize("size", ["distilbert-tiny", "albert-mini", "bert-large"])
@pytest.mark.parametrize("precision", ["float32", "mixed_bfloat16"])
def test_the_least_memory_that_is_stated_suffices(batch_size, size, precision):
    request = PlanRequest(size=size, batch_size=batch_size, precision=precision, memory_bytes=1.5e8)
    with pytest.raises(InputError, match="Received: 150 MB.") as caught:
        make_plan(request)
    stated = re.search(r"at least (\S+ .B)", str(caught.value))[1]
    make_plan(request.replace(memory_bytes=parse_bytes(stated)))
    with pytest.raises(InputError, match=f"at least {stated} for"):
        make_plan(request.replace(memory_bytes=0.99 * parse_bytes(stated)))


def test_the_table_has_a_row_for_each_model_and_falls_with_the_length():
    table = batch_table(12e9)
    for largest in table["largest"].values():
        assert len(largest) == len(LENGTHS) and largest == sorted(largest, reverse=True)
    assert table["published"] == {size: list(row) for size, row in PUBLISHED.items()}
    lines = list(batch_table_lines(table))
    assert lines[1].split() == ["S", *map(str, LENGTHS)]
    assert sum(line.split()[0] == "published" for line in lines) == len(PUBLISHED)


@pytest.mark.parametrize(
    "size, millions, vocab, build",
    [
        ("roberta-base", 124.7, "--kind bpe", "--input-format full-sentences"),
        ("distilbert-base", 67.0, "--kind wordpiece", "--input-format full-sentences"),
        ("bert-medium", 41.7, "--kind wordpiece", "--objective nsp"),
    ],
)
def test_a_plan_names_the_vocabulary_and_the_records_of_a_family(size, millions, vocab, build):
    vocab_size = AlbertConfig.from_name(size).vocab_size
    plan = make_plan(PlanRequest(size=size, device="v100", vocab_size=vocab_size))
    assert round(plan.weights / 1e6, 1) == millions
    assert vocab in plan.commands[0] and build in plan.commands[1]


def test_long_records_are_planned_with_either_attention():
    plans = {}
    for attention in ("dense", "block-sparse"):
        plans[attention] = make_plan(
            PlanRequest(max_seq_length=4096, attention=attention, device="v100")
        )
        assert "--set model.max_position_embeddings=4096" in plans[attention].commands[-1]
    dense, sparse = plans["dense"], plans["block-sparse"]
    assert "--set model.attention=block-sparse" in sparse.commands[-1]
    assert "model.attention" not in dense.commands[-1]
    assert sparse.fits[0].largest > 3 * dense.fits[0].largest
    assert sparse.flops_per_step < 0.7 * dense.flops_per_step
