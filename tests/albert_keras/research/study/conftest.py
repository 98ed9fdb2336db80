"""A study that trains in seconds, and its text."""

import pytest

from albert_keras.research.study.config import StudyConfig

MICRO = {
    "title": "Sentence tasks, for tests",
    "source": {
        "paper": "Nobody et al.",
        "url": "https://example.org/",
        "table": "table 1",
        "measures": {"sop": {"title": "SOP, published", "compares": "sop"}},
    },
    "evaluate": {
        "masked_lm": {"title": "masked LM", "data": {"objective": "none"}},
        "sop": {"title": "SOP", "score": "sentence", "data": {"objective": "sop"}},
    },
    "base": {
        "vocabulary": {"size": 300},
        "data": {"max_seq_length": 32},
        "model": {
            "hidden_size": 32,
            "num_attention_heads": 2,
            "intermediate_size": 64,
            "embedding_size": 16,
            "max_position_embeddings": 64,
        },
        "training": {
            "steps": 6,
            "batch_size": 8,
            "checkpoint_every": 2,
            "report_every": 2,
            "precision": "float32",
            "peak_tflops": 1.0,
        },
    },
    "seeds": 1,
    "runs": [
        {"name": "none", "data": {"objective": "none"}, "published": {"sop": 53.3}},
        {"name": "SOP", "data": {"objective": "sop"}, "published": {"sop": 86.5}},
    ],
}


@pytest.fixture
def micro_study():
    """Returns a function that creates the study, with changes at the top level."""
    return lambda **changes: StudyConfig(**(MICRO | changes))


@pytest.fixture(scope="session")
def study_text(tiny_corpus, made_once):
    """Returns a folder with 29 documents of 12 sentences."""

    def write(folder):
        folder.mkdir()
        for start in range(0, len(tiny_corpus), 12):
            text = "\n\n".join(tiny_corpus[start : start + 12]) + "\n"
            (folder / f"{start:03}.txt").write_text(text)

    return made_once("study-text", write)
