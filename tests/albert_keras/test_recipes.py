"""Recipes: valid as they are, with the numbers of their sources."""

import re

import pytest
import yaml

from albert_keras import recipes
from albert_keras.cli.arguments import read_values
from albert_keras.tasks.kinds import OFFICIAL_TASKS
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.training.config import PretrainingConfig
from tests.repository import ROOT, needs_repository

#: Values that the papers share, and those of each: batch, steps, optimizer, rate and warm-up;
#: layers, width, heads, embedding and dropout.
SHARED = {
    "initial_output_bias": "zeros",
    "power": 1.0,
    "beta_1": 0.9,
    "epsilon": 1e-6,
    "decay_from_warmup_end": False,
    "weight_decay": 0.01,
    "beta_2": 0.999,
    "clip_norm": 1.0,
}
ROBERTA = {
    "decay_from_warmup_end": True,
    "beta_2": 0.98,
    "clip_norm": None,
    "sentence_order_weight": 0,
    "masks": "dynamic",
}
DISTILBERT = ROBERTA | {"weight_decay": 0.0, "clip_norm": 5.0}
PAPERS = {
    "albert-base-paper": ((4096, 125_000, "lamb", 0.00176, 3125), (12, 768, 12, 128, 0.1), {}),
    "albert-large-paper": ((4096, 125_000, "lamb", 0.00176, 3125), (24, 1024, 16, 128, 0.1), {}),
    "albert-xlarge-paper": ((4096, 125_000, "lamb", 0.00176, 3125), (24, 2048, 16, 128, 0.1), {}),
    "albert-xxlarge-paper": ((4096, 125_000, "lamb", 0.00176, 3125), (12, 4096, 64, 128, 0.0), {}),
    "bert-base-paper": ((256, 1_000_000, "adamw", 1e-4, 10_000), (12, 768, 12, 768, 0.1), {}),
    "bert-large-paper": ((256, 1_000_000, "adamw", 1e-4, 10_000), (24, 1024, 16, 1024, 0.1), {}),
    "roberta-base-paper": (
        *((8192, 500_000, "adamw", 6e-4, 24_000), (12, 768, 12, 768, 0.1)),
        ROBERTA,
    ),
    "roberta-large-paper": (
        *((8192, 500_000, "adamw", 4e-4, 30_000), (24, 1024, 16, 1024, 0.1)),
        ROBERTA,
    ),
    "distilbert-base-paper": (
        *((4096, 6000, "adamw", 5e-4, 300), (6, 768, 12, 768, 0.1)),
        DISTILBERT,
    ),
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
    return PretrainingConfig.of(read_values(name, kind="pretraining"))


@pytest.mark.parametrize("name", recipes.names())
def test_every_recipe_is_a_valid_configuration(name):
    config = configuration(name).resolved("float32")
    config.optimizer.warmup_for(config.training.steps)
    shape = config.albert_config(vocab_size=8000)
    if name != "continue":  # it continues to train any model
        assert (shape.sharing == "all") == name.startswith("albert")
    head = recipes.path(name).read_text(encoding="utf-8").partition("\nmodel:")[0]
    for word in ("Source", "Hardware", "Data", "Length"):
        assert re.search(rf"^# {word} +\S", head, re.MULTILINE)


@pytest.mark.parametrize("name", PAPERS)
def test_a_papers_recipe_has_its_numbers(name):
    numbers, shape, others = PAPERS[name]
    config = configuration(name).resolved("float32")
    values = config.training.model_dump() | config.optimizer.model_dump()
    names = ("batch_size", "steps", "name", "lr", "warmup_steps")
    assert tuple(values[key] for key in names) == numbers
    expected = SHARED | others
    assert {key: values[key] for key in expected} == expected
    model = config.albert_config(vocab_size=30_000)
    assert shape == (
        model.num_hidden_layers,
        model.hidden_size,
        model.num_attention_heads,
        model.embedding_size,
        model.hidden_dropout_prob,
    )


def test_the_rate_for_one_gpu_follows_the_batch():
    config = configuration("albert-base-one-gpu")
    assert config.training.batch_size // config.training.accumulation_steps == 16
    assert config.resolved("float32").optimizer.lr == pytest.approx(0.00176 * (512 / 4096) ** 0.5)
    larger = config.with_flags(batch_size=1024).resolved("float32")
    assert larger.optimizer.lr == pytest.approx(8.8e-4)


def test_there_is_a_recipe_for_each_official_task():
    assert recipes.names("finetuning") == tuple(sorted(FINETUNING))
    assert set(OFFICIAL_TASKS) == set(FINETUNING)


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
    TaskConfig(**values["task"])


@needs_repository
def test_the_documentation_lists_every_recipe_with_its_numbers():
    rows = {}
    page = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
    for line in page[: page.index("## Studies")].splitlines():
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
