"""The demo goes the whole way, and only once."""

import functools
import itertools
import json

import pytest

from albert_keras import demo as module
from albert_keras.cli import main
from albert_keras.config import AlbertConfig
from albert_keras.demo_corpus import demo_documents
from albert_keras.shape import count_weights
from albert_keras.training.evaluate import Evaluation


@pytest.fixture
def short_demo(monkeypatch, tiny_training):
    """Makes the demo small: a part of the text, a few steps of a tiny model."""
    documents = list(itertools.islice(demo_documents(), 40))
    values = tiny_training.model_dump()
    values["training"] |= {"steps": 6, "report_every": 3}
    monkeypatch.setattr(module, "demo_documents", lambda: documents)
    monkeypatch.setattr(module, "VOCAB_SIZE", 500)
    monkeypatch.setattr(module, "DATA", module.DATA.replace(copies=1, max_seq_length=32))
    monkeypatch.setattr(module, "HELDOUT_DATA", module.HELDOUT_DATA.replace(max_seq_length=32))
    for name in ("evaluate", "write_report", "Predictor"):  # the second time as the first
        monkeypatch.setattr(module, name, functools.cache(getattr(module, name)))
    monkeypatch.setattr(module.demo, "__defaults__", ("", type(tiny_training)(**values)))


def test_every_stage_leaves_its_result_and_is_not_done_again(short_demo, tmp_path, capsys):
    out = tmp_path / "demo"
    assert main(["demo", "--out", str(out), "--json"]) == 0
    first = json.loads(capsys.readouterr().out)
    assert {path.name for path in out.iterdir()} == {
        "corpus",
        "tokenizer",
        "records",
        "records-heldout",
        "run",
        "saved_models",
    }
    last = json.loads((out / "run" / "log.jsonl").read_text().splitlines()[-1])
    for name, value in last["evaluation"].items():
        assert name == "path" or first["evaluation"][name] == value
    assert len(first["fillings"]) == 5 and 0 < first["order"]["in_order"] < 1

    files = {path: path.stat().st_mtime_ns for path in out.rglob("*.tfrecord")}
    assert main(["demo", "--out", str(out)]) == 0
    shown = capsys.readouterr()
    saved = first["weights_saved"]  # the second of two layers of the tiny model
    shape = AlbertConfig.from_json_file(out / "run" / "albert_config.json")
    assert saved == count_weights(shape).blocks > 0
    assert f"sharing saves {saved:,} weights" in shown.out and first["model"].startswith("ALBERT")
    assert "Try next:" in shown.out and "records exists already" in shown.err
    assert files == {path: path.stat().st_mtime_ns for path in out.rglob("*.tfrecord")}
    exported = {path.name for path in (out / "saved_models" / "demo").iterdir()}
    assert exported == {"1", "model-1.keras"}


def test_a_result_is_judged_against_guessing():
    scores = Evaluation(*[0] * len(Evaluation._fields))._replace(
        masked_lm_accuracy=0.12, unigram_accuracy=0.06, sentence_order_chance=0.5, num_records=1000
    )
    result = module.DemoResult(*[None] * len(module.DemoResult._fields))
    much = result._replace(evaluation=scores._replace(sentence_order_accuracy=0.99))
    little = result._replace(evaluation=scores._replace(sentence_order_accuracy=0.501))
    assert much.masked_lm_gain == 2
    assert much.order_is_learned and not little.order_is_learned
