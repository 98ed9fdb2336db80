"""Weights come from a run, a checkpoint, an export or a `.keras` file: all of them, or an error."""

import json
import os
import shutil
import zipfile

import numpy as np
import pytest

from albert_keras.cli import main
from albert_keras.config import AlbertConfig
from albert_keras.formats.open_weights import format_module, open_weights
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.preprocessor import AlbertPreprocessor
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.text_classifiers import AlbertForClassification, AlbertForRegression
from albert_keras.runs.run import Run
from albert_keras.runs.tensors import weight_names, write_tensors
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.albert_keras.formats.random_weights import pretraining_weights
from tests.albert_keras.loaded_weights import assert_loads, encoder_of, values_of
from tests.albert_keras.tasks.small_tasks import build_model


@pytest.fixture(scope="module")
def config(pretrained):
    return pretrained.config


@pytest.fixture
def model(config):
    return build_model("classification", config, 3, seed=9)


@pytest.fixture(scope="module")
def exports(tmp_path_factory, tiny_run, pretrained, config):
    """Returns the folder of a name with versions 9 (of other weights) and 10."""
    name = tmp_path_factory.mktemp("exports") / "books"
    other = AlbertForPretraining(config, seed=3)
    for version, model in (("9", other), ("10", pretrained)):
        folder = name / version
        shutil.copytree(tiny_run / "tokenizer", folder / "tokenizer")
        model.save(name / f"model-{version}.keras")
        config.save(folder / "albert_config.json")
        record = {"step": 12, "run": Run.open(tiny_run).record}
        (folder / "export.json").write_text(json.dumps(record))
    return name


@pytest.fixture
def exported(exports, tmp_path):
    """Returns a copy of it, to be broken."""
    return shutil.copytree(exports, tmp_path / "books")


@pytest.fixture(scope="module")
def other_tokenizer(tiny_tokenizer):
    settings = tiny_tokenizer.config.replace(compat_py3=not tiny_tokenizer.config.compat_py3)
    return Tokenizer(tiny_tokenizer.model_bytes, settings)


@pytest.mark.parametrize(
    "below, kind",
    [
        ("", "run"),
        ("checkpoints/step-00000012", "checkpoint"),
        ("checkpoints/step-00000012/model.ckpt", "checkpoint"),
        ("checkpoints/step-00000012/model.ckpt.index", "checkpoint"),
    ],
)
def test_a_run_and_its_checkpoints(tiny_run, below, kind, model, pretrained, config):
    origin = open_weights(tiny_run / below)
    assert (origin.kind, origin.step, origin.albert_config) == (kind, 12, config)
    report = assert_loads(origin, model, pretrained)
    numbers = sum(value.size for value in encoder_of(pretrained).values())
    assert report.lines() == [
        f"loaded from {tiny_run / below} step 12: {len(report.loaded)} encoder weights "
        f"({numbers:,} values)",
        "newly initialized: output_weights, output_bias (99 values)",
        "heads not used: masked_lm, sentence_order",
    ]


def test_an_export_a_version_and_a_keras_file(exported, model, pretrained, config):
    for path, kind in (("", "export"), ("10", "export"), ("model-10.keras", "keras")):
        origin = open_weights(exported / path)
        assert (origin.kind, origin.step, origin.albert_config) == (kind, 12, config)
        assert_loads(origin, build_model("classification", config, 3), pretrained)
    others = [open_weights(exported / path) for path in ("9", "model-9.keras")]
    assert [(one.kind, one.step) for one in others] == [("export", 12), ("keras", 12)]
    assert others[0].digest == others[1].digest != origin.digest
    (exported / "model-10.keras").unlink()
    with pytest.raises(InputError, match="weights of the export .* are missing"):
        open_weights(exported)


def test_the_digest_is_the_weights_whatever_holds_them(tiny_run, exported, foreign, config):
    def rename(tensors):
        for name in list(tensors):
            tensors[f"module/{name}"] = tensors.pop(name)

    digests = {open_weights(path).digest for path in (tiny_run, exported, foreign(rename))}
    assert len(digests) == 1 and len(digests.pop()) == 64
    assert open_weights(tiny_run, step=5).digest not in digests


def test_an_encoder_alone_in_a_keras_file(tmp_path, model, tiny_tokenizer, config):
    encoder = AlbertEncoder(config, seed=4)
    encoder.save(tmp_path / "encoder.keras")
    origin = open_weights(tmp_path / "encoder.keras", tokenizer=tiny_tokenizer)
    assert origin.tokenizer is tiny_tokenizer
    assert not assert_loads(origin, model, encoder).unused


def test_a_keras_file_of_a_model_of_texts_has_its_tokenizer(
    tmp_path, tiny_tokenizer, other_tokenizer, config
):
    path = tmp_path / "texts.keras"
    preprocessor = AlbertPreprocessor(tiny_tokenizer, 64)
    build_model("classification", config, 3, preprocessor=preprocessor).save(path)
    origin = open_weights(path)
    assert origin.tokenizer.digest == tiny_tokenizer.digest
    assert AlbertPreprocessor.from_preset(path).tokenizer.digest == tiny_tokenizer.digest
    assert AlbertForRegression.from_preset(path).tokenizer.digest == tiny_tokenizer.digest
    assert AlbertForClassification.from_preset(path, labels=["x", "y"]).labels == ("x", "y")
    assert open_weights(path, tokenizer=other_tokenizer).tokenizer is other_tokenizer
    other_tokenizer.save(tmp_path / "tokenizer")
    assert open_weights(path).tokenizer.digest == other_tokenizer.digest


