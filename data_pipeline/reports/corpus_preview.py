"""Builds some of the records of a corpus: their number, their size, and a few to read.

`corpus_statistics.py` encodes the documents, `corpus_check.py` reports the result.
"""

from typing import NamedTuple

import numpy as np

from data_pipeline.building.document_order import plan_shards
from data_pipeline.building.progress import SECONDS_PER_TOKEN
from data_pipeline.building.result import info_of
from data_pipeline.building.shards import instances_of, room_for_text
from data_pipeline.building.workers import num_processors
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.instances.masking import MaskingVocabulary
from data_pipeline.instances.segments import DocumentBlock, add_separators, split_into_pairs
from data_pipeline.randomness import key_of, subkeys
from data_pipeline.records.examples import encode_instances
from data_pipeline.reports.record_sample import Sample
from data_pipeline.tokenizers.tokenization import Tokenizer

_TOKENS_AT_ONCE, _NUM_EXAMPLES = 1 << 20, 3
#: Instances of each batch that are actually packed, masked and encoded.
_RECORDS_MADE = 32
#: Bytes of a record in its file and in the index, besides its own.
_BYTES_AROUND = 16 + 8
#: Maximum number of bins that tokens are spread over to count shards.
_MAX_BINS = 1 << 20


class Estimate(NamedTuple):
    """The estimated result of a build."""

    records: int  # of all copies
    bytes: int  # of record files and indexes
    shards: int
    seconds: float  # duration with `workers` processes
    workers: int
    padding: float  # fraction of the positions that contain no token
    median_tokens: int  # of a record, with [CLS] and [SEP]


class Example(NamedTuple):
    """A record as text; a prediction is shown as `[shown token→original token]`."""

    order: str  # "in order", "swapped", "random second", or "none"
    segments: list[str]  # text of each segment, without [CLS] and the [SEP] at its end


class RecordPreview:
    """Splits documents into instances, as a build does for its first copy.

    Documents have other keys than in a build, so single splits differ and numbers agree on average.
    """

    def __init__(self, tokenizer: Tokenizer, config: PretrainingDataConfig):
        self._tokenizer, self._config = tokenizer, config
        self._vocabulary = MaskingVocabulary.of(tokenizer, config.masking.word_start)
        self._info = info_of((), {}, None, tokenizer, config)
        self._waiting, self._num_waiting = [], 0
        self._num_tokens = self._num_documents = self._num_records = 0
        self._lengths, self._sizes, self._examples = [], [], []

    def add(self, ids, lengths):
        """Adds a document: ids int32 [T] of all its sentences, and their lengths int64 [n].

        No length is 0; n may be 0.
        """
        if len(ids):
            self._waiting.append((ids, lengths))
            self._num_waiting += len(ids)
        if self._num_waiting >= _TOKENS_AT_ONCE:
            self._split()

    def estimate(self, share: float, seconds: float, workers: int | None = None) -> Estimate:
        """Estimates a build of the whole corpus; see `check_corpus` for the formulas.

        `share` is the fraction of the corpus that has been added, which one process split and
        encoded in `seconds`. Without a number of workers, all processors build.
        """
        self._split()
        config, workers = self._config, workers or num_processors()
        records = round(self._num_records * config.copies / share)
        size = float(np.mean(self._sizes)) + _BYTES_AROUND if self._sizes else 0
        tokens, documents = self._num_tokens / share, self._num_documents / share
        # The build splits between documents, so tokens are spread evenly over as many bins.
        edges = np.linspace(0, tokens, min(round(documents), _MAX_BINS) + 1).astype(np.int64)
        shards = plan_shards(np.diff(edges), config.copies, config.num_shards) if tokens else []
        busy = seconds / share + tokens * config.copies * SECONDS_PER_TOKEN
        lengths = np.concatenate(self._lengths) if self._lengths else np.zeros(0)
        filled = lengths.mean() / config.max_seq_length if len(lengths) else 1.0
        return Estimate(
            records,
            round(records * size),
            len(shards),
            busy / workers,
            workers,
            padding=1 - float(filled),
            median_tokens=int(np.median(lengths)) if len(lengths) else 0,
        )

    def examples(self) -> list[Example]:
        """Returns a random sample of all instances."""
        self._split()
        return [example for _, example in self._examples]

    def _split(self):
        if not self._waiting:
            return
        ids, lengths = zip(*self._waiting, strict=True)
        numbers = np.arange(self._num_documents, self._num_documents + len(ids))
        keys = subkeys(key_of("corpus preview", self._config.seed), numbers)
        sentences = [len(document) for document in lengths]
        block = DocumentBlock.of(np.concatenate(ids), np.concatenate(lengths), sentences, keys)
        self._num_documents += len(ids)
        self._num_tokens += self._num_waiting
        self._waiting, self._num_waiting = [], 0
        block = add_separators(block, self._config, self._vocabulary.sep_id)
        pairs = split_into_pairs(block, self._config, 0, self._vocabulary)
        self._num_records += len(pairs.labels)
        room = room_for_text(pairs, self._config, self._vocabulary)
        special = self._config.max_seq_length - room
        self._lengths.append(np.minimum(pairs.lengths.sum(axis=1), room) + special)
        if len(pairs.labels):
            self._make_records(block.ids, pairs)

    def _make_records(self, ids, pairs):
        # Keys are random numbers: the instances with the smallest ones are a random sample.
        pairs = pairs.select(np.argsort(pairs.keys, kind="stable")[:_RECORDS_MADE])
        instances = instances_of(ids, pairs, self._config, self._vocabulary)
        self._sizes += map(len, encode_instances(instances))
        sample = Sample(instances, np.arange(len(pairs.labels)), self._info, self._tokenizer)
        for row, key in enumerate(pairs.keys[:_NUM_EXAMPLES].tolist()):
            example = sample.example(row)
            texts = [self._without_special(text) for text in example.segments]
            self._examples.append((key, Example(example.order, texts)))
        self._examples = sorted(self._examples)[:_NUM_EXAMPLES]

    def _without_special(self, text):
        tokenizer = self._tokenizer
        text = text.removeprefix(tokenizer.piece_of(tokenizer.cls_id))
        for _ in range(tokenizer.pair_separators):
            text = text.removesuffix(tokenizer.piece_of(tokenizer.sep_id)).strip()
        return text
