"""Weights come from a run, a checkpoint, an export or a `.keras` file: all of them, or an error."""

import json
import os
import shutil
import zipfile

import numpy as np
import pytest
from tensorflow import keras

from albert_keras.config import AlbertConfig
from albert_keras.finetuning.origin import open_origin
from albert_keras.models.encoder import AlbertEncoder
from albert_keras.models.finetuning import build_model
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.training.run import Run
from albert_keras.training.tensors import weight_names, write_tensors
from data_pipeline.errors import InputError
from data_pipeline.tokenization import Tokenizer

QUERY = "bert/encoder/transformer/group_0/inner_group_0/attention_1/self/query/kernel"
TABLE = "bert/embeddings/word_embeddings"


@pytest.fixture(scope="module")
def config(tiny_run):
    return Run.open(tiny_run).albert_config


@pytest.fixture(scope="module")
def pretrained(tiny_run, config):
    """Returns the run's model as it was after its last step."""
    model = AlbertForPretraining(config)
    Run.open(tiny_run).checkpoints.restore(12, model)
    return model


@pytest.fixture
def model(config):
    return build_model("classification", config, 3, seed=9)


@pytest.fixture
def foreign(tmp_path, tiny_tokenizer, config, pretrained):
    """Returns a function that writes a checkpoint as the reference does; gives its prefix."""

    def write(change=lambda tensors: None, tokenizer=tiny_tokenizer):
        config.save(tmp_path / "albert_config.json")
        if tokenizer is not None:
            (tmp_path / "spm.model").write_bytes(tokenizer.model_bytes)
        tensors = values_of(pretrained)
        tensors[f"{QUERY}/adam_m"] = np.zeros((2, 2), np.float32)
        change(tensors)
        write_tensors(tmp_path / "model.ckpt-best", tensors)
        return tmp_path / "model.ckpt-best"

    return write


@pytest.fixture
def exported(tmp_path, tiny_run, pretrained, config):
    """Returns the folder of a name with versions 9 (of other weights) and 10."""
    for version, model in (("9", AlbertForPretraining(config, seed=3)), ("10", pretrained)):
        folder = tmp_path / "books" / version
        shutil.copytree(tiny_run / "tokenizer", folder / "tokenizer")
        model.save(folder / "model.keras")
        config.save(folder / "albert_config.json")
        record = {"step": 12, "run": Run.open(tiny_run).record}
        (folder / "export.json").write_text(json.dumps(record))
    return tmp_path / "books"


@pytest.fixture(scope="module")
def other_tokenizer(tiny_tokenizer):
    settings = tiny_tokenizer.config.replace(compat_py3=not tiny_tokenizer.config.compat_py3)
    return Tokenizer(tiny_tokenizer.model_bytes, settings)


def values_of(model):
    return {name: weight.numpy() for name, weight in weight_names(model).items()}


def encoder_of(model):
    return {name: value for name, value in values_of(model).items() if name.startswith("bert/")}


def assert_loads(origin, model, pretrained):
    before = values_of(model)
    report = origin.load(model)
    wanted, found = encoder_of(pretrained), values_of(model)
    assert report.loaded == {name: value.size for name, value in wanted.items()}
    for name, value in wanted.items():
        np.testing.assert_array_equal(found[name], value, err_msg=name)
    assert report.new == {"output_weights": 96, "output_bias": 3}
    for name in report.new:
        np.testing.assert_array_equal(found[name], before[name])
    return report


def refused(model, origin):
    """Returns what loading says, and makes sure that it changed nothing."""
    before = values_of(model)
    with pytest.raises(InputError) as caught:
        origin.load(model)
    after = values_of(model)
    assert all(np.array_equal(after[name], value) for name, value in before.items())
    return str(caught.value)


