import pytest

from data_pipeline.text.installed_docs import installed_documentation

MODULE = '''
"""Reads the *sources* of a package, without importing it.

The result is a `list` of :class:`~pkg.Item` objects, see
`the manual <https://example.org>`_ for more of them.

Usage:
    >>> load("x")
    [1, 2]

=====  =====

```
The_code = in_a(fence).is_not + prose
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


def test_a_module_is_a_document_of_its_prose(package):
    documents = {item.name: item.paragraphs for item in installed_documentation([package])}
    assert documents == {
        "examplepackage/copy.py": (
            "Reads the sources of a package, without importing it.",
            "The result is a list of pkg.Item objects, see the manual for more of them.",
            "Loads the items of a file.",
            "The path of the file that is read by this function.",
        )
    }
