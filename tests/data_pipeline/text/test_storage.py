"""Files behind a scheme are found, read and written like local files."""

import pytest

from data_pipeline.errors import InputError
from data_pipeline.text import storage, text_files
from data_pipeline.text.corpus import corpus_ranges, read_corpus, read_range

FILES = {
    "b.txt": "Text b.",
    "a.txt": "One.\n\nTwo.\n\nThree.",
    "sub/c.jsonl": '{"text": "Text c."}\n{"text": 3}',
    "sub/deep/d.txt": "Text d.",
    ".hidden.txt": "Hidden.",
    ".git/e.txt": "Hidden.",
}


def put(path, text):
    with storage.open_to_write(path) as file:
        file.write(text.encode())


@pytest.fixture(params=["{}", "file://{}", "ram://{}"])
def folder(request, tmp_path):
    """Returns a folder with `FILES`: on this machine and behind two schemes."""
    top = request.param.format(tmp_path)
    for name, text in FILES.items():
        storage.make_folders(f"{top}/{name}".rpartition("/")[0])
        put(f"{top}/{name}", text)
    return top


def names(*sources):
    return [part.name for part in corpus_ranges(sources)]


def test_files_and_folders_are_found_by_the_same_names(folder):
    assert names(folder) == ["a.txt", "b.txt", "sub/c.jsonl", "sub/deep/d.txt"]
    assert names(f"{folder}/") == names(folder)
    assert names(f"{folder}/b.txt", f"{folder}/sub") == ["b.txt", "c.jsonl", "deep/d.txt"]
    assert names(f"{folder}/.hidden.txt") == [".hidden.txt"]
    with pytest.raises(InputError, match="none` does not exist. A source must be"):
        names(f"{folder}/none")


def test_patterns_are_of_local_files(tmp_path):
    for name in ("a.txt", "b.txt", "sub/c.jsonl", ".hidden.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    assert names(f"{tmp_path}/*.txt") == ["a.txt", "b.txt"]
    assert names(f"{tmp_path}/*") == names(tmp_path) == ["a.txt", "b.txt", "sub/c.jsonl"]
    assert names(f"{tmp_path}/.hid*") == [".hidden.txt"]
    assert names(f"{tmp_path}/sub/*.jsonl", f"{tmp_path}/*/*.jsonl") == ["sub/c.jsonl"]
    with pytest.raises(InputError, match="a URL a file or a folder"):
        names(f"file://{tmp_path}/*.txt")


def test_ranges_documents_and_errors_are_the_same(folder, monkeypatch):
    monkeypatch.setattr(text_files, "RANGE_BYTES", 5)
    documents = [list(read_range(part)) for part in corpus_ranges([f"{folder}/a.txt"])]
    found = [(document.name, document.text) for part in documents for document in part]
    assert found == [("a.txt", "One."), ("a.txt@6", "Two."), ("a.txt@12", "Three.")]
    with pytest.raises(InputError, match=r"c.jsonl`, line 2 must be a JSON object"):
        list(read_corpus([f"{folder}/sub"]))


def test_a_stretch_is_read_from_its_first_byte_to_its_last(folder):
    path = f"{folder}/b.txt"
    for begin in range(8):
        for end in (*range(begin, 8), None):
            with storage.open_to_read(path, begin, end) as file:
                assert file.read() == b"Text b."[begin:end]
    assert storage.size_of(path) == 7
    with storage.open_to_read(path, 0, 8) as file, pytest.raises(InputError, match="before byte 8"):
        file.read()


def test_failures_are_input_errors_that_name_the_path(folder):
    for action in (
        lambda: storage.size_of(f"{folder}/none"),
        lambda: storage.open_to_read(f"{folder}/none").read(),
        lambda: storage.rename(f"{folder}/none", f"{folder}/nonesuch"),
        lambda: storage.remove(f"{folder}/none"),
        lambda: list(storage.walk(f"{folder}/none")),
    ):
        with pytest.raises(InputError, match=r"none.* cannot be .*: .*\w\.$"):
            action()


@pytest.mark.parametrize("text", ['{"text": "Text c."}\n{"te', '{"text": "Text d."}\n', ""])
def test_a_file_that_changes_while_it_is_read_is_refused(folder, text):
    path = f"{folder}/sub/new.jsonl"
    put(path, '{"text": "Text c."}\n')
    (part,) = corpus_ranges([path])
    assert [document.text for document in read_range(part)] == ["Text c."]
    put(path, text)
    # Clocks of files may not notice that this took a millisecond.
    part = part._replace(state=(part.state[0], part.state[1] - 10**10))
    with pytest.raises(InputError, match="new.jsonl` must not change while it is read. .* copy"):
        list(read_range(part))
