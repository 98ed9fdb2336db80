"""What tests of several packages share: a small corpus, its tokenizer, the real data if present."""

import fcntl
import itertools
import os
import signal
from pathlib import Path

import pytest

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.text.corpus import Document
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import TrainedVocabulary, train_vocabulary
from data_pipeline.tokenizers.vocabulary_files import read_model, write_model

_FIRST_HALVES = (
    "The old ferry left the harbour before sunrise",
    "My neighbour repaired a broken window with glue and patience",
    "Seven geese crossed the frozen lake in a single line",
    "A letter from Lisbon arrived three weeks too late",
    "The baker's daughter knew every customer by name",
    "Nobody in the village could explain the blue light",
    "Her first telescope was made of cardboard and hope",
    "The committee met (for the fourth time) on Tuesday",
    "Rain had washed the chalk marks from the wall",
    "An engineer counted the bolts under the bridge",
    "The orchestra tuned while the audience looked for seats",
    "Our guide pointed at a path between two hills",
    "In 1987, the museum bought a collection of wooden clocks",
    "The farmer sold 12 sheep, 40 hens and one stubborn goat",
    "Snow fell quietly on the empty football ground",
    "A half-finished crossword lay next to the cold coffee",
    "The librarian whispered something about missing maps",
    "Every summer the fishermen painted their boats bright yellow",
    "Grandfather wore the same jacket to weddings and funerals",
    "A sudden storm damaged the roof of the railway station",
    "Two students measured the temperature of the pond",
    "The newspaper printed a photograph of an unusual cloud",
    "Someone had planted pumpkins behind the police office",
    "The captain refused to sail without his favourite cup",
    "Wild strawberries grew between the abandoned tracks",
    "The violin teacher lived above a noisy bicycle shop",
    "Our cousins invented a game with feathers and dice",
    "The judge listened politely to both explanations",
    "A thousand lanterns floated down the narrow canal",
)
_SECOND_HALVES = (
    "and nobody wondered why.",
    "while the children were still asleep.",
    "because the road to the north was closed.",
    "but the story had only just begun.",
    'so she said, "we should try again tomorrow."',
    "although it wasn't raining any more.",
    "and the price rose to £25 within an hour.",
    "which made the whole family laugh.",
    "until someone found the key under a stone.",
    "as if the river had changed its mind.",
    "though the doctor had warned them twice.",
    "and that is how the long journey ended.",
    "before anyone could write down the answer.",
    "yet the lamp in the kitchen kept burning.",
    "when the last train stopped at platform 9.",
    "for reasons that remain a well-kept secret.",
    "then everybody shared bread, cheese and apples.",
    "unless the weather forecast was wrong again.",
    "just as grandmother had always predicted.",
    "despite several warnings from the mayor.",
    "since nothing else seemed worth doing.",
    "whereupon the goldfish turned its back.",
    "after which silence returned to the valley.",
    "wherever people gathered to exchange gossip.",
)


