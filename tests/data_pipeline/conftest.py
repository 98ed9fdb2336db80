"""A small corpus and its records."""

import pytest

from data_pipeline.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.corpus import Document


@pytest.fixture(scope="session")
def tiny_documents(tiny_corpus):
    """Returns 29 documents of 12 sentences."""
    return [
        Document(f"document {number}", tuple(tiny_corpus[number * 12 : number * 12 + 12]))
        for number in range(29)
    ]


@pytest.fixture(scope="session")
def tiny_data_config():
    """Returns settings for short records in two shards."""
    return PretrainingDataConfig(max_seq_length=32, num_shards=2, copies=2)


@pytest.fixture(scope="session")
def tiny_records(tiny_documents, tiny_tokenizer, tiny_data_config, tmp_path_factory):
    """Returns a folder of records; tests that change it copy it first."""
    out = tmp_path_factory.mktemp("records") / "records"
    return build_records(tiny_documents, tiny_tokenizer, out, tiny_data_config).path
