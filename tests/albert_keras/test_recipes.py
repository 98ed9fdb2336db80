"""Recipes: valid as they are, with the numbers of their sources."""

import ast
import json
import re

import pytest
import yaml

from albert_keras import recipes
from albert_keras.cli import main
from albert_keras.cli.arguments import read_values
from albert_keras.config import AlbertConfig
from albert_keras.models.weight_count import family_name
from albert_keras.optimization.config import OptimizerConfig
from albert_keras.tasks.task_config import OFFICIAL_TASKS, TaskConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.errors import InputError
from tests.repository import PACKAGES, ROOT, needs_repository

ALBERT = {
    "batch_size": 4096,
    "steps": 125_000,
    "checkpoint_every": 5000,
    "keep_checkpoints": 5,
    "initial_output_bias": "zeros",
    "name": "lamb",
    "lr": 0.00176,
    "warmup_steps": 3125,
    "power": 1.0,
    "decay_from_warmup_end": False,
    "weight_decay": 0.01,
    "beta_1": 0.9,
    "beta_2": 0.999,
    "epsilon": 1e-6,
    "clip_norm": 1.0,
}
BERT = ALBERT | {
    "batch_size": 256,
    "steps": 1_000_000,
    "checkpoint_every": 10_000,
    "name": "adamw",
    "lr": 1e-4,
    "warmup_steps": 10_000,
}
ROBERTA = BERT | {
    "batch_size": 8192,
    "steps": 500_000,
    "checkpoint_every": 5000,
    "lr": 6e-4,
    "warmup_steps": 24_000,
    "decay_from_warmup_end": True,
    "beta_2": 0.98,
    "clip_norm": None,
    "sentence_order_weight": 0,
    "masks": "dynamic",
}
DISTILBERT = ROBERTA | {
    "batch_size": 4096,
    "steps": 6000,
    "checkpoint_every": 500,
    "lr": 5e-4,
    "warmup_steps": 300,
    "weight_decay": 0.0,
    "clip_norm": 5.0,
}
PAPERS = {
    "albert-base-paper": ALBERT,
    "albert-large-paper": ALBERT,
    "albert-xlarge-paper": ALBERT,
    "albert-xxlarge-paper": ALBERT,
    "bert-base-paper": BERT,
    "bert-large-paper": BERT,
    "roberta-base-paper": ROBERTA,
    "roberta-large-paper": ROBERTA | {"lr": 4e-4, "warmup_steps": 30_000},
    "distilbert-base-paper": DISTILBERT,
}


#: ALBERT, table 14: rate, batch, dropout of encoder and of classifier, steps, warm-up, S. Of RACE
#: the values of the README for version 2; the paper's are 2e-5 and 0.1.
FINETUNING = {
    "cola": (1e-5, 16, 0.0, 0.1, 5336, 320, 512),
    "sts-b": (2e-5, 16, 0.0, 0.1, 3598, 214, 512),
    "sst-2": (1e-5, 32, 0.0, 0.1, 20935, 1256, 512),
    "mnli": (3e-5, 128, 0.0, 0.1, 10000, 1000, 512),
    "qnli": (1e-5, 32, 0.0, 0.1, 33112, 1986, 512),
    "qqp": (5e-5, 128, 0.1, 0.1, 14000, 1000, 512),
    "rte": (3e-5, 32, 0.1, 0.1, 800, 200, 512),
    "mrpc": (2e-5, 32, 0.0, 0.1, 800, 200, 512),
    "wnli": (2e-5, 16, 0.1, 0.1, 2000, 250, 512),
    "squad1": (5e-5, 48, 0.0, 0.1, 3649, 365, 384),
    "squad2": (3e-5, 48, 0.0, 0.1, 8144, 814, 512),
    "race": (1e-5, 32, 0.0, 0.1, 12000, 1000, 512),
}


def configuration(name):
    return PretrainingConfig.of(read_values(name))


def test_the_recipes_are_these():
    ours = {
        "albert-base-cpu",
        "albert-base-one-gpu",
        "albert-cpu-30-minutes",
        "albert-cpu-4-minutes",
        "albert-cpu-night",
        "albert-gpu-day",
        "albert-mini-en",
        "albert-mini-en-2",
        "continue",
    }
    assert set(recipes.names()) == ours | PAPERS.keys()
    assert recipes.names() == tuple(sorted(recipes.names()))


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_is_a_valid_configuration(name):
    config = configuration(name).resolved("float32")
    config.optimizer.warmup_for(config.training.steps)
    config.albert_config(vocab_size=8000)
    assert set(read_values(name)) - {"stages"} == {"model", "training", "optimizer"}


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_says_where_it_is_from_and_what_it_needs(name):
    head = recipes.path(name).read_text(encoding="utf-8").partition("\nmodel:")[0]
    assert all(line.startswith("#") for line in head.strip().splitlines())
    for word in ("Source", "Hardware", "Data", "Length"):
        assert len(re.findall(rf"^# {word} +\S", head, re.MULTILINE)) == 1
    assert "vocab --size" in head and "data build" in head


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_recipe_has_its_numbers(name):
    config = configuration(name).resolved("float32")
    values = config.training.model_dump() | config.optimizer.model_dump()
    assert {key: values[key] for key in PAPERS[name]} == PAPERS[name]


