"""A version appears whole or not at all, whoever else publishes, fails or is killed."""

import pytest

from albert_keras.formats.detection import versions
from albert_keras.serving.layout import new_version
from data_pipeline.errors import InputError

LARGEST = 2**63 - 1


def publish(out, **options):
    with new_version(out, **options) as draft:
        (draft.folder / "saved_model.pb").write_text("graph")
        draft.keras_file.write_text("keras")
    return draft.version


def contents(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_version_and_its_model_for_keras_appear_when_the_block_ends(tmp_path):
    out = tmp_path / "models" / "books"
    with new_version(out) as draft:
        assert contents(draft.folder) == [] and draft.keras_file.suffix == ".keras"
        (draft.folder / "saved_model.pb").write_text("graph")
        draft.keras_file.write_text("keras")
        assert all(name.startswith(".") for name in contents(out)) and not versions(out)
    assert draft.version == 1 and contents(out) == ["1", "1.keras"]
    assert (out / "1" / "saved_model.pb").read_text() == "graph"


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_failure_leaves_nothing(tmp_path, error):
    with pytest.raises(error), new_version(tmp_path / "models" / "books") as draft:
        (draft.folder / "saved_model.pb").touch()
        draft.keras_file.touch()
        raise error
    assert contents(tmp_path) == []


def test_the_number_is_the_one_after_the_largest(tmp_path):
    for name in ("2", "0010", "v99", str(LARGEST + 1)):
        (tmp_path / name).mkdir()
    assert publish(tmp_path) == 11
    (tmp_path / "20.keras").touch()
    assert publish(tmp_path) == 21
    assert publish(tmp_path, version=LARGEST) == LARGEST
    with pytest.raises(InputError, match=f"from 1 to .* Received: {LARGEST + 1}"):
        publish(tmp_path)


@pytest.mark.parametrize("version", [0, LARGEST + 1, "1"])
def test_an_impossible_version_is_refused(tmp_path, version):
    with pytest.raises(InputError, match="A version must be an int from 1"):
        publish(tmp_path / "books", version=version)
    assert contents(tmp_path) == []


@pytest.mark.parametrize("name", ["3", "003", "+3", "3.keras"])
def test_a_version_that_exists_is_refused_before_any_work(tmp_path, name):
    (tmp_path / name).mkdir()
    with pytest.raises(InputError, match="nothing is ever overwritten"):
        with new_version(tmp_path, version=3):
            pytest.fail("the block was run")
    assert contents(tmp_path) == [name]


def test_of_two_exports_at_once_one_is_published(tmp_path):
    with pytest.raises(InputError, match="nothing is ever overwritten"):
        with new_version(tmp_path) as draft:
            draft.keras_file.write_text("of the first")
            assert publish(tmp_path / "." / "") == 1
    assert contents(tmp_path) == ["1", "1.keras"]
    assert (tmp_path / "1.keras").read_text() == "keras"
