"""The second pass: documents of a shard → instances → a record file with its index."""

import hashlib
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.document_order import DocumentOrder, KeyRange
from data_pipeline.building.encoding import gather
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.files import sha256_of, whole_file, write_json
from data_pipeline.instances.masking import MaskingVocabulary, mask_ngrams, word_boundaries
from data_pipeline.instances.segments import (
    DocumentBlock,
    add_separators,
    concatenate,
    pack,
    split_into_pairs,
    truncate_pairs,
)
from data_pipeline.limits import read_json
from data_pipeline.randomness import key_of, permute
from data_pipeline.records.dataset_info import ShardInfo
from data_pipeline.records.examples import encode_instances
from data_pipeline.records.record_files import RecordWriter, index_path, write_index

#: Instances packed, masked and encoded at a time.
_INSTANCES_AT_ONCE = 512


class ShardTask(NamedTuple):
    """A shard to build."""

    number: int
    name: str
    blocks: list[KeyRange]  # the documents of each fit into memory
    order: DocumentOrder


class FinishedShard(NamedTuple):
    """A shard that has been built, with statistics of its records."""

    number: int
    info: ShardInfo
    counts: dict


def shard_name(number: int, num_shards: int) -> str:
    """Returns the name of a record file, such as `pretraining-00000-of-00004.tfrecord`."""
    return f"pretraining-{number:05d}-of-{num_shards:05d}.tfrecord"


def documents_digest(task: ShardTask) -> str:
    """Hashes the keys of a shard's documents; with equal settings the shards are equal too."""
    digest = hashlib.sha256()
    for key_range in task.blocks:
        digest.update(task.order.documents(key_range)["key"].tobytes())
    return digest.hexdigest()


def finished_shard(work: Path, out: Path, task: ShardTask) -> FinishedShard | None:
    """Returns the shard of a task if it exists complete and undamaged."""
    try:
        receipt = read_json(_receipt(work, task))
        info = ShardInfo(**receipt["info"])
        path = out / task.name
        complete = (
            receipt["documents"] == documents_digest(task)
            and sha256_of(path) == info.sha256
            and sha256_of(index_path(path)) == info.index_sha256
        )
        return FinishedShard(task.number, info, receipt["counts"]) if complete else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def build_shard(context, task: ShardTask) -> FinishedShard:
    """Builds a shard: record file, index, and a receipt in the working folder."""
    path = context.out / task.name
    counts: Counter[str] = Counter()
    with whole_file(path) as records, whole_file(index_path(path)) as index:
        blocks = _blocks(context, task)
        info = write_shard(
            task.name, records, index, blocks, context.config, context.vocabulary, counts
        )
    receipt = {"documents": documents_digest(task), "info": info.model_dump(), "counts": counts}
    write_json(_receipt(context.work, task), receipt, indent=None)
    return FinishedShard(task.number, info, dict(counts))


def write_shard(
    name: str,
    record_file: Path,
    index_file: Path,
    blocks: Iterable[DocumentBlock],
    config: PretrainingDataConfig,
    vocabulary: MaskingVocabulary,
    counts: Counter,
) -> ShardInfo:
    """Writes the record file of a shard, whose final name is `name`, and its index.

    The statistics of the records are added to `counts`.
    """
    with RecordWriter(record_file) as writer:
        for block in blocks:
            for instances in block_instances(block, config, vocabulary, counts):
                writer.write(encode_instances(instances))
    write_index(index_file, writer.offsets)
    return ShardInfo.of(name, writer.offsets, writer.sha256, sha256_of(index_file))


def block_instances(block, config, vocabulary, counts):
    """Yields the instances of a block, shuffled, in batches of N; adds their statistics.

    A batch is a dict with the names and lengths of `PRETRAINING_FEATURES`, each [N, length].
    """
    block = add_separators(block, config, vocabulary.sep_id)
    pairs = concatenate(
        [split_into_pairs(block, config, copy, vocabulary) for copy in range(config.copies)]
    )
    counts.update(single_sentences_skipped=pairs.skipped)
    size = len(pairs.labels)
    order = permute(np.arange(size), size, key_of("block", config.seed, *block.keys[:1]))
    for begin in range(0, size, _INSTANCES_AT_ONCE):
        batch = pairs.select(order[begin : begin + _INSTANCES_AT_ONCE])
        # Spans are chosen for one [SEP] between the segments; where there are two, a full pair
        # loses a token.
        extra = np.where(batch.lengths[:, 1] > 0, vocabulary.pair_separators - 1, 0)
        room = config.max_num_tokens - extra
        starts, lengths = truncate_pairs(batch.starts, batch.lengths, batch.keys, room)
        instances = _instances_of(block.ids, starts, lengths, batch, config, vocabulary)
        is_random = (batch.labels == 1) & (config.label_objective == "nsp")
        counts.update(
            kept_pieces=int(lengths.sum() - lengths[is_random, 1].sum()),
            instances=len(batch.labels),
            real_positions=int(instances["input_mask"].sum()),
            positions=instances["input_mask"].size,
            predictions=int(instances["masked_lm_weights"].sum()),
            label_1=int(batch.labels.sum()),
        )
        yield instances


def _instances_of(ids, starts, lengths, pairs, config, vocabulary):
    """Packs and masks N Pairs, whose truncated segments are in `ids`, int32 [T]."""
    special = {name: getattr(vocabulary, name) for name in ("cls_id", "sep_id", "pair_separators")}
    packed = pack(ids, starts, lengths, config.max_seq_length, **special)
    masked = mask_ngrams(
        packed["input_ids"],
        packed["input_mask"],
        pairs.keys,
        vocabulary,
        config.masking if config.static_masks else config.masking.replace(masked_lm_prob=0),
        config.num_predictions,
    )
    return {
        **packed,
        **masked,
        "token_boundary": word_boundaries(packed["input_ids"], packed["input_mask"], vocabulary),
        "next_sentence_labels": pairs.labels[:, None],
    }


def _blocks(context, task):
    for key_range in task.blocks:
        rows = task.order.documents(key_range)
        ids, lengths = gather(context.work, rows, context.tokenizer.vocab_size)
        yield DocumentBlock.of(ids, lengths, rows["num_sentences"].astype(np.int64), rows["key"])


def _receipt(work, task):
    return work / f"shard-{task.number:05d}.json"