@pytest.mark.parametrize(
    "below, kind",
    [
        ("", "run"),
        ("checkpoints/step-00000012", "checkpoint"),
        ("checkpoints/step-00000012/model.ckpt", "checkpoint"),
        ("checkpoints/step-00000012/model.ckpt.index", "checkpoint"),
        ("checkpoints/step-00000012/model.ckpt.data-00000-of-00001", "checkpoint"),
    ],
)
def test_a_run_and_its_checkpoints(tiny_run, below, kind, model, pretrained, config):
    origin = open_origin(tiny_run / below)
    assert (origin.kind, origin.step, origin.albert_config) == (kind, 12, config)
    assert origin.tokenizer_folder == tiny_run / "tokenizer"
    report = assert_loads(origin, model, pretrained)
    numbers = sum(value.size for value in encoder_of(pretrained).values())
    assert report.lines() == [
        f"from {tiny_run / below} step 12: {len(report.loaded)} encoder weights "
        f"({numbers:,} numbers)",
        "new: output_weights, output_bias (99 numbers)",
        "left: masked-LM head, sentence-order head, training state, optimizer moments",
    ]
    assert set(report.left["sentence-order head"]) >= {"cls/seq_relationship/output_bias"}


def test_an_export_a_version_and_a_keras_file(exported, model, pretrained, config):
    for path, kind in (("", "export"), ("10", "export"), ("10/model.keras", "keras")):
        origin = open_origin(exported / path)
        assert (origin.kind, origin.step, origin.albert_config) == (kind, 12, config)
        assert_loads(origin, build_model("classification", config, 3), pretrained)
    assert open_origin(exported / "9").digest != origin.digest


def test_the_digest_is_the_weights_whatever_holds_them(tiny_run, exported, foreign, config):
    def rename(tensors):
        for name in list(tensors):
            tensors[f"module/{name}"] = tensors.pop(name)

    digests = {open_origin(path).digest for path in (tiny_run, exported, foreign(rename))}
    assert len(digests) == 1 and len(digests.pop()) == 64
    assert open_origin(tiny_run, step=5).digest not in digests


def test_a_checkpoint_of_the_reference(foreign, model, pretrained):
    prefix = foreign()
    for path in (prefix, prefix.parent):
        origin = open_origin(path)
        assert origin.step is None and origin.tokenizer_folder is None
        report = assert_loads(origin, model, pretrained)
    assert report.left["optimizer moments"] == (f"{QUERY}/adam_m",)


def test_half_precision_counts_as_floats(foreign, model, pretrained):
    half = encoder_of(pretrained)[QUERY].astype(np.float16)
    open_origin(foreign(lambda tensors: tensors.update({QUERY: half}))).load(model)
    np.testing.assert_array_equal(values_of(model)[QUERY], half.astype(np.float32))


def test_an_encoder_alone_in_a_keras_file(tmp_path, model, tiny_tokenizer, config):
    encoder = AlbertEncoder(config, seed=4)
    encoder.save(tmp_path / "encoder.keras")
    origin = open_origin(tmp_path / "encoder.keras", tokenizer=tiny_tokenizer)
    assert origin.tokenizer is tiny_tokenizer
    assert not assert_loads(origin, model, encoder).left


def test_steps_of_a_run(tiny_run, exported, tmp_path, pretrained):
    assert open_origin(tiny_run, step=5).step == 5
    run = Run.open(shutil.copytree(tiny_run, tmp_path / "run"))
    for step, score in ((13, 0.2), (14, 0.3)):
        run.checkpoints.save(step, weight_names(pretrained), score=score)
    assert open_origin(run.path).step == 14
    assert open_origin(run.path, step="best").step == 13
    with pytest.raises(InputError, match=r"has no checkpoint of step 7. It has: 5, 10, 12"):
        open_origin(tiny_run, step=7)
    for path in (None, exported, tiny_run / "checkpoints/step-00000012"):
        with pytest.raises(InputError, match="`step` is for the folder of a run"):
            open_origin(path, step=5)


def test_random_weights_need_a_shape_and_a_tokenizer(tmp_path, tiny_tokenizer, config, model):
    tiny_tokenizer.save(tmp_path / "tokenizer")
    config.save(tmp_path / "shape.json")
    origin = open_origin("random", None, tmp_path / "shape.json", tmp_path / "tokenizer")
    assert (origin.path, origin.kind, origin.digest) == ("random", "random", "random")
    assert origin.albert_config == config and origin.tokenizer_folder == tmp_path / "tokenizer"
    before, report = values_of(model), origin.load(model)
    assert all(np.array_equal(values_of(model)[name], value) for name, value in before.items())
    assert not report.loaded and report.new.keys() == before.keys()
    assert report.lines()[0].startswith(f"from nothing: all {len(before)} weights are random")
    named = open_origin(None, albert_config="albert-tiny", tokenizer=tiny_tokenizer)
    assert named.albert_config == AlbertConfig.from_name("albert-tiny", vocab_size=280)
    with pytest.raises(InputError, match="without an albert_config"):
        open_origin(None, tokenizer=tiny_tokenizer)
    with pytest.raises(InputError, match="without a tokenizer"):
        open_origin(None, albert_config="albert-tiny")


