"""What is analysed: trained models or random ones, on texts or records in batches of sequences."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.tasks.pair_features import encode_texts, lay_out, single_texts
from albert_keras.texts.reading import in_chunks, read_texts
from data_pipeline.config import MaskingConfig
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MaskingVocabulary, mask_ngrams
from data_pipeline.randomness import key_of, subkeys
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Longest sequence if the length of the training is not known.
_USUAL_LENGTH = 512
#: [CLS] and [SEP].
_NUM_SPECIAL = 2
#: The masks of texts: single words, as many as in the records of most trainings.
_MASKING = MaskingConfig(max_ngram=1)


class AnalyzedModel(NamedTuple):
    """A model to analyse, in float32."""

    label: str  # the model as given, with a remark for random weights
    step: int | None  # number of training steps, if it is known
    is_random: bool
    model: AlbertForPretraining  # without a sentence-order head
    tokenizer: Tokenizer
    max_seq_length: int  # tokens of the longest sequence that is read
    has_masked_lm: bool  # False if the model came without a masked-LM head

    @property
    def config(self) -> AlbertConfig:
        """AlbertConfig. The shape of the model."""
        return self.model.config

    @property
    def encoder(self):
        """AlbertEncoder."""
        return self.model.encoder

    def describe(self) -> dict[str, Any]:
        """Returns what the model is, plain JSON."""
        config = self.config
        names = ("num_hidden_layers", "hidden_size", "embedding_size", "sharing")
        return {
            "model": self.label,
            "step": self.step,
            "random_weights": self.is_random,
            **{name: getattr(config, name) for name in names},
        }


def open_models(
    paths: str | Path | Sequence[str | Path],
    step: int | str | None = None,
    random_weights: bool = False,
    seed: int = 0,
) -> list[AnalyzedModel]:
    """Loads models to analyse.

    Args:
        paths: A trained model or several, see `TextEncoder`; models in a format that `convert`
            reads will do, too.
        step: Checkpoint of a run, or "best". None takes the newest one, or the best one of a
            fine-tuned run.
        random_weights: Whether each shape is added once more with its initial, random weights.
        seed: Determines the random weights.

    Raises:
        InputError: If there is no such model, or one is given twice.
    """
    paths = [paths] if isinstance(paths, str | Path) else list(paths)
    labels = [str(path) for path in paths]
    if not paths or len(set(labels)) < len(labels):
        received = ", ".join(labels) or "none"
        raise InputError(
            f"The models to analyse must be at least one, each given once. Received: {received}."
        )
    found = []
    for label, path in zip(labels, paths, strict=True):
        weights = open_weights(path, step)
        found.append(_build(label, weights))
        shapes = [one.config for one in found if one.is_random]
        if random_weights and weights.albert_config not in shapes:
            found.append(_build(f"{label}, random weights", weights, seed))
    return found


def _build(label: str, weights: OpenedModel, seed: int | None = None) -> AnalyzedModel:
    """Builds a model and loads its weights, or with a `seed` leaves them random."""
    config, is_random = weights.albert_config, seed is not None
    model = AlbertForPretraining.from_preset(
        weights, not is_random, sentence_head=False, seed=seed or 0, dtype="float32"
    )
    longest = config.max_position_embeddings
    return AnalyzedModel(
        label,
        None if is_random else weights.step,
        is_random,
        model,
        weights.tokenizer,
        min(weights.sequence_length or _USUAL_LENGTH, longest),
        is_random or "masked_lm" in weights.heads,
    )


class AnalysisData:
    """Sequences to analyse models on, the first `limit` of some texts or records.

    A text is `[CLS] text [SEP]`, truncated to what a model reads, with the tokenizer of that model.
    Records must be built with the tokenizer of the model.

    Args:
        data: Folder of records; or a text file or table, see `read_texts`.
        text_column: Column of the text in a table, by name or number.
        limit: Number of texts or records to read.
        batch_size: Sequences per call of a model, B.

    Attributes:
        num_sequences: int. Texts or records that are read.

    Raises:
        InputError: If the data cannot be read.
    """

    def __init__(
        self,
        data: str | Path,
        text_column: str | int | None = None,
        limit: int = 256,
        batch_size: int = 32,
    ):
        for name, value in {"limit": limit, "batch_size": batch_size}.items():
            if value < 1:
                raise InputError(f"`{name}` must be at least 1. Received: {value}.")
        self.origin, self._batch_size = str(data), batch_size
        self._records, self.texts = None, []
        if Path(data).is_dir():
            if text_column is not None:
                raise InputError(
                    "`text_column` requires a table of texts. Received: the folder of records "
                    f"`{data}`."
                )
            self._records = RecordFiles(data)
            self.num_sequences = min(limit, len(self._records))
            return
        texts = next(in_chunks(read_texts(str(data), text_column), limit), [])
        if not texts:
            raise InputError(f"`{data}` must contain at least one text. Received: none.")
        self.texts = [text.text for text in texts]
        self.num_sequences = len(texts)

    def check(self, model: AnalyzedModel) -> None:
        """Raises InputError unless the model can read the data."""
        if self._records is None:
            return
        shape = model.config
        self._records.check_for(
            model.label, shape.vocab_size, shape.max_position_embeddings, model.tokenizer.digest
        )

    def batches(self, model: AnalyzedModel) -> Iterator[dict[str, np.ndarray]]:
        """Yields the inputs of a model.

        Tokens are masked: in records as in the evaluation of a run, in texts single words, the same
        at every call.

        Yields:
            dict of int32 [B, S] "input_ids", "input_mask" and "segment_ids", and [B, P]
            "masked_lm_positions", "masked_lm_ids" and "masked_lm_weights".
        """
        if self._records is None:
            yield from self._batches_of_texts(model)
            return
        left = self.num_sequences
        with self._records.failures_named():
            dataset = evaluation_dataset(self._records, self._batch_size)
            for batch in dataset.take(-(-left // self._batch_size)).as_numpy_iterator():
                yield {name: values[:left] for name, values in batch.items()}
                left -= self._batch_size

    def _batches_of_texts(self, model):
        tokenizer = model.tokenizer
        ids, starts, lengths = encode_texts(self.texts, tokenizer)
        lengths = np.minimum(lengths, model.max_seq_length - _NUM_SPECIAL)
        key = key_of("analysis")
        num_predictions = max(1, round(_MASKING.masked_lm_prob * int(lengths.max())))
        for begin in range(0, len(lengths), self._batch_size):
            part = slice(begin, begin + self._batch_size)
            first, count = starts[part], lengths[part]
            texts = single_texts(ids, first, count)
            inputs = lay_out(texts, tokenizer, int(count.max()) + _NUM_SPECIAL)
            yield inputs | mask_ngrams(
                inputs["input_ids"],
                inputs["input_mask"],
                subkeys(key, np.arange(begin, begin + len(count))),
                MaskingVocabulary.of(tokenizer, _MASKING.word_start),
                _MASKING,
                num_predictions,
            )
