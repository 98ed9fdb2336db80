"""What an inference contest needs: our exports, the weights for the peers, the questions."""

import logging
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.benchmarks.inferrers.ours import write_export
from albert_keras.benchmarks.inferrers.questions import Question, exact_texts
from albert_keras.config import AlbertConfig
from data_pipeline.text.installed_docs import installed_documentation
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary

logger = logging.getLogger(__name__)

#: Pieces of a short text, [CLS] and [SEP] counted.
SHORT_LENGTH = 9
#: Pieces of the vocabulary, if none is given; the encoder's speed does not depend on it.
_VOCAB_SIZE = 8000
#: Of text to train it on and to ask about; more takes long and changes nothing here.
_CHARACTERS = 2_000_000
_SEED = 0


class TaskData(NamedTuple):
    """What was written for a contest.

    Attributes:
        config: AlbertConfig. With as many pieces as the tokenizer has.
        weights: Path. File of NumPy: name -> values of each weight of the encoder.
        exports: dict of str to Path. Precision -> folder of the export.
        questions: dict of int to Question. S -> the largest batch of that length.
        short_texts: tuple of str. As many texts of `SHORT_LENGTH` pieces.
    """

    config: AlbertConfig
    weights: Path
    exports: dict
    questions: dict
    short_texts: tuple


def write_material(folder, config, tokenizer, precisions, max_seq_lengths, batch_size):
    """Writes the material; the same weights and texts each time. Loads TensorFlow.

    Args:
        folder: str or Path.
        config: AlbertConfig.
        tokenizer: str, Path or None. None trains one on the documentation of the installed
            packages, from which the texts come in any case.
        precisions: sequence of str. An export for each.
        max_seq_lengths: sequence of int. A question for each.
        batch_size: int. Texts of a question.

    Returns:
        TaskData.

    Raises:
        InputError: If there is no such tokenizer, or the texts are all too short.
    """
    from albert_keras.models.encoder import AlbertEncoder

    folder = Path(folder)
    paragraphs = _some_paragraphs()
    if tokenizer is None:
        logger.info("training a vocabulary of %d pieces", _VOCAB_SIZE)
        tokenizer = train_vocabulary(
            paragraphs, folder / "tokenizer", _VOCAB_SIZE, hard_limit=False
        ).path
    tokenizer = Tokenizer.load(tokenizer)
    config = config.replace(vocab_size=tokenizer.vocab_size)
    encoder = AlbertEncoder(config, seed=_SEED, dtype="float32")
    weights = folder / "weights.npz"
    values = {weight.name.removesuffix(":0"): weight.numpy() for weight in encoder.weights}
    np.savez(weights, **values)

    questions = {
        length: _question(
            encoder, tokenizer, exact_texts(paragraphs, tokenizer, length - 2, batch_size)
        )
        for length in max_seq_lengths
    }
    exports = {precision: folder / "exports" / precision for precision in precisions}
    for precision, path in exports.items():
        logger.info("exporting the model in %s", precision)
        write_export(path, config, tokenizer, precision)
    short_texts = exact_texts(paragraphs, tokenizer, SHORT_LENGTH - 2, batch_size)
    return TaskData(config, weights, exports, questions, short_texts)


def _question(encoder, tokenizer, texts):
    rows = [[tokenizer.cls_id, *tokenizer.encode(text), tokenizer.sep_id] for text in texts]
    ids = np.array(rows, np.int32)
    # One by one: a large batch of long texts takes gigabytes here.
    expected = [encoder({"input_ids": ids[n : n + 1]})["pooled_output"] for n in range(len(ids))]
    return Question(texts, ids, np.concatenate(expected))


def _some_paragraphs():
    """Returns the first paragraphs of the documentation, list of str."""
    found, characters = [], 0
    for document in installed_documentation():
        found += document.paragraphs
        characters += sum(map(len, document.paragraphs))
        if characters > _CHARACTERS:
            break
    return found
