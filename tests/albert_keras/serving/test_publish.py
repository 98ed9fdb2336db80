"""Exports are published completely, serve strings, load in Keras, and say what precision costs."""

import json
import subprocess
import sys
from types import SimpleNamespace

import keras
import numpy as np
import pytest
import tensorflow as tf

from albert_keras.formats.detection import versions
from albert_keras.models.answers import ClassAnswer, ScoreAnswer
from albert_keras.models.text_classifiers import AlbertForClassification
from albert_keras.runs.run import Run
from albert_keras.runs.tensors import weight_names
from albert_keras.serving.export.checks import compare, loss_of
from albert_keras.serving.export.lite import write_lite
from albert_keras.serving.export.source import open_source
from albert_keras.serving.layout import new_version
from albert_keras.serving.predictor import Candidate, Predictor
from albert_keras.serving.publish import export
from albert_keras.serving.saved_model.signatures import WARM_UP_FILE, read_signatures
from albert_keras.serving.serve_check import serve_check
from data_pipeline.errors import InputError
from tests.albert_keras.serving.local.running import running
from tests.albert_keras.serving.small_exports import (
    assert_alike,
    make_model,
    write_export,
    write_run,
)
from tests.albert_keras.serving.test_string_tasks import DIRTY
from tests.albert_keras.tasks.small_tasks import SETTINGS, make_task
from tests.parameters import slow

FRESH_PROCESS = """
import sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
answer = model.signatures["serving_default"](tf.constant(["The [MASK] left.", "no mask", ""]))
print(sorted(answer), answer["pieces"].shape)
assert not any(name.split(".")[0] in ("albert_keras", "data_pipeline") for name in sys.modules)
"""


def contents(folder):
    return sorted(path.name for path in folder.iterdir())


# What a version holds


def test_a_version_holds_what_servers_and_readers_want(tiny_export, tiny_run):
    version = tiny_export / "1"
    assert set(contents(version)) >= {
        *("saved_model.pb", "variables", "assets.extra", "albert_config.json", "tokenizer"),
        *("export.json", "README.md"),
    }
    assert contents(tiny_export) == ["1", "model-1.keras"]
    record = json.loads((version / "export.json").read_text())
    assert record["step"] == 12 and (record["precision"], record["accuracy_loss"]) == (
        "float32",
        {},
    )
    (signature,) = (one for one in read_signatures(version) if one.name == "serving_default")
    assert signature.inputs == {"text": tf.TensorSpec([None], tf.string, name="text")}
    model = keras.models.load_model(tiny_export / "model-1.keras")
    reader = tf.train.load_checkpoint(Run.open(tiny_run).checkpoints.prefix(12))
    for name, weight in weight_names(model).items():
        np.testing.assert_array_equal(weight.numpy(), reader.get_tensor(name))


def test_a_version_of_a_task_says_what_it_is(pairs_export):
    version = pairs_export / "1"
    signatures = {one.name: one for one in read_signatures(version)}
    assert set(signatures) == {
        *("serving_default", "text_pair", "embed"),
        "predict_tokens",
    }
    assert (version / WARM_UP_FILE).stat().st_size > 1000
    record = json.loads((version / "export.json").read_text())
    assert record["kind"] == "finetuning" and record["task"]["labels"] == ["no", "yes", "maybe"]
    assert record["task"]["takes_pair"] and record["task"]["max_seq_length"] == 40
    assert set(record["signatures"]) == set(signatures)


def test_where_files_lay_and_what_was_typed_stays_at_home(pairs_export, tiny_export):
    for folder in (pairs_export, tiny_export):
        text = (folder / "1" / "export.json").read_text()
        assert '"/' not in text and "command" not in json.loads(text)["run"]


@pytest.mark.slow
def test_it_answers_in_a_process_with_tensorflow_and_its_text_operations_only(tiny_export):
    command = [sys.executable, "-c", FRESH_PROCESS, str(tiny_export / "1")]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tiny_export)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "['dropped_tokens', 'filled_text', 'pieces', 'scores'] (3, 1, 10)"
    assert "gradient" not in done.stderr


# What is exported


