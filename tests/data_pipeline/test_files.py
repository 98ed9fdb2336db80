"""Files and folders appear whole or not at all."""

import pytest

from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, sha256_of, whole_file, whole_folder


def test_a_file_appears_only_when_it_is_whole(tmp_path):
    with whole_file(tmp_path / "a") as temporary:
        temporary.write_text("done")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_text() == "done"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_a_failure_keeps_the_older_file(tmp_path):
    (tmp_path / "a").write_text("old")
    with pytest.raises(RuntimeError), whole_file(tmp_path / "a") as temporary:
        temporary.write_text("half")
        raise RuntimeError
    assert [path.read_text() for path in tmp_path.iterdir()] == ["old"]


def test_a_failure_leaves_no_folder_and_no_new_parents(tmp_path):
    with pytest.raises(RuntimeError), whole_folder(tmp_path / "x" / "y") as temporary:
        (temporary / "file").write_text("half")
        raise RuntimeError
    assert not list(tmp_path.iterdir())


def test_a_folder_appears_with_all_its_files(tmp_path):
    with whole_folder(tmp_path / "x" / "y") as temporary:
        (temporary / "file").write_text("done")
        assert not (tmp_path / "x" / "y").exists()
    assert (tmp_path / "x" / "y" / "file").read_text() == "done"


def test_an_output_folder_that_holds_something_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is not empty"):
        check_output_folder(tmp_path)


def test_a_file_in_the_way_is_refused(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="is a file"):
        check_output_folder(tmp_path / "file" / "out")


def test_a_folder_that_cannot_be_written_is_refused_before_any_work():
    with pytest.raises(InputError, match="cannot be written"):
        check_output_folder("/proc/albert")


def test_the_digest_is_that_of_the_bytes(tmp_path):
    (tmp_path / "a").write_bytes(b"abc")
    assert sha256_of(tmp_path / "a").startswith("ba7816bf8f01cfea")
