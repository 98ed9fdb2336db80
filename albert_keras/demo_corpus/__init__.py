"""English prose that comes with the package, so that a first training needs no download.

`text.jsonl` has a document per line, named by its package and module. It is made of the docstrings
of absl-py 2.5.1, keras 2.15.0, keras-nlp 0.12.1, tensorboard 2.15.2, tensorflow 2.15.1,
tensorflow-addons 0.23.0, tensorflow-estimator 2.15.0, tensorflow-hub 0.16.1 and tensorflow-text
2.15.0: copyright of their authors, licence Apache 2.0. Markup, code, repeated paragraphs and
sentences with many signs were left out.
"""

from collections.abc import Iterator
from pathlib import Path

from data_pipeline.text.corpus import Document, read_corpus

DEMO_CORPUS = Path(__file__).parent / "text.jsonl"


def demo_documents() -> Iterator[Document]:
    """Yields the 1,658 documents of the text, 3.9 MB in all."""
    return read_corpus(DEMO_CORPUS)