@pytest.mark.parametrize(
    "name, layers, hidden, heads, embedding, dropout, sharing",
    [
        ("albert-base-paper", 12, 768, 12, 128, 0.1, "all"),
        ("albert-large-paper", 24, 1024, 16, 128, 0.1, "all"),
        ("albert-xlarge-paper", 24, 2048, 16, 128, 0.1, "all"),
        ("albert-xxlarge-paper", 12, 4096, 64, 128, 0.0, "all"),
        ("bert-base-paper", 12, 768, 12, 768, 0.1, "none"),
        ("bert-large-paper", 24, 1024, 16, 1024, 0.1, "none"),
        ("roberta-base-paper", 12, 768, 12, 768, 0.1, "none"),
        ("roberta-large-paper", 24, 1024, 16, 1024, 0.1, "none"),
        ("distilbert-base-paper", 6, 768, 12, 768, 0.1, "none"),
    ],
)
def test_a_papers_recipe_has_its_shape(name, layers, hidden, heads, embedding, dropout, sharing):
    shape = configuration(name).albert_config(vocab_size=30_000)
    assert shape.num_hidden_layers == layers and shape.hidden_size == hidden
    assert shape.num_attention_heads == heads and shape.intermediate_size == 4 * hidden
    assert shape.embedding_size == embedding and shape.sharing == sharing
    assert shape.hidden_dropout_prob == shape.attention_probs_dropout_prob == dropout


def test_going_on_has_the_numbers_of_adaptive_pre_training_and_no_model():
    config = configuration("continue")
    assert config.model == {}
    values = config.training.model_dump() | config.optimizer.model_dump()
    numbers = {"batch_size": 256, "steps": 12_500, "name": "adamw", "lr": 1e-4, "beta_2": 0.98}
    numbers |= {"warmup_steps": round(0.06 * 12_500), "weight_decay": 0.01, "epsilon": 1e-6}
    assert {key: values[key] for key in numbers} == numbers


def test_the_rate_for_one_gpu_follows_the_batch():
    config = configuration("albert-base-one-gpu")
    assert config.training.batch_size // config.training.accumulation_steps == 16
    assert config.resolved("float32").optimizer.lr == pytest.approx(0.00176 * (512 / 4096) ** 0.5)
    larger = config.with_flags(batch_size=1024).resolved("float32")
    assert larger.optimizer.lr == pytest.approx(8.8e-4)


def test_the_demo_is_the_recipe_of_four_minutes_in_less_time():
    from albert_keras.demo import TRAINING

    assert TRAINING == configuration("albert-cpu-4-minutes").with_flags(time_budget="2m30s")


def test_what_was_not_run_says_so():
    text = recipes.path("albert-gpu-day").read_text(encoding="utf-8")
    assert "# UNTESTED: " in text.partition("\nmodel:")[0]
    config = configuration("albert-gpu-day")
    assert config.training.batch_size % config.training.accumulation_steps == 0


@pytest.mark.parametrize("name", [*recipes.names(), *AlbertConfig.names()])
def test_what_is_named_albert_shares_and_nothing_else_does(name):
    if name == "continue":  # it has no model of its own
        return
    is_recipe = name in recipes.names()
    shape = configuration(name).albert_config(8000) if is_recipe else AlbertConfig.from_name(name)
    assert (shape.sharing == "all") == name.startswith("albert"), name
    assert family_name(shape) == {"albert": "ALBERT", "bert": "BERT", "roberta": "RoBERTa"}.get(
        name.partition("-")[0], "DistilBERT"
    )
    if is_recipe:
        assert shape.as_settings()["size"].partition("-")[0] == name.partition("-")[0]


def test_the_size_albert_mini_is_the_shape_of_the_shipped_model():
    assert configuration("albert-mini-en").albert_config(8000) == AlbertConfig.from_name(
        "albert-mini", vocab_size=8000
    )


def test_an_unknown_recipe_has_no_path():
    assert recipes.path("albert-cpu-night").is_file()
    with pytest.raises(InputError, match="Did you mean `albert-cpu-night`"):
        recipes.path("albert-cpu-nigth")
    assert recipes.path("sst-2", "finetuning").is_file()
    with pytest.raises(InputError, match="`sst2` is not a recipe for finetuning. Did you mean"):
        recipes.path("sst2", "finetuning")
    with pytest.raises(InputError, match="`fine` is not a kind of recipe"):
        recipes.names("fine")