def test_a_length_can_be_asked_for(run_of_kind):
    source = open_source(run_of_kind("classification"), sequence_length=16)
    assert source.task.max_seq_length == source.string_model("float32").packer.max_seq_length == 16


def test_a_model_of_keras_alone_is_refused(tmp_path):
    with pytest.raises(InputError, match="Received: Sequential. `model.export` of Keras"):
        export(keras.Sequential(), tmp_path / "name")
    assert not contents(tmp_path)


@pytest.mark.slow
def test_a_model_from_a_preset_answers_as_its_predict(tiny_run, tmp_path):
    model = AlbertForClassification.from_preset(
        tiny_run, labels=["dull", "warm"], sequence_length=32
    )
    model.save(tmp_path / "films.keras")
    export(tmp_path / "films.keras", tmp_path / "films")
    texts = [text for text in DIRTY if text.strip()]
    assert_alike(Predictor(tmp_path / "films").answer(texts), model.answer(texts))
    with running([tmp_path / "films"]) as server:
        assert serve_check(server.url, "films").faults == {}


@pytest.mark.slow
@pytest.mark.parametrize("precision, kinds", [("bfloat16", 0), ("int8", 1)])
def test_narrow_models_of_all_kinds_pass_all_checks(run_of_kind, tmp_path, precision, kinds):
    for kind in [*SETTINGS][kinds::2]:  # they change the encoder, which all kinds share
        result = export(run_of_kind(kind), tmp_path / kind, precision=precision)
        loss = result.losses[precision]
        assert 0 < loss.num_predictions <= 256
        if kind in ("regression", "multi_regression"):  # scores of a head that was drawn
            assert loss.largest_difference < 2
        else:
            assert loss.agreement > 0.8


@pytest.mark.slow
def test_block_sparse_attention_passes_all_checks(tiny_tokenizer, tiny_corpus, tmp_path):
    task = make_task("classification")
    sparse = {"attention": "block-sparse", "attention_block_size": 4, "attention_random_blocks": 1}
    model = make_model(task, tiny_tokenizer, **sparse)
    assert 5 * 4 < task.max_seq_length  # more positions than one attends to
    run = write_run(tmp_path / "run", task, model, tiny_tokenizer, tiny_corpus)
    result = export(run, tmp_path / "name")
    assert keras.models.load_model(result.keras_file).config.attention == "block-sparse"


@pytest.mark.parametrize(
    "kind",
    ["spans", *slow("choice", "similarity")],
)
def test_tensorflow_lite_answers_as_the_run(kind, of_kind, run_of_kind, tiny_tokenizer, tmp_path):
    source = open_source(run_of_kind(kind))
    files = write_lite(tmp_path, source, ["float16"])
    task, model, module = of_kind(kind)
    predictor = Predictor(write_export(tmp_path / "export" / "1", task, model, tiny_tokenizer))
    losses = compare(source, module, "float32", predictor, files)
    assert losses["lite float16"].num_predictions > 1
    assert losses["lite float16"].largest_difference < 0.01
    signatures = tf.lite.Interpreter(str(files["float16"])).get_signature_list()
    assert signatures["predict_tokens"]["inputs"] == ["input_ids", "input_mask", "segment_ids"]


# Whole or not at all, whoever else publishes, fails or is killed


def test_a_version_and_its_model_for_keras_appear_when_the_block_ends(tmp_path):
    out = tmp_path / "models" / "books"
    with new_version(out) as draft:
        assert contents(draft.folder) == [] and draft.keras_file.suffix == ".keras"
        (draft.folder / "saved_model.pb").write_text("graph")
        draft.keras_file.write_text("keras")
        assert all(name.startswith(".") for name in contents(out)) and not versions(out)
    assert draft.version == 1 and contents(out) == ["1", "model-1.keras"]
    assert (out / "1" / "saved_model.pb").read_text() == "graph"


def test_a_failure_leaves_nothing(tiny_run, tmp_path, monkeypatch):
    def fail(draft, *_):
        (draft.folder / "saved_model.pb").touch()
        draft.keras_file.touch()
        raise KeyboardInterrupt

    monkeypatch.setattr("albert_keras.serving.publish._write_model", fail)
    with pytest.raises(KeyboardInterrupt):
        export(tiny_run, tmp_path / "models" / "name")
    assert not contents(tmp_path)


