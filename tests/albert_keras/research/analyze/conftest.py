"""Texts to analyse."""

import pytest

TEXTS = ["The old ferry left the harbour.", "Rain.", "Seven geese crossed the frozen lake"]


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Returns a file with a text on each line."""
    path = tmp_path_factory.mktemp("texts") / "texts.txt"
    path.write_text("\n".join(TEXTS) + "\n")
    return path