def test_recipes_are_installed_with_the_package():
    settings = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    patterns = re.search(r'^"albert_keras.recipes" = (\[.*\])$', settings, re.MULTILINE).group(1)
    folder = PACKAGES / "albert_keras" / "recipes"
    installed = {file for pattern in ast.literal_eval(patterns) for file in folder.glob(pattern)}
    assert installed == {
        recipes.path(name, kind) for kind in recipes.KINDS for name in recipes.names(kind)
    }


def test_there_is_a_recipe_for_each_official_task():
    assert recipes.names("finetuning") == tuple(sorted(FINETUNING))
    assert set(OFFICIAL_TASKS) - set(FINETUNING) == {"ax"}  # AX has nothing to train on


@pytest.mark.parametrize("name", FINETUNING)
def test_a_recipe_for_a_task_has_the_numbers_of_the_paper(name):
    values = yaml.safe_load(recipes.path(name, "finetuning").read_text(encoding="utf-8"))
    lr, batch, dropout, head_dropout, steps, warmup, length = FINETUNING[name]
    assert values["model"] == {
        "hidden_dropout_prob": dropout,
        "attention_probs_dropout_prob": dropout,
        "head_dropout": head_dropout,
    }
    windows = {"doc_stride": 128, "max_query_length": 64, "max_answer_length": 30}
    windows = windows if name in ("squad1", "squad2") else {}
    assert values["task"] == {"name": name, "max_seq_length": length} | windows
    assert values["training"] == {"steps": steps, "batch_size": batch}
    rest = {"power": 1.0, "weight_decay": 0.01, "epsilon": 1e-6, "clip_norm": 1.0}
    assert values["optimizer"] == {"name": "adamw", "lr": lr, "warmup_steps": warmup} | rest
    assert set(values) == {"model", "task", "training", "optimizer"}


@pytest.mark.parametrize("name", FINETUNING)
def test_a_recipe_for_a_task_is_valid_and_says_where_it_is_from(name):
    text = recipes.path(name, "finetuning").read_text(encoding="utf-8")
    values = yaml.safe_load(text)
    del values["model"]["head_dropout"]
    AlbertConfig(**values["model"])
    TaskConfig(**values["task"])
    OptimizerConfig(**values["optimizer"]).warmup_for(values["training"]["steps"])
    head = text.partition("\nmodel:")[0]
    assert all(line.startswith("#") for line in head.strip().splitlines())
    for word in ("Source", "For", "Length"):
        assert len(re.findall(rf"^# {word} +\S", head, re.MULTILINE)) == 1
    said = re.search(r"^# Length +([\d ]+) steps of (\d+):", head, re.MULTILINE)
    steps, batch = (int(number.replace(" ", "")) for number in said.groups())
    assert values["training"] == {"steps": steps, "batch_size": batch}


@needs_repository
def test_the_documentation_lists_every_recipe_with_its_numbers():
    rows = {}
    for line in (ROOT / "docs" / "recipes.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("| `"):
            name, _, *cells = (cell.strip() for cell in line.strip("|").split("|"))
            rows[name.strip("`")] = cells
    assert set(rows) == set(recipes.names())
    for name, (batch, rate, steps, warmup, *_) in rows.items():
        config = configuration(name).resolved("float32")
        assert batch.split()[0].rstrip(",") == str(config.training.batch_size)
        lr, optimizer = rate.split(", ")
        assert float(lr) == pytest.approx(config.optimizer.lr, rel=0.01)
        assert optimizer.lower() == config.optimizer.name
        assert steps.replace(" ", "") == str(config.training.steps)
        assert warmup.replace(" ", "") == str(config.optimizer.warmup_steps)


@pytest.mark.slow
def test_a_recipe_becomes_a_run_by_its_name(
    tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path
):
    from data_pipeline.building.build import build_records

    data = tiny_data_config.replace(input_format="full-sentences", static_masks=False)
    records = build_records(tiny_documents, tiny_tokenizer, tmp_path / "records", data).path
    smaller = {
        "model.hidden_size": 32,
        "model.embedding_size": 32,
        "model.num_attention_heads": 2,
        "model.intermediate_size": 64,
        "model.num_hidden_layers": 2,
        "training.steps": 2,
        "training.batch_size": 4,
        "training.steps_per_execution": 1,
        "training.peak_tflops": 1,
        "optimizer.warmup_steps": 1,
    }
    command = ["pretrain", "--config", "roberta-base-paper", "--data", str(records)]
    command += [word for key, value in smaller.items() for word in ("--set", f"{key}={value}")]
    assert main([*command, "--out", str(tmp_path / "run"), "--json"]) == 0
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    assert record["config"]["optimizer"]["beta_2"] == 0.98
    assert record["config"]["training"]["steps"] == 2