def test_two_exports_at_once_are_two_versions(tmp_path):
    for name in ("2", "v99", "model-5.keras"):
        (tmp_path / name).mkdir()
    with new_version(tmp_path) as first, new_version(tmp_path / "." / "") as second:
        second.keras_file.write_text("of the second")
    assert (first.version, second.version) == (6, 7)
    assert set(contents(tmp_path)) == {*("2", "6", "7"), "v99", "model-5.keras", "model-7.keras"}
    assert (tmp_path / "model-7.keras").read_text() == "of the second"


def test_what_a_killed_export_left_is_removed(tmp_path):
    with subprocess.Popen(["true"]) as killed:
        killed.wait()
    for name in ("1", f".1.tmp-{killed.pid}"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "model.keras").touch()
    with new_version(tmp_path) as draft:
        assert draft.version == 2
    assert contents(tmp_path) == ["1", "2"]


# Precision


@pytest.mark.slow
def test_narrow_weights_take_less_and_their_loss_is_told_and_kept(small_export, tiny_export):
    def weight_bytes(version):
        return (version / "variables" / "variables.data-00000-of-00001").stat().st_size

    # The object graph lies in the same file, so that small models save less than large ones.
    assert weight_bytes(small_export.path) < 0.6 * weight_bytes(tiny_export / "1")
    losses = small_export.losses
    assert list(losses) == ["int8", "lite float16", "lite int8"]
    assert all(loss.agreement > 0.5 for loss in losses.values())
    assert losses["int8"].largest_difference > 0 and losses["int8"].num_predictions > 100
    record = json.loads((small_export.path / "export.json").read_text())
    assert record["precision"] == "int8"
    assert record["accuracy_loss"] == {name: loss._asdict() for name, loss in losses.items()}


def test_differences_are_those_computed_by_hand():
    expected = [Candidate("a", 0.5), Candidate("b", 0.8), Candidate("c", 0.6)]
    variant = [Candidate("a", 0.3), Candidate("b", 0.8), Candidate("d", 0.7)]
    loss = loss_of(expected, variant)
    assert loss.num_predictions == 3 and loss.agreement == pytest.approx(2 / 3)
    assert loss.largest_difference == pytest.approx(0.2)
    # Scores are the same within a hundredth, and classes by their name.
    scores = [ScoreAnswer("0", 1.0), ScoreAnswer("1", 2.0)]
    assert loss_of(scores, [ScoreAnswer("0", 1.009), ScoreAnswer("1", 2.1)]).agreement == 0.5
    one, other = (ClassAnswer("0", "yes", p, {"yes": p, "no": 1 - p}) for p in (0.9, 0.6))
    loss = loss_of([one], [other])
    assert loss.agreement == 1 and loss.largest_difference == pytest.approx(0.3)


@pytest.mark.parametrize(
    "kind, output, change",
    [
        ("pretraining", "pieces", lambda pieces: pieces[:, :, ::-1]),
        ("pretraining", "scores", lambda scores: scores * 0.9),
        ("classification", "label", lambda labels: labels[::-1]),
        ("classification", "probabilities", lambda shares: shares + 1e-3),
    ],
)
def test_an_export_that_answers_otherwise_is_refused(
    request, tiny_run, run_of_kind, kind, output, change
):
    is_task = kind != "pretraining"
    source = open_source(run_of_kind(kind) if is_task else tiny_run)
    predictor = request.getfixturevalue("pairs_predictor" if is_task else "predictor")

    def changed(signature, **texts):
        answer = predictor.ask(signature, **texts)
        return answer | {output: change(answer[output])}

    module = source.string_model("float32")
    assert compare(source, module, "float32", predictor, {}) == {}
    wrong = SimpleNamespace(ask=changed, names=predictor.names)
    with pytest.raises(RuntimeError, match="does not give the answers of the Python code"):
        compare(source, module, "float32", wrong, {})
    losses = compare(source, module, "int8", wrong, {})
    assert list(losses) == ["int8"]
