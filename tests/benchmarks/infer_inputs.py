"""What an inference contest needs: exports and weights of one model, texts and expected outputs."""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from albert_keras.config import AlbertConfig
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

#: An output in float32 that differs by more is another computation, not rounding.
TOLERANCE = 1e-3
SEED = 0


class Question(NamedTuple):
    """One batch of inputs, the same for all contestants."""

    texts: tuple[str, ...]  #: B of them.
    ids: np.ndarray  #: int32 [B, S]. The texts as [CLS] tokens [SEP], without padding.
    expected: np.ndarray  #: float32 [B, H]. Pooled outputs of our encoder, without an export.

    def first(self, batch_size: int) -> "Question":
        """Returns the Question with the first texts only."""
        return Question(*(values[:batch_size] for values in self))

    def inputs(self):
        """Returns dict of int64 [B, S], named as by the tokenizers of transformers."""
        ids = self.ids.astype(np.int64)
        return {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.zeros_like(ids),
        }


class InferenceInputs(NamedTuple):
    """What was written for a contest."""

    config: AlbertConfig  #: With the size of the tokenizer's vocabulary.
    weights: Path  #: Folder of Hugging Face with the encoder.
    exports: dict[str, Path]  #: Precision -> folder of the export.
    questions: dict[int, Question]  #: S -> the largest batch of that length.


def write_inputs(
    folder: str | Path,
    config: AlbertConfig,
    tokenizer: str | Path,
    precisions: Sequence[str],
    max_seq_lengths: Sequence[int],
    batch_size: int,
) -> InferenceInputs:
    """Writes an export for each precision and a question for each length.

    The weights and texts are the same each time.
    """
    from albert_keras.formats import hugging_face
    from albert_keras.formats.opened_model import OpenedModel
    from albert_keras.keras_versions import name_of
    from albert_keras.models.encoder import AlbertEncoder

    folder = Path(folder)
    tokenizer = Tokenizer.load(tokenizer)
    config = config.replace(vocab_size=tokenizer.vocab_size)
    encoder = AlbertEncoder(config, seed=SEED, dtype="float32")
    weights = folder / "transformers"
    weights.mkdir()
    values = {name_of(weight): weight.numpy() for weight in encoder.weights}
    hugging_face.write(OpenedModel.of(config, values, "benchmark"), weights, {})

    def question(length):
        texts = exact_texts(tokenizer, length - 2, batch_size)
        rows = [[tokenizer.cls_id, *tokenizer.encode(text), tokenizer.sep_id] for text in texts]
        ids = np.array(rows, np.int32)
        # One by one: a large batch of long texts takes gigabytes here.
        expected = [encoder({"input_ids": row[None]})["pooled_output"] for row in ids]
        return Question(texts, ids, np.concatenate(expected))

    questions = {length: question(length) for length in max_seq_lengths}
    exports = {precision: folder / "exports" / precision for precision in precisions}
    for precision, path in exports.items():
        logger.info("exporting the model in %s", precision)
        _write_export(path, config, tokenizer, precision)
    return InferenceInputs(config, weights, exports, questions)


def difference(output, question: Question, dtype: str) -> float:
    """Returns the largest absolute difference of an output [B, H] from the expected one.

    InputError if it is not finite, or differs by over 0.001 in "float32"; other dtypes compute with
    less precision.
    """
    largest = float(np.abs(np.asarray(output, np.float32) - question.expected).max())
    if not np.isfinite(largest) or (dtype == "float32" and largest > TOLERANCE):
        raise InputError(f"Its output must be that of our encoder. Received: {largest} away.")
    return largest


def exact_texts(tokenizer: Tokenizer, num_tokens: int, count: int) -> tuple[str, ...]:
    """Samples texts of `num_tokens` tokens, without [CLS] and [SEP], from words of one token."""
    words = [tokenizer.piece_of(number).strip("▁") for number in tokenizer.ordinary_ids]
    words = [word for word in words if len(tokenizer.encode(word)) == 1]
    rng = np.random.default_rng(SEED)
    return tuple(" ".join(rng.choice(words, num_tokens)) for _ in range(count))


def _write_export(folder, config, tokenizer, precision):
    """Writes what `albert-keras export` would write of a model with its initial weights."""
    import tensorflow as tf

    from albert_keras.models.preprocessor import AlbertPreprocessor
    from albert_keras.models.pretraining import AlbertForPretraining
    from albert_keras.serving.graph.text_model import TextModel

    model = AlbertForPretraining(config, sentence_head=False, seed=SEED, dtype="float32")
    rows = AlbertPreprocessor(tokenizer, config.max_position_embeddings)
    module = TextModel(model, rows, precision)
    tf.saved_model.save(module, str(folder), signatures=module.functions)
