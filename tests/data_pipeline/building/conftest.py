"""The corpus that builds are tested on."""

import pytest


@pytest.fixture(scope="session")
def corpus(tiny_corpus, tmp_path_factory):
    """Returns a folder of 14 text files, one of them three times."""
    folder = tmp_path_factory.mktemp("corpus")
    for number in range(12):
        text = "\n\n".join(tiny_corpus[number * 29 : number * 29 + 29])
        (folder / f"{number:02d}.txt").write_text(text, encoding="utf-8")
    for copy in "ab":
        (folder / f"{copy}.txt").write_bytes((folder / "05.txt").read_bytes())
    return folder
