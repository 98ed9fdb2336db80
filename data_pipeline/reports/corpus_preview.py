"""Makes some of the records a corpus would give: how many, how long, and a few to read.

Between `corpus_statistics.py`, which encodes, and `corpus_check.py`, which reports.
"""

import os
from typing import NamedTuple

import numpy as np

from data_pipeline.building.order import lay_out_shards
from data_pipeline.building.progress import SECONDS_PER_PIECE
from data_pipeline.building.shards import instances_of
from data_pipeline.instances.masking import MaskingVocabulary, unmask
from data_pipeline.instances.segments import Pairs, Shard, cut_instances, prepare
from data_pipeline.randomness import key_of, subkeys
from data_pipeline.records.examples import encode_instances
from data_pipeline.tokenizers.word_starts import SPACE

_PIECES_AT_ONCE = 1 << 20
#: Instances of each batch that are really packed, masked and encoded.
_RECORDS_MADE = 32
#: Around each record of a file, and its place in the index beside it.
_BYTES_AROUND = 16 + 8
#: Places that pieces are spread over at most to count shards.
_MAX_PLACES = 1 << 20
_ORDERS = {"sop": ("in order", "swapped"), "nsp": ("in order", "random second")}


class Estimate(NamedTuple):
    """What a build of a corpus would make.

    Attributes:
        records: int. Those of all copies.
        bytes: int. Size of the record files and their indices.
        shards: int.
        seconds: float. Time it takes with `workers` processes.
        workers: int.
    """

    records: int
    bytes: int
    shards: int
    seconds: float
    workers: int


class Example(NamedTuple):
    """A record made readable.

    Attributes:
        order: str. "in order", "swapped", "random second", or "none".
        segments: list of str. Text of each segment, without [CLS] and the [SEP] at its end. A
            prediction is shown as `[what stands there→what stood there]`.
    """

    order: str
    segments: list[str]


class RecordPreview:
    """Cuts documents into instances, as a build does for its first copy.

    Documents have other keys than in a build, so single cuts differ and numbers agree on average.

    Args:
        tokenizer: Tokenizer.
        config: PretrainingDataConfig.
        num_examples: int. How many to keep, drawn from all instances alike.
    """

    def __init__(self, tokenizer, config, num_examples=3):
        self._tokenizer, self._config, self._num_examples = tokenizer, config, num_examples
        self._vocabulary = MaskingVocabulary.of(tokenizer, config.masking.word_start)
        self._held, self._num_held = [], 0
        self._num_pieces = self._num_documents = self._num_records = 0
        self._sizes, self._examples = [], []

    def add(self, ids, lengths):
        """Takes a document.

        Args:
            ids: int32 [T]. Pieces of all its sentences.
            lengths: int64 [n]. Pieces of each sentence, none of them 0; n may be 0.
        """
        if len(ids):
            self._held.append((ids, lengths))
            self._num_held += len(ids)
        if self._num_held >= _PIECES_AT_ONCE:
            self._cut()

    def estimate(self, share, seconds, workers=None) -> Estimate:
        """Estimates a build of the whole corpus.

        Args:
            share: float. Share of the corpus that has been added.
            seconds: float. Time one process took to split and encode that.
            workers: int or None. Processes to build with; None takes all processors.

        Returns:
            Estimate, see `check_corpus` for the rules.
        """
        self._cut()
        config, workers = self._config, workers or _num_processors()
        records = round(self._num_records * config.copies / share)
        size = float(np.mean(self._sizes)) + _BYTES_AROUND if self._sizes else 0
        pieces, documents = self._num_pieces / share, self._num_documents / share
        # The build cuts between documents, so pieces are spread evenly over as many places.
        places = np.linspace(0, pieces, min(round(documents), _MAX_PLACES) + 1).astype(np.int64)
        shards = lay_out_shards(np.diff(places), config.copies, config.num_shards) if pieces else []
        busy = seconds / share + pieces * config.copies * SECONDS_PER_PIECE
        return Estimate(records, round(records * size), len(shards), busy / workers, workers)

    def examples(self) -> list[Example]:
        """Returns the examples."""
        self._cut()
        return [example for _, example in self._examples]

    def _cut(self):
        if not self._held:
            return
        ids, lengths = zip(*self._held, strict=True)
        numbers = np.arange(self._num_documents, self._num_documents + len(ids))
        keys = subkeys(key_of("corpus preview", self._config.seed), numbers)
        sentences = [len(document) for document in lengths]
        shard = Shard.of(np.concatenate(ids), np.concatenate(lengths), sentences, keys)
        self._num_documents += len(ids)
        self._num_pieces += self._num_held
        self._held, self._num_held = [], 0
        shard = prepare(shard, self._config, self._vocabulary.sep_id)
        pairs = cut_instances(shard, self._config, 0, self._vocabulary)
        self._num_records += len(pairs.labels)
        self._make_some(shard.ids, pairs)

    def _make_some(self, ids, pairs):
        # Keys are as good as random: those of the smallest are a sample that needs no draw.
        chosen = np.argsort(pairs.keys, kind="stable")[:_RECORDS_MADE]
        if not len(chosen):
            return
        some = Pairs(*(array[chosen] for array in pairs[:4]), 0)
        instances = instances_of(ids, some, self._config, self._vocabulary)
        self._sizes += map(len, encode_instances(instances))
        for row, key in enumerate(some.keys[: self._num_examples].tolist()):
            instance = {name: values[row] for name, values in instances.items()}
            self._examples.append((key, self._example(instance)))
        self._examples = sorted(self._examples)[: self._num_examples]

    def _example(self, instance):
        positions, labels, weights = (
            instance[f"masked_lm_{name}"][None] for name in ("positions", "ids", "weights")
        )
        shown = instance["input_ids"].tolist()
        original = unmask(instance["input_ids"][None], positions, labels, weights)[0].tolist()
        predicted = set(positions[weights > 0].tolist())
        segments, last = {}, int(instance["input_mask"].sum()) - 1
        for place in range(1, last):
            number = int(instance["segment_ids"][place])
            text = self._readable(original[place], shown[place], place in predicted)
            segments[number] = segments.get(number, "") + text
        ends = f" {self._tokenizer.piece_of(self._vocabulary.sep_id)}"
        texts = [text.removesuffix(ends).strip() for _, text in sorted(segments.items())]
        orders = _ORDERS.get(self._config.label_objective)
        label = int(instance["next_sentence_labels"][0])
        return Example(orders[label] if orders else "none", texts)

    def _readable(self, original, shown, is_predicted):
        has_space, text = self._tokenizer.shown(original)
        space = " " if has_space or original == self._vocabulary.sep_id else ""
        if is_predicted:
            other = self._tokenizer.shown(shown)[1] or SPACE
            before = "MASK" if shown == self._vocabulary.mask_id else other
            text = f"[{before}→{text or SPACE}]"
        return space + text


def _num_processors():
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