def pytest_configure():
    """Restores Ctrl-C, which a shell ignores for its background jobs, and so would our children."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


#: Files that take longest, the longest first.
_LONG_FILES = (
    "documentation/test_pages_run.py",
    "albert_keras/training/test_resume.py",
    "test_old_artifacts.py",
    "albert_keras/test_demo.py",
    "albert_keras/cli/test_commands.py",
    "albert_keras/training/test_pretrain.py",
    "albert_keras/test_shipped_models.py",
    "albert_keras/test_families_end_to_end.py",
    "test_end_to_end.py",
    "albert_keras/training/test_stages.py",
    "albert_keras/tasks/test_finetune_similarity.py",
    "albert_keras/serving/test_publish.py",
    "tpu_check/test_tpu_check.py",
)


def pytest_collection_modifyitems(items):
    """Moves long files to the front where several processes share the tests.

    A long file that begins last would keep one process busy while the others have nothing to do.
    """
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = Path(__file__).parent
        ranks = {folder / name: rank for rank, name in enumerate(_LONG_FILES)}
        items.sort(key=lambda item: ranks.get(item.path, len(ranks)))


@pytest.fixture(scope="session")
def tiny_corpus():
    """Returns 348 English sentences, all different."""
    pairs = list(itertools.product(_FIRST_HALVES, _SECOND_HALVES))
    return [f"{first} {second}" for first, second in pairs[::2]]


@pytest.fixture(scope="session")
def made_once(tmp_path_factory):
    """Returns a function that makes a folder once for all processes of a test run.

    It is given a name and a function of the path to make; tests that change it copy it first.
    """
    root = tmp_path_factory.getbasetemp()
    root = root.parent if "PYTEST_XDIST_WORKER" in os.environ else root

    def make_once(name, make):
        with open(root / f"{name}.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            folder = root / name
            if not (root / f"{name}.made").exists():
                make(folder)
                (root / f"{name}.made").touch()
        return folder

    return make_once


@pytest.fixture(scope="session")
def tiny_vocabulary(tiny_corpus, made_once):
    """Returns the TrainedVocabulary of `tiny_corpus`, with 307 pieces: 230 longer than a letter."""
    folder = made_once("tiny-vocabulary", lambda out: train_vocabulary(tiny_corpus, out, 307))
    config = Tokenizer.load(folder).config
    return TrainedVocabulary(folder, config.vocab_size, config.sha256)


@pytest.fixture(scope="session")
def tiny_tokenizer(tiny_vocabulary):
    """Returns the Tokenizer of `tiny_vocabulary`."""
    return Tokenizer.load(tiny_vocabulary.path)


@pytest.fixture(scope="session")
def digit_tokenizer(tiny_tokenizer):
    """Returns `tiny_tokenizer` with the pieces `x12,` and `▁7,`, in place of two rare ones."""
    model = read_model(tiny_tokenizer.model_bytes)
    rare = [piece for piece in model.pieces if len(piece.piece) > 2][-2:]
    for piece, text in zip(rare, ("x12,", "▁7,"), strict=True):
        piece.piece, piece.score = text, 0.0
    return Tokenizer(write_model(model), tiny_tokenizer.config)


@pytest.fixture(scope="session")
def tiny_documents(tiny_corpus):
    """Returns 29 documents of 12 sentences."""
    return [
        Document(f"document {number}", tuple(tiny_corpus[number * 12 : number * 12 + 12]))
        for number in range(29)
    ]


@pytest.fixture(scope="session")
def tiny_data_config():
    """Returns settings for short and full records in two shards."""
    return PretrainingDataConfig(max_seq_length=32, num_shards=2, copies=2, overflow="cut")


@pytest.fixture(scope="session")
def tiny_records(tiny_documents, tiny_tokenizer, tiny_data_config, made_once):
    """Returns a folder of records; tests that change it copy it first."""
    from data_pipeline.building.build import build_records  # loads TensorFlow

    def build(out):
        build_records(tiny_documents, tiny_tokenizer, out, tiny_data_config)

    return made_once("records", build)


@pytest.fixture(scope="session")
def held_out_records(tiny_tokenizer, tiny_data_config, made_once):
    """Returns a folder of records with none of the sentences of `tiny_records`."""
    from data_pipeline.building.build import build_records  # loads TensorFlow

    pairs = list(itertools.product(_FIRST_HALVES, _SECOND_HALVES))[1::2]
    sentences = [f"{first} {second}" for first, second in pairs]
    documents = [
        Document(f"held-out {number}", tuple(sentences[number * 12 : number * 12 + 12]))
        for number in range(12)
    ]

    def build(out):
        build_records(documents, tiny_tokenizer, out, tiny_data_config)

    return made_once("held-out-records", build)


@pytest.fixture(scope="session")
def shared_data():
    """Returns the folder of real data, a sibling of the project; skips where there is none."""
    beside = Path(__file__).parent.parent.parent / "shared" / "data"
    folder = Path(os.environ.get("ALBERT_KERAS_DATA", beside))
    if not folder.is_dir():
        pytest.skip(f"no real data at {folder}: set ALBERT_KERAS_DATA")
    return folder


@pytest.fixture(scope="session")
def official_model(shared_data):
    """Returns the path of the released English vocabulary, 30 000 pieces."""
    return shared_data / "vocab" / "30k-clean.rebuilt.model"
