"""Text in, answer out, from an exported folder: no run and no training file is needed."""

import functools
from typing import NamedTuple

import numpy as np

from albert_keras.serving.exported_task import read_task, version_folder
from albert_keras.serving.layout import MASK_LITERAL, TOP_K
from albert_keras.serving.signature_answers import answer_by_signatures, ask_rows
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer


class Candidate(NamedTuple):
    """A piece for a [MASK]: `piece` str as in the vocabulary, and its probability, `score`."""

    piece: str
    score: float


class FilledMask(NamedTuple):
    """Answer for one text.

    Attributes:
        text: str. As given.
        filled_text: str. With the likeliest piece for each [MASK].
        masks: tuple. For each [MASK] a tuple of Candidate, likeliest first; empty for a mask
            beyond the length the model takes.
    """

    text: str
    filled_text: str
    masks: tuple[tuple[Candidate, ...], ...]


class SentenceOrder(NamedTuple):
    """Whether `first` comes before `second`, as a probability, `in_order`."""

    first: str
    second: str
    in_order: float


class Predictor:
    """Answers of an exported model, pre-trained or fine-tuned.

    Before anything of it is loaded, its operations are checked, see `check_ops`. It is still a
    program, and TensorFlow is no sandbox: open only those you trust.

    Args:
        path: str or Path. Folder of an export, of the name (takes the newest version) or of one
            version. A SavedModel without the other files of an export answers what its signatures
            give.

    Attributes:
        path: Path. The folder of the version.
        task: Task, or None of a pre-trained model.

    Raises:
        InputError: If there is no export, it is damaged, or it has operations that could reach out
            of it.
    """

    def __init__(self, path):
        self.path = version_folder(path)
        self._exported = read_task(self.path)
        self.task = self._exported and self._exported.task
        import tensorflow as tf
        import tensorflow_text  # noqa: F401 (registers the operations of the tokenizer)

        from albert_keras.serving.saved_model.server_ops import check_ops

        check_ops(self.path)
        self._model = tf.saved_model.load(str(self.path))
        self._tf = tf

    def answer(self, inputs):
        """Answers what somebody asks a fine-tuned model.

        Args:
            inputs: list of dict of str, see `Task.example`; or of str, which are texts; or one of
                them. A dict may have an "id", which the answer gets; else it is the number in the
                list.

        Returns:
            list of named tuples, the same as of the run, see `Task.answers`.

        Raises:
            InputError: If the model is a pre-trained one, or one of the inputs is nothing that its
                task can be asked.
        """
        return self.answers(self.examples(inputs))

    def examples(self, inputs):
        """Makes examples of inputs, as `answer` takes them; list, as `Task.read` returns."""
        from albert_keras.finetuning.finetuned import typed_examples

        self._check_finetuned()
        inputs = [inputs] if isinstance(inputs, str | dict) else list(inputs)
        return typed_examples(self.task, inputs)

    def answers(self, examples):
        """Answers examples: list of named tuples, see `Task.answers`."""
        self._check_finetuned()
        if self._task_predictor is None:
            return answer_by_signatures(self.ask, self.task, examples)
        return self._task_predictor.answers(examples)

    def fill_mask(self, texts, top_k=5):
        """Fills each `[MASK]` of some texts.

        Args:
            texts: list of str.
            top_k: int. Candidates per mask, at most 10.

        Returns:
            list of FilledMask.

        Raises:
            InputError: If a text holds no `[MASK]`, or if the model is a fine-tuned one.
        """
        if not 1 <= top_k <= TOP_K:
            raise InputError(f"`top_k` should be from 1 to {TOP_K}. Received: {top_k}.")
        self._check_signature("fill_mask")
        for text in texts:
            if MASK_LITERAL not in text:
                raise InputError(f"`{text}` holds no {MASK_LITERAL} to fill.")
        return [
            FilledMask(
                text,
                answer["filled_text"].decode(errors="replace"),
                _candidates(answer["pieces"], answer["scores"], text.count(MASK_LITERAL), top_k),
            )
            for text, answer in zip(texts, ask_rows(self.ask, "fill_mask", text=texts), strict=True)
        ]

    def sentence_order(self, firsts, seconds):
        """Tells for pairs of texts how likely they stand in this order.

        Args:
            firsts, seconds: list of str, equally long.

        Returns:
            list of SentenceOrder.

        Raises:
            InputError: If the model has no such head.
        """
        self._check_signature("sentence_order")
        answers = ask_rows(self.ask, "sentence_order", first=firsts, second=seconds)
        return [
            SentenceOrder(first, second, float(answer["in_order"]))
            for first, second, answer in zip(firsts, seconds, answers, strict=True)
        ]

    def encode(self, texts):
        """Returns a vector for each text: `pooled_output`, float32 [B, H]."""
        return self.ask("encode", text=texts)["pooled_output"]

    def ask(self, signature, **inputs):
        """Asks a signature over strings, all rows at once.

        Args:
            signature: str. Its name.
            inputs: list of str by name, equally long; of str lists where it takes a matrix.

        Returns:
            dict of np.ndarray [B, ...], strings as bytes.

        Raises:
            InputError: If there is no such signature, or it takes other inputs.
        """
        self._check_signature(signature)
        function = self._model.signatures[signature]
        wanted = set(function.structured_input_signature[1])
        if set(inputs) != wanted:
            raise InputError(
                f"The signature `{signature}` should be asked with {', '.join(sorted(wanted))}. "
                f"Received: {', '.join(inputs) or 'nothing'}."
            )
        tensors = {
            name: self._tf.constant(_bytes_of(texts), self._tf.string)
            for name, texts in inputs.items()
        }
        return {name: value.numpy() for name, value in function(**tensors).items()}

    @functools.cached_property
    def _task_predictor(self):
        """The TaskPredictor; None where the export lacks what it takes."""
        exported, folder = self._exported, self.path / TOKENIZER_FOLDER
        predict_tokens = self._model.signatures.get("predict_tokens")
        if not (exported.record and folder.is_dir() and predict_tokens):
            return None
        from albert_keras.runs.run_files import check_tokenizer
        from albert_keras.serving.task_predictor import TaskPredictor

        repair = "Export the run once more."
        check_tokenizer(folder, exported.tokenizer_digest, "export.json", repair)
        return TaskPredictor(self.task, Tokenizer.load(folder), predict_tokens, exported.tuned)

    def _check_finetuned(self):
        if self.task is None:
            raise InputError(
                f"`{self.path}` should be an export of a fine-tuned model to answer that. "
                "Received: a pre-trained one, which fills masks."
            )

    def _check_signature(self, name):
        if name not in self._model.signatures:
            raise InputError(f"`{self.path}` has no signature `{name}`.")


def predict(export, texts, top_k=5):
    """Fills the masks of some texts with an exported model; see `Predictor.fill_mask`."""
    return Predictor(export).fill_mask(texts, top_k)


def _bytes_of(texts):
    if not isinstance(texts, str):
        return [_bytes_of(text) for text in texts]
    try:
        # Undecodable command-line bytes arrive as lone surrogates; hand them on as they came.
        return texts.encode(errors="surrogateescape")
    except UnicodeEncodeError:
        raise InputError("A text should be Unicode. It has half a surrogate pair.") from None


def _candidates(pieces, scores, num_masks, top_k):
    """Returns the candidates of each mask; no row of `pieces` is of those that are never read."""
    of_masks = tuple(
        tuple(
            Candidate(piece.decode(), float(np.round(score, 6)))
            for piece, score in zip(*row, strict=True)
            if piece
        )
        for row in zip(pieces[:num_masks, :top_k], scores[:num_masks, :top_k], strict=True)
    )
    return of_masks + ((),) * (num_masks - len(of_masks))
