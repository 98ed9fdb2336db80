"""What is measured when nothing is given: the documentation of the installed Python packages."""

from pathlib import Path

from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.text.corpus import read_corpus
from data_pipeline.text.holdout import write_jsonl
from data_pipeline.text.installed_docs import installed_documentation
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary


def write_documentation(folder):
    """Writes the documentation as a corpus: Path of a JSON lines file in `folder`."""
    path = Path(folder, "documentation.jsonl")
    write_jsonl(installed_documentation(), path)
    return path


def train_on(corpus, corpus_format, vocab_size, out):
    """Trains a vocabulary of at most `vocab_size` pieces on a corpus: Path of its folder."""
    paragraphs = (
        paragraph
        for document in read_corpus(corpus, corpus_format)
        for paragraph in document.paragraphs
    )
    return train_vocabulary(paragraphs, out, vocab_size, hard_limit=False).path


def build_documentation(folder, vocab_size=8000):
    """Builds records of 512 pieces of the documentation: Path of their folder."""
    corpus = write_documentation(folder)
    tokenizer = Tokenizer.load(train_on([corpus], "auto", vocab_size, Path(folder, "tokenizer")))
    return build_records([corpus], tokenizer, Path(folder, "records"), PretrainingDataConfig()).path