def test_a_head_is_loaded_for_the_same_task_if_it_fits(tmp_path, tiny_tokenizer, config, model):
    trained = build_model("classification", config, 3, seed=1)
    trained.save(tmp_path / "sst2.keras")
    origin = open_origin(tmp_path / "sst2.keras", tokenizer=tiny_tokenizer)
    assert assert_loads(origin, model, trained).left.keys() == {"task head"}
    two = build_model("classification", config, 2)
    assert origin.load(two, with_head=True).new == {"output_weights": 64, "output_bias": 2}
    report = origin.load(model, with_head=True)
    assert not report.new and not report.left and len(report.lines()) == 1
    assert report.lines()[0].endswith(" and output_weights, output_bias (99 numbers)")
    for name, value in values_of(trained).items():
        np.testing.assert_array_equal(values_of(model)[name], value)


def drop(tensors, name):
    del tensors[name]


def rename(tensors, name):
    tensors[f"{name}_0"] = tensors.pop(name)


def transpose(tensors, name):
    tensors[name] = np.ascontiguousarray(tensors[name].T)


def spoil(tensors, name):
    tensors[name] = tensors[name].copy()
    tensors[name][0, 0] = np.nan


@pytest.mark.parametrize(
    "change, name, says",
    [
        (drop, QUERY, [f"{QUERY}: [32, 32] wanted, nothing found"]),
        (transpose, TABLE, [f"{TABLE}: [280, 16] wanted, [16, 280] found"]),
        (rename, QUERY, [f"{QUERY}: [32, 32] wanted", f"{QUERY}_0: nothing wanted, [32, 32]"]),
        (spoil, TABLE, ["not finite", f"{TABLE}: 1 of 4,480"]),
        (lambda t, name: t.update({name: t[name].astype(int)}), QUERY, [f"{QUERY}: floats wanted"]),
        (lambda t, name: t.update({name: t[name] * 1e300}), QUERY, [f"{QUERY}: 1,024 of 1,024"]),
        (
            lambda t, name: t.update({name.replace("group_0", "group_1", 1): t[name]}),
            QUERY,
            [f"{QUERY.replace('group_0', 'group_1', 1)}: nothing wanted, [32, 32] found"],
        ),
    ],
)
def test_a_tensor_that_does_not_fit_is_named(foreign, model, change, name, says):
    message = refused(model, open_origin(foreign(lambda tensors: change(tensors, name))))
    assert all(part in message for part in says), message
    assert message.count("\n") == len([part for part in says if "bert/" in part])


def test_all_that_does_not_fit_is_told_at_once(foreign, model):
    message = refused(model, open_origin(foreign(lambda t: (drop(t, QUERY), transpose(t, TABLE)))))
    assert QUERY in message and TABLE in message


def test_another_number_of_positions_does_not_fit(tiny_run, config):
    longer = build_model("classification", config.replace(max_position_embeddings=128), 3)
    message = refused(longer, open_origin(tiny_run))
    assert "bert/embeddings/position_embeddings: [128, 16] wanted, [64, 16] found" in message


def test_a_damaged_checkpoint_is_refused(tiny_run, tmp_path):
    run = shutil.copytree(tiny_run, tmp_path / "run")
    folder = run / "checkpoints/step-00000012"
    (data,) = folder.glob("model.ckpt.data-*")
    os.truncate(data, data.stat().st_size - 1)
    for path, step in ((folder, None), (folder / "model.ckpt", None), (run, 12)):
        with pytest.raises(InputError, match="step-00000012` is damaged: `model.ckpt.data"):
            open_origin(path, step)
    assert open_origin(run).step == 10


def test_damaged_bytes_of_a_foreign_checkpoint_are_told(foreign, model):
    origin = open_origin(foreign())
    with open(f"{origin.path}.data-00000-of-00001", "r+b") as file:
        file.write(b"\x01" * 400)
    assert "cannot be read" in refused(model, origin)


