import sys

import pytest

from data_pipeline import installed_docs
from data_pipeline.corpus import Document, read_corpus
from data_pipeline.errors import InputError
from data_pipeline.installed_docs import installed_documentation, split_heldout, write_jsonl

MODULE = '''
"""Reads the *sources* of a package, without importing it.

The result is a `list` of :class:`~pkg.Item` objects, see
`the manual <https://example.org>`_ for more of them.

Usage:
    >>> load("x")
    [1, 2]

    items = load(path, flag=True)

.. code:: python

    load("this is no prose at all.")

.. note:: The order of the items is not defined.

=====  =====
Name   Value
=====  =====

```
The code in a fence is not prose either.
```
"""

if True:
    def load(path):
        """Loads the items of a file.
        Args:
          path: The path of the file that is read
            by this function.
          flag: bool.

        Returns:
          A list of all items, and https://example.org/x knows more.
        """

class Item:
    """Reads the *sources* of a package, without importing it."""

    def value(self):
        """Gives the value that this item stands for::

            the_value = item.value() or something else

        Parameters
        ----------
        default : object
            The value that is given when nothing else is known.
        """
'''


@pytest.fixture
def package(tmp_path, monkeypatch):
    folder = tmp_path / "examplepackage"
    folder.mkdir()
    (folder / "__init__.py").write_text('raise RuntimeError("""imported""")')
    (folder / "module.py").write_text(MODULE)
    (folder / "copy.py").write_text(MODULE + '\n"""Not a docstring, but a string with words."""')
    (folder / "broken.py").write_text('"""Broken. But long enough. It seems so."""\nif')
    monkeypatch.syspath_prepend(tmp_path)
    return "examplepackage"


def test_docstrings_become_prose_in_their_order_and_only_once(package):
    assert list(installed_documentation([package])) == [
        Document(
            "examplepackage/copy.py",
            (
                "Reads the sources of a package, without importing it.",
                "The result is a list of pkg.Item objects, see the manual for more of them.",
                "The order of the items is not defined.",
                "Loads the items of a file.",
                "path: The path of the file that is read by this function.",
                "Gives the value that this item stands for:",
                "The value that is given when nothing else is known.",
            ),
        )
    ]
    assert package not in sys.modules


def test_a_package_that_is_not_installed_is_named():
    with pytest.raises(InputError, match="`no_such_package`.*not found"):
        list(installed_documentation(["no_such_package"]))


def test_absent_packages_of_the_default_list_are_left_out(package, monkeypatch):
    monkeypatch.setattr(installed_docs, "PACKAGES", (package, "no_such_package"))
    assert len(list(installed_documentation())) == 1


@pytest.fixture(scope="module")
def python_documents():
    return list(installed_documentation(["python"]))


def test_the_standard_library_gives_a_megabyte_that_reads_as_prose(python_documents):
    text = "\n".join(document.text for document in python_documents)
    assert len(text) > 800_000
    assert sum(character.isalpha() or character.isspace() for character in text) > 0.95 * len(text)
    assert not any(sign in text for sign in (">>>", "http:", "https:", "::", "`", "{", "=="))
    paragraphs = text.split("\n")
    assert len(set(paragraphs)) == len(paragraphs)
    assert any(document.name == "python/topics/exceptions" for document in python_documents)


def test_what_is_written_is_read_back_as_the_same_texts(python_documents, tmp_path):
    documents = [item for item in python_documents if len(item.text) < 50_000]
    path = tmp_path / "new" / "corpus.jsonl"
    write_jsonl(documents, path)
    again = list(read_corpus([path]))
    assert [item.digest for item in again] == [item.digest for item in documents]
    assert again[0].name == f"corpus.jsonl:{documents[0].name}"


def test_a_broken_write_leaves_the_older_file_and_nothing_else(tmp_path):
    def broken():
        yield Document("a", ("Text.",))
        raise RuntimeError("no more")

    path = tmp_path / "corpus.jsonl"
    path.write_text("older")
    with pytest.raises(RuntimeError, match="no more"):
        write_jsonl(broken(), path)
    with pytest.raises(InputError, match="no document"):
        write_jsonl([], path)
    assert [item.name for item in tmp_path.iterdir()] == ["corpus.jsonl"]
    assert path.read_text() == "older"


def test_heldout_is_decided_by_the_text_and_not_by_the_order():
    documents = [Document("x", (f"Text {number}.",)) for number in range(2_000)]
    train, heldout = split_heldout(documents, share=0.05)
    assert 60 < len(heldout) < 140  # 100 expected, 10 the standard deviation
    assert len(train) + len(heldout) == 2_000
    backwards = split_heldout(documents[::-1], share=0.05)
    assert backwards == (train[::-1], heldout[::-1])
    fewer = split_heldout(documents[:1_000], share=0.05)[1]
    assert set(fewer) == set(heldout) & set(documents[:1_000])


@pytest.mark.parametrize("share", [0.001, 0.999])
def test_each_part_gets_a_document_however_few_there_are(share):
    train, heldout = split_heldout([Document("x", ("a",)), Document("y", ("b",))], share)
    assert len(train) == len(heldout) == 1


def test_a_heldout_part_needs_a_share_and_two_texts():
    same = [Document("x", ("a",)), Document("y", ("a",))]
    with pytest.raises(InputError, match="two different documents"):
        split_heldout(same)
    with pytest.raises(InputError, match="`share`.*Received: 0"):
        split_heldout(same, share=0)
