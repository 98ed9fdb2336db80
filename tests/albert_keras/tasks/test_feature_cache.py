"""Features are kept, and made anew as soon as anything they depend on is another."""

import numpy as np
import pytest

from albert_keras.tasks import feature_cache
from albert_keras.tasks.examples import Answer, QuestionExample, TextExample
from albert_keras.tasks.feature_cache import cached_features, features_key

EXAMPLES = [TextExample("1", "a", "b", "yes"), TextExample("2", "c\nd", None, 0.5)]
SETTINGS = {"max_seq_length": 8, "labels": ["no", "yes"]}


class Build:
    """Counts how often it is asked for features."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return {
            "input_ids": np.arange(4000, dtype=np.int32).reshape(2, -1),
            "scores": np.array([0.5, np.nan], np.float32),
            "names": np.array(["ä", ""]),
        }


@pytest.fixture
def build():
    return Build()


def only_file(folder):
    (path,) = folder.iterdir()
    return path


def check(features):
    for name, values in Build()().items():
        assert features[name].dtype == values.dtype
        np.testing.assert_array_equal(features[name], values)
    assert len(features) == 3


def test_features_are_made_once(tmp_path, tiny_tokenizer, build):
    folder = tmp_path / "deep" / "cache"
    for _ in range(3):
        check(cached_features(folder, "pair", EXAMPLES, tiny_tokenizer, SETTINGS, build))
    assert build.calls == 1
    assert only_file(folder).name.startswith("pair-")


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "choice"},
        {"settings": {**SETTINGS, "max_seq_length": 9}},
        {"settings": {**SETTINGS, "labels": ["yes", "no"]}},
        {"examples": EXAMPLES[::-1]},
        {"examples": EXAMPLES[:1]},
        {"examples": [EXAMPLES[0]._replace(first="A"), EXAMPLES[1]]},
        {"examples": [EXAMPLES[0]._replace(label="no"), EXAMPLES[1]]},
        {"examples": [TextExample("1", "a", "b", "yes"), TextExample("2", "c", "d", 0.5)]},
        {"examples": [TextExample("1", "ab", "", "yes"), EXAMPLES[1]]},
    ],
)
def test_anything_else_makes_them_anew(tmp_path, tiny_tokenizer, build, changes):
    arguments = {
        "name": "pair",
        "examples": EXAMPLES,
        "tokenizer": tiny_tokenizer,
        "settings": SETTINGS,
    }
    cached_features(tmp_path, build=build, **arguments)
    cached_features(tmp_path, build=build, **(arguments | changes))
    cached_features(tmp_path, build=build, **arguments)
    assert build.calls == 2
    assert len(list(tmp_path.iterdir())) == 2


def test_another_tokenizer_makes_them_anew(tiny_tokenizer, digit_tokenizer):
    keys = {
        features_key("pair", EXAMPLES, tokenizer, SETTINGS)
        for tokenizer in (tiny_tokenizer, digit_tokenizer)
    }
    assert len(keys) == 2


def test_another_code_makes_them_anew(tmp_path, tiny_tokenizer, build, monkeypatch):
    cached_features(tmp_path, "pair", EXAMPLES, tiny_tokenizer, SETTINGS, build)
    monkeypatch.setattr(feature_cache, "_code_version", lambda: ["another"])
    cached_features(tmp_path, "pair", EXAMPLES, tiny_tokenizer, SETTINGS, build)
    assert build.calls == 2


@pytest.mark.parametrize("folder", ["data_pipeline", "data_pipeline/text", "albert_keras/tasks"])
def test_the_code_version_follows_the_sources(tmp_path, monkeypatch, folder):
    version = feature_cache._code_version.__wrapped__
    source = tmp_path / folder / "here.py"
    source.parent.mkdir(parents=True)
    monkeypatch.setattr(feature_cache, "__file__", str(tmp_path / "albert_keras/tasks/here.py"))
    versions = []
    for text in ("a = 1", "a = 2"):
        source.write_text(text)
        versions.append(version()[0])
    assert versions[0] != versions[1]


def test_the_type_of_an_example_counts(tiny_tokenizer):
    question = QuestionExample("1", "q", "c", (Answer("c", 0),), False)
    plain = ("1", "q", "c", (("c", 0),), False)
    assert features_key("x", [question], tiny_tokenizer, {}) != features_key(
        "x", [plain], tiny_tokenizer, {}
    )


def damage(path, how):
    content = bytearray(path.read_bytes())
    if how == "cut":
        del content[len(content) // 2 :]
    elif how == "empty":
        content.clear()
    elif how == "flipped":
        content[5000] ^= 1
    elif how == "no zip":
        content[:] = b"nothing"
    path.write_bytes(content)


@pytest.mark.parametrize("how", ["cut", "empty", "flipped", "no zip"])
def test_a_damaged_file_is_made_anew_and_told(tmp_path, tiny_tokenizer, build, caplog, how):
    arguments = (tmp_path, "pair", EXAMPLES, tiny_tokenizer, SETTINGS, build)
    cached_features(*arguments)
    whole = only_file(tmp_path).read_bytes()
    damage(only_file(tmp_path), how)
    check(cached_features(*arguments))
    assert build.calls == 2
    assert f"{only_file(tmp_path)}` is damaged (" in caplog.text
    check(cached_features(*arguments))
    assert build.calls == 2 and len(only_file(tmp_path).read_bytes()) == len(whole)


def test_a_file_under_the_name_of_another_is_not_believed(tmp_path, tiny_tokenizer, build, caplog):
    cached_features(tmp_path / "one", "pair", EXAMPLES, tiny_tokenizer, SETTINGS, build)
    cached_features(tmp_path / "two", "pair", EXAMPLES[:1], tiny_tokenizer, SETTINGS, build)
    only_file(tmp_path / "one").replace(only_file(tmp_path / "two"))
    cached_features(tmp_path / "two", "pair", EXAMPLES[:1], tiny_tokenizer, SETTINGS, build)
    assert build.calls == 3
    assert "it contains other features" in caplog.text


def test_a_failure_leaves_nothing(tmp_path, tiny_tokenizer, monkeypatch, build):
    def fail(file, array, **_):
        file.write(b"half")
        raise OSError("disk full")

    monkeypatch.setattr(np.lib.format, "write_array", fail)
    with pytest.raises(OSError, match="disk full"):
        cached_features(tmp_path, "pair", EXAMPLES, tiny_tokenizer, SETTINGS, build)
    assert list(tmp_path.iterdir()) == []


def test_objects_are_refused(tmp_path, tiny_tokenizer):
    with pytest.raises(ValueError, match="arrays of numbers or text. 'x' is not"):
        cached_features(tmp_path, "x", [], tiny_tokenizer, {}, lambda: {"x": np.array([None, "a"])})
    with pytest.raises(TypeError, match="not JSON serializable"):
        cached_features(tmp_path, "x", [object()], tiny_tokenizer, {}, dict)
    assert list(tmp_path.iterdir()) == []
