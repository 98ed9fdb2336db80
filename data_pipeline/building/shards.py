"""Documents of a shard → instances → one record file with the offsets of its records."""

import hashlib
import json
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.spill import gather
from data_pipeline.files import sha256_of, whole_file
from data_pipeline.instances.masking import mask_ngrams, word_boundaries
from data_pipeline.instances.packing import pack, truncate_pairs
from data_pipeline.instances.segments import Pairs, Shard, concatenate, cut_instances, prepare
from data_pipeline.randomness import key_of, permute
from data_pipeline.records.dataset_info import ShardInfo
from data_pipeline.records.examples import encode_instances
from data_pipeline.records.record_files import RecordWriter, index_path, write_index

#: Instances packed, masked and encoded at a time.
_BATCH = 512


class ShardTask(NamedTuple):
    """A shard to build.

    Attributes:
        number: int.
        name: str. Name of its record file.
        stretches: list of Stretch. Its blocks.
    """

    number: int
    name: str
    stretches: list


class FinishedShard(NamedTuple):
    """What a shard holds, and what it was made from.

    Attributes:
        documents: str. Hash of the keys of its documents.
        info: ShardInfo.
        counts: dict.
    """

    documents: str
    info: ShardInfo
    counts: dict


def shard_name(number, num_shards):
    """Names a record file, as in `pretraining-00000-of-00004.tfrecord`."""
    return f"pretraining-{number:05d}-of-{num_shards:05d}.tfrecord"


def documents_digest(order, stretches):
    """Hashes the keys of a shard's documents: equal hashes and settings, equal bytes."""
    digest = hashlib.sha256()
    for stretch in stretches:
        digest.update(order.keys(stretch).tobytes())
    return digest.hexdigest()


def finished_shard(work, out, task, order):
    """Returns the FinishedShard of a task if it lies there complete and undamaged, or None."""
    try:
        values = json.loads(_receipt(work, task).read_text(encoding="utf-8"))
        shard = FinishedShard(values["documents"], ShardInfo(**values["info"]), values["counts"])
        path = Path(out) / task.name
        complete = (
            shard.documents == documents_digest(order, task.stretches)
            and sha256_of(path) == shard.info.sha256
            and sha256_of(index_path(path)) == shard.info.index_sha256
        )
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return shard if complete else None


def build_shard(task, order, work, out, config, vocabulary, vocab_size, progress):
    """Builds one shard: record file, offsets, and in the working folder a receipt.

    Args:
        task: ShardTask.
        order: Order.
        work: Path. Folder with the spill.
        out: Path. Folder the record file is put in.
        config: PretrainingDataConfig.
        vocabulary: MaskingVocabulary.
        vocab_size: int.
        progress: object with `add(records=...)`.

    Returns:
        FinishedShard.
    """
    path, counts = Path(out) / task.name, Counter()
    blocks = _blocks(task, order, work, vocab_size)
    with whole_file(path) as temporary:
        writer = write_blocks(temporary, blocks, config, vocabulary, counts, progress)
    with whole_file(index_path(path)) as temporary:
        info = write_index_of(writer, temporary, task.name)
    shard = FinishedShard(documents_digest(order, task.stretches), info, dict(counts))
    with whole_file(_receipt(work, task)) as temporary:
        receipt = shard._asdict() | {"info": shard.info.model_dump()}
        temporary.write_text(json.dumps(receipt), encoding="utf-8")
    return shard


def write_blocks(path, blocks, config, vocabulary, counts, progress):
    """Writes the record file of a shard.

    Args:
        path: Path.
        blocks: iterable of Shard. Documents, a block at a time.
        config: PretrainingDataConfig.
        vocabulary: MaskingVocabulary.
        counts: Counter. What is in the records is added to it.
        progress: object with `add(records=...)`.

    Returns:
        RecordWriter, closed.
    """
    with RecordWriter(path) as writer:
        for block in blocks:
            for records in block_records(block, config, vocabulary, counts):
                writer.write(records)
                progress.add(records=len(records))
    return writer


def write_index_of(writer, path, name):
    """Writes the index of a record file to a path; returns the ShardInfo of the file `name`."""
    write_index(path, writer.offsets)
    return ShardInfo(
        file=name,
        num_records=writer.num_records,
        num_bytes=writer.num_bytes,
        sha256=writer.sha256,
        index_sha256=sha256_of(path),
    )


def block_records(block, config, vocabulary, counts):
    """Yields the records of a block of documents, shuffled, in lists of bytes.

    Args:
        block: Shard.
        config: PretrainingDataConfig.
        vocabulary: MaskingVocabulary.
        counts: Counter. What is in the records is added to it.
    """
    block = prepare(block, config, vocabulary.sep_id)
    pairs = concatenate(
        [cut_instances(block, config, copy, vocabulary) for copy in range(config.copies)]
    )
    counts.update(single_sentences_skipped=pairs.skipped)
    size = len(pairs.labels)
    order = permute(np.arange(size), size, key_of("block", config.seed, *block.keys[:1]))
    pairs = Pairs(*(array[order] for array in pairs[:4]), pairs.skipped)
    for begin in range(0, size, _BATCH):
        part = Pairs(*(array[begin : begin + _BATCH] for array in pairs[:4]), 0)
        instances = instances_of(block.ids, part, config, vocabulary)
        counts.update(
            instances=len(part.labels),
            real_positions=int(instances["input_mask"].sum()),
            positions=instances["input_mask"].size,
            predictions=int(instances["masked_lm_weights"].sum()),
            label_1=int(part.labels.sum()),
        )
        yield encode_instances(instances)


def instances_of(ids, pairs, config, vocabulary):
    """Packs and masks a batch of pairs.

    Args:
        ids: int32 [T]. Pieces the pairs point into.
        pairs: Pairs of N instances.
        config: PretrainingDataConfig.
        vocabulary: MaskingVocabulary.

    Returns:
        dict with the names and lengths of `PRETRAINING_FEATURES`, each [N, length].
    """
    starts, lengths = truncate_pairs(pairs.starts, pairs.lengths, pairs.keys, config.max_num_tokens)
    packed = pack(
        ids,
        starts,
        lengths,
        config.max_seq_length,
        cls_id=vocabulary.cls_id,
        sep_id=vocabulary.sep_id,
    )
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


def _blocks(task, order, work, vocab_size):
    for stretch in task.stretches:
        keys, rows = order.documents(stretch)
        ids, lengths = gather(work, rows, vocab_size)
        yield Shard.of(ids, lengths, rows["num_sentences"].astype(np.int64), keys)


def _receipt(work, task):
    return Path(work) / f"shard-{task.number:05d}.json"