def test_a_tokenizer_that_is_not_the_one_of_the_training_is_refused(
    tiny_run, exported, other_tokenizer, digit_tokenizer
):
    for path in (tiny_run, tiny_run / "checkpoints/step-00000012", exported):
        for tokenizer in (other_tokenizer, digit_tokenizer):
            with pytest.raises(InputError, match=f"Received: {tokenizer.digest}"):
                open_origin(path, tokenizer=tokenizer)


def test_a_tokenizer_of_another_size_is_refused(foreign, config, tmp_path):
    prefix = foreign()
    config.replace(vocab_size=281).save(tmp_path / "albert_config.json")
    with pytest.raises(InputError, match="should have 281 pieces.* Received: 280"):
        open_origin(prefix)


def test_tokenizers_are_missing_or_too_many(foreign, tmp_path, tiny_tokenizer):
    with pytest.raises(InputError, match="without a tokenizer"):
        open_origin(foreign(tokenizer=None))
    prefix = foreign()
    shutil.copy(tmp_path / "spm.model", tmp_path / "other.model")
    with pytest.raises(InputError, match="Give one of them: other.model, spm.model"):
        open_origin(prefix)
    assert open_origin(prefix, tokenizer=tmp_path / "spm.model").tokenizer_folder is None


def test_a_shape_may_change_dropout_and_nothing_that_weights_depend_on(tiny_run, config):
    given = config.replace(hidden_dropout_prob=0.1)
    assert open_origin(tiny_run, albert_config=given).albert_config == given
    given = config.replace(num_attention_heads=4, hidden_act="relu")
    with pytest.raises(InputError, match="num_attention_heads: 4 in .*, 2 in") as caught:
        open_origin(tiny_run, albert_config=given)
    assert "hidden_act: 'relu'" in str(caught.value)


def test_several_runs_are_listed_to_choose_from(tmp_path):
    for seed in (1, 2):
        (tmp_path / f"seed-{seed}").mkdir()
        (tmp_path / f"seed-{seed}" / "run.json").touch()
    with pytest.raises(InputError, match="Choose one of them: seed-1, seed-2"):
        open_origin(tmp_path)


def test_what_is_nothing_of_all_this_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"There is nothing of these"):
        open_origin(tmp_path / "nowhere")
    with pytest.raises(InputError, match=r"Checkpoints in it: none"):
        open_origin(tmp_path)
    (tmp_path / "model.ckpt.index").write_text("text")
    with pytest.raises(InputError, match="should be a TensorFlow checkpoint"):
        open_origin(tmp_path)
    write_tensors(tmp_path / "model.ckpt", {"albert/kernel": np.zeros(3, np.float32)})
    with pytest.raises(InputError, match=r"named as in the reference. It has: albert/kernel"):
        open_origin(tmp_path)


@pytest.mark.parametrize(
    "layer", [keras.layers.Dense(2), keras.layers.Lambda(lambda x: x)], ids=["dense", "lambda"]
)
def test_a_keras_file_of_something_else_is_refused(tmp_path, tiny_tokenizer, layer):
    path = tmp_path / "other.keras"
    keras.Sequential([keras.Input((3,)), layer]).save(path)
    with pytest.raises(InputError, match="should hold a model of albert_keras"):
        open_origin(path, tokenizer=tiny_tokenizer)


@pytest.mark.parametrize("inside", [True, False])
def test_no_module_that_a_keras_file_names_is_imported(tmp_path, exported, inside, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    trap = {"module": "trap", "class_name": "Trap", "registered_name": None, "config": {}}
    path = exported / "10/model.keras"
    with zipfile.ZipFile(path) as archive:
        files = {name: archive.read(name) for name in archive.namelist()}
    content = json.loads(files["config.json"])
    content = content | {"config": content["config"] | {"dtype": trap}} if inside else trap
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in (files | {"config.json": json.dumps(content)}).items():
            archive.writestr(name, data)
    with pytest.raises(InputError, match="model.keras"):
        open_origin(path)


def test_a_keras_file_that_is_none_is_refused(tmp_path, tiny_tokenizer, exported, model):
    (tmp_path / "text.keras").write_text("text")
    with pytest.raises(InputError, match="should be a `.keras` model"):
        open_origin(tmp_path / "text.keras", tokenizer=tiny_tokenizer)
    origin = open_origin(exported)
    os.truncate(exported / "10/model.keras", 1000)
    assert "should be a `.keras` model" in refused(model, origin)
