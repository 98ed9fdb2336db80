"""Which folders are models, by what names, and which are refused before they are loaded."""

import json
import shutil

import pytest
import tensorflow as tf

from albert_keras.serving.local.exported_versions import ExportedVersion, find_exports, read_task
from albert_keras.serving.local.limits import Limits
from albert_keras.serving.local.served_models import ServedModel
from albert_keras.tasks.kinds import KINDS
from data_pipeline.errors import InputError


@pytest.fixture
def exports(tmp_path):
    """Returns a folder of names with versions that cannot be loaded."""
    for path in ("books/1", "books/12", "other/books/1", "Books/1", "films/v1", "bare"):
        (tmp_path / path).mkdir(parents=True)
        (tmp_path / path / "saved_model.pb").touch()
    (tmp_path / "empty").mkdir()
    return tmp_path


def test_the_newest_version_is_taken_unless_one_is_given(exports):
    assert find_exports([exports / "books"]) == [("books", 12, exports / "books" / "12")]
    assert find_exports([f"{exports}/books/1/"]) == [("books", 1, exports / "books" / "1")]


def test_a_folder_of_models_serves_all_of_them(exports):
    found = find_exports([exports / "other"])
    assert found == [("books", 1, exports / "other" / "books" / "1")]
    (exports / "other" / "letters" / "3").mkdir(parents=True)
    found = find_exports([exports / "other"])
    assert [(one.name, one.version) for one in found] == [("books", 1), ("letters", 3)]
    with pytest.raises(InputError, match="different names"):
        find_exports([exports / "other", exports / "books"])


def test_a_folder_has_its_name_also_where_we_stand_in_it(exports, monkeypatch):
    monkeypatch.chdir(exports / "books" / "1")
    assert find_exports(["."])[0].name == "books"
    assert find_exports([".."])[0].version == 12


@pytest.mark.parametrize(
    "paths, rule",
    [
        (["empty"], "contains no exported model. Create one with"),
        (["not-there"], "contains no exported model. Create one with"),
        (["films"], "contains no exported model"),
        (
            ["films/v1"],
            "have its version as its name, .* Received: `.*films/v1`. Move it to `.*/v1/1`",
        ),
        (["bare"], "have its version as its name"),
        (["Books"], "name of a model must have .* Received: 'Books'. Rename the folder"),
        (["books", "other/books"], "Models must have different names. .* Copy one of them"),
        ([], "at least one model"),
    ],
)
def test_what_cannot_be_served_is_told_with_a_way_out(exports, paths, rule):
    with pytest.raises(InputError, match=rule):
        find_exports([exports / path for path in paths])


def test_the_task_of_an_export_is_read(tmp_path):
    assert read_task(tmp_path) == (None, None)
    task = {"name": "sst-2", "kind": "classification", "labels": ["a", "b"], "takes_pair": False}
    record = {"kind": "finetuning", "task": task | {"max_seq_length": 8}, "step": 3}
    (tmp_path / "export.json").write_text(json.dumps(record))
    assert read_task(tmp_path) == ("finetuning", task)
    (tmp_path / "export.json").write_text('{"step": 3}')
    assert read_task(tmp_path) == (None, None)


@pytest.mark.parametrize("record", ["{", "[]", '{"task": {"name": "sst-2"}}', '{"task": "sst-2"}'])
def test_a_damaged_record_is_told(tmp_path, record):
    (tmp_path / "export.json").write_text(record)
    with pytest.raises(InputError, match="export.json"):
        read_task(tmp_path)


def test_a_model_that_reads_files_is_refused_before_it_is_loaded(tmp_path, monkeypatch):
    @tf.function(input_signature=[tf.TensorSpec([], tf.string)])
    def read(path):
        return {"content": tf.io.read_file(path)}

    folder = tmp_path / "reader" / "1"
    tf.saved_model.save(tf.Module(), str(folder), signatures={"serving_default": read})
    monkeypatch.setattr(tf.saved_model, "load", lambda *_, **__: pytest.fail("it was loaded"))
    with pytest.raises(InputError, match="`ReadFile` in function"):
        ServedModel(ExportedVersion("reader", 1, folder), Limits())


def test_a_model_without_its_weights_is_told(books, tmp_path):
    folder = tmp_path / "books" / "1"
    folder.mkdir(parents=True)
    (folder / "saved_model.pb").write_bytes((books / "3" / "saved_model.pb").read_bytes())
    with pytest.raises(InputError, match="is damaged"):
        ServedModel(ExportedVersion("books", 1, folder), Limits())


def test_the_page_learns_what_a_task_needs(books, tmp_path):
    folder = shutil.copytree(books / "3", tmp_path / "books" / "1")
    described = ServedModel(ExportedVersion("books", 1, folder), Limits()).describe()
    assert described["task"] is None and described["samples"]["language"] == "en"
    assert "[MASK]" in described["samples"]["masked"]
    for kind in (*KINDS.values(), None):  # None for a kind of a later release
        name = "later" if kind is None else kind.name
        task = {"name": "mine", "kind": name, "labels": [], "takes_pair": False}
        (folder / "export.json").write_text(json.dumps({"kind": "finetuning", "task": task}))
        model = ServedModel(ExportedVersion("books", 1, folder), Limits())
        expected = kind is not None and kind.finds_spans
        assert model.describe()["task"] == task | {"finds_spans": expected}