def test_steps_of_a_run(tiny_run, exported, tmp_path, pretrained):
    assert open_weights(tiny_run, step=5).step == 5
    run = Run.open(shutil.copytree(tiny_run, tmp_path / "run"))
    for step, score in ((13, 0.2), (14, 0.3)):
        run.checkpoints.save(step, weight_names(pretrained), score=score)
    assert open_weights(run.path).step == 14
    assert open_weights(run.path, step="best").step == 13
    with pytest.raises(InputError, match=r"has no checkpoint of step 7. It has: 5, 10, 12"):
        open_weights(tiny_run, step=7)
    for path in (None, exported, tiny_run / "checkpoints/step-00000012"):
        with pytest.raises(InputError, match="`step` applies to the folder of a run only"):
            open_weights(path, step=5)


def test_random_weights_need_a_shape_and_a_tokenizer(tmp_path, tiny_tokenizer, config, model):
    tiny_tokenizer.save(tmp_path / "tokenizer")
    config.save(tmp_path / "shape.json")
    origin = open_weights("random", None, tmp_path / "shape.json", tmp_path / "tokenizer")
    assert (origin.path, origin.kind, origin.digest) == ("random", "random", "random")
    assert origin.albert_config == config
    before, report = values_of(model), origin.load(model)
    assert all(np.array_equal(values_of(model)[name], value) for name, value in before.items())
    assert not report.loaded and report.new.keys() == before.keys()
    assert report.lines()[0].startswith(f"all {len(before)} weights are random")
    named = open_weights(None, albert_config="albert-tiny", tokenizer=tiny_tokenizer)
    assert named.albert_config == AlbertConfig.from_name("albert-tiny", vocab_size=307)
    with pytest.raises(InputError, match="has no albert_config"):
        open_weights(None, tokenizer=tiny_tokenizer)
    with pytest.raises(InputError, match="has no tokenizer"):
        _ = open_weights(None, albert_config="albert-tiny").tokenizer


def test_a_damaged_checkpoint_is_refused(tiny_run, tmp_path):
    run = shutil.copytree(tiny_run, tmp_path / "run")
    folder = run / "checkpoints/step-00000012"
    (data,) = folder.glob("model.ckpt.data-*")
    os.truncate(data, data.stat().st_size - 1)
    for path, step in ((folder, None), (folder / "model.ckpt", None), (run, 12)):
        with pytest.raises(InputError, match="step-00000012` is damaged: `model.ckpt.data"):
            open_weights(path, step)
    assert open_weights(run).step == 10


def test_a_tokenizer_that_is_not_the_one_of_the_training_is_refused(
    tiny_run, exported, other_tokenizer, digit_tokenizer
):
    for path in (tiny_run, tiny_run / "checkpoints/step-00000012", exported):
        for tokenizer in (other_tokenizer, digit_tokenizer):
            with pytest.raises(InputError, match=f"Received: {tokenizer.digest}"):
                open_weights(path, tokenizer=tokenizer)


def test_tokenizers_are_missing_or_too_many(foreign, tmp_path, tiny_tokenizer):
    with pytest.raises(InputError, match="has no tokenizer"):
        _ = open_weights(foreign(tokenizer=None)).tokenizer
    prefix = foreign()
    shutil.copy(tmp_path / "spm.model", tmp_path / "other.model")
    with pytest.raises(InputError, match="Give one of them: other.model, spm.model"):
        open_weights(prefix)
    assert open_weights(prefix, tokenizer=tmp_path / "spm.model").has_tokenizer


def test_a_shape_may_change_dropout_and_nothing_that_weights_depend_on(tiny_run, config):
    given = config.replace(hidden_dropout_prob=0.1)
    assert open_weights(tiny_run, albert_config=given).albert_config == given
    given = config.replace(num_attention_heads=4, hidden_act="relu")
    with pytest.raises(InputError, match="num_attention_heads: 4 in .*, 2 in") as caught:
        open_weights(tiny_run, albert_config=given)
    assert "hidden_act: 'relu'" in str(caught.value)


def test_another_checkpoint_is_refused(tmp_path):
    (tmp_path / "model.ckpt.index").write_text("text")
    with pytest.raises(InputError, match="is not a readable checkpoint"):
        open_weights(tmp_path)
    write_tensors(tmp_path / "model.ckpt", {"albert/kernel": np.zeros(3, np.float32)})
    with pytest.raises(InputError, match=r"as the reference names them. It has: albert/kernel"):
        open_weights(tmp_path)


@pytest.fixture(scope="module")
def hugging_face(tmp_path_factory):
    """Returns a folder of Hugging Face without a vocabulary."""
    folder = tmp_path_factory.mktemp("foreign") / "theirs"
    folder.mkdir()
    format_module("hugging-face").write(pretraining_weights(vocab_size=307), folder)
    return folder


def test_a_foreign_model_is_converted_while_loading(hugging_face, tiny_tokenizer):
    with pytest.raises(InputError, match="has no tokenizer. Pass .* as `tokenizer`"):
        _ = open_weights(hugging_face).tokenizer
    found = open_weights(hugging_face, tokenizer=tiny_tokenizer)
    assert found.kind == "hugging-face" and found.albert_config.hidden_size == 8


def test_commands_that_take_no_foreign_model_name_the_conversion(hugging_face, capsys):
    assert main(["predict", str(hugging_face), "a text"]) == 2
    message = capsys.readouterr().err
    assert f"`albert-keras convert {hugging_face} models/theirs`" in message


def test_no_module_that_a_keras_file_names_is_imported(tmp_path, exported, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    trap = {"module": "trap", "class_name": "Trap", "registered_name": None, "config": {}}
    path = exported / "model-10.keras"
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(files["config.json"])
    content["config"]["dtype"] = trap
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (files | {"config.json": json.dumps(content)}).items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match="10.keras"):
        open_weights(path)
