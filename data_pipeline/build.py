"""The chain in order: corpus → sentences → segments → packing → masking → record files.

A shard is the unit of work. Which documents it holds follows from their content, and all that is
random in it from (seed, copy, document), so its bytes do not depend on the order of the input
files or on who builds it.
"""

import contextlib
import logging
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import tensorflow as tf

from data_pipeline.corpus import read_corpus
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder
from data_pipeline.masking import MaskingVocabulary, mask_ngrams
from data_pipeline.packing import pack, truncate_pairs
from data_pipeline.randomness import key_of, permute, subkeys
from data_pipeline.records import (
    INFO_FILE,
    TOKENIZER_FOLDER,
    DatasetInfo,
    encode_instances,
    write_shard,
)
from data_pipeline.schema import PRETRAINING_FEATURES, feature_length
from data_pipeline.segments import Pairs, Shard, concatenate, segment_pairs
from data_pipeline.sentences import split_sentences

logger = logging.getLogger(__name__)

#: Instances masked and encoded at a time.
_BATCH = 512
#: Pieces per shard when the number of shards is not given: about 100 MB of records.
_PIECES_PER_SHARD = 16_000_000
_SECONDS_BETWEEN_REPORTS = 5


class BuildResult(NamedTuple):
    """What a build made.

    Attributes:
        path: Path. The folder of records.
        info: DatasetInfo.
        seconds: float.
    """

    path: Path
    info: DatasetInfo
    seconds: float


def build_records(corpus, tokenizer, out, config, corpus_format="auto"):
    """Turns a corpus into a folder of pre-training records.

    Args:
        corpus: str, Path or list of them, files, folders and globs; or an iterable of Document.
        tokenizer: Tokenizer.
        out: str or Path. Folder to make. One with an unfinished build is built anew.
        config: PretrainingDataConfig.
        corpus_format: str. How the corpus is written, see `read_corpus`.

    Returns:
        BuildResult.

    Raises:
        InputError: If the corpus cannot be read or yields no instance, or `out` holds something.
    """
    started = time.monotonic()
    out = Path(out)
    _check_unfinished_or_new(out)
    documents = corpus
    sources = [corpus] if isinstance(corpus, str | Path) else corpus
    if isinstance(sources, list | tuple) and isinstance(next(iter(sources), None), str | Path):
        documents = read_corpus(sources, corpus_format)
    shards, counts = encode_documents(documents, tokenizer, config)
    vocabulary = MaskingVocabulary.of(tokenizer, config.masking.word_start)
    pairs = [shuffled_pairs(shard, config, vocabulary.starts_word) for shard in shards]
    counts["single_sentences_skipped"] = sum(part.skipped for part in pairs)
    if not any(len(part.labels) for part in pairs):
        raise InputError(
            "The corpus yields no record: nothing in it can be split into two segments. "
            f"Received: {counts['documents']} documents, {counts['sentences']} sentences, "
            f"single_sentence_policy={config.single_sentence_policy!r}."
        )

    with _new_folder(out):
        infos = []
        for number, (shard, part) in enumerate(zip(shards, pairs, strict=True)):
            name = f"pretraining-{number:05d}-of-{len(shards):05d}.tfrecord"
            dataset = instance_dataset(shard, part, vocabulary, config)
            infos.append(write_shard(out / name, _encoded(dataset, counts)))
            logger.info("%s: %d records", name, infos[-1].num_records)
        (out / TOKENIZER_FOLDER).mkdir(exist_ok=True)
        tokenizer.save(out / TOKENIZER_FOLDER)
        info = DatasetInfo(
            max_seq_length=config.max_seq_length,
            max_predictions_per_seq=config.num_predictions,
            vocab_size=tokenizer.vocab_size,
            tokenizer_digest=tokenizer.digest,
            objective=config.objective,
            shards=tuple(infos),
            statistics=dict(counts),
            config=config.model_dump(),
        )
        info.save(out)
    return BuildResult(out, info, time.monotonic() - started)


def encode_documents(documents, tokenizer, config):
    """Splits and encodes all documents and deals them out to shards by their content.

    Args:
        documents: iterable of Document.
        tokenizer: Tokenizer.
        config: PretrainingDataConfig.

    Returns:
        tuple. List of Shard, all about equally long and none empty, and a Counter.

    Raises:
        InputError: If there is no sentence in any of them.
    """
    encoded, counts, seen = [], Counter(), Counter()
    reported = time.monotonic()
    for document in documents:
        sentences = split_sentences(document, config.splitter, config.language)
        pieces = [ids for ids in tokenizer.encode_batch(sentences) if len(ids)]
        if not pieces:
            continue
        # Equal documents are told apart by how many there were, whatever their order.
        key = key_of(config.seed, document.digest, seen[document.digest])
        seen[document.digest] += 1
        lengths = np.array([len(ids) for ids in pieces], np.int64)
        encoded.append((key, np.concatenate(pieces), np.pad(lengths.cumsum(), (1, 0))))
        counts.update(documents=1, sentences=len(pieces), pieces=int(lengths.sum()))
        counts.update(characters=len(document.text))
        if time.monotonic() > reported + _SECONDS_BETWEEN_REPORTS:
            reported = time.monotonic()
            logger.info("%d documents, %d pieces encoded", counts["documents"], counts["pieces"])
    if not encoded:
        raise InputError("The corpus is empty: it holds no sentence.")

    encoded.sort(key=lambda document: document[0])
    wanted = config.num_shards or -(-counts["pieces"] // _PIECES_PER_SHARD)
    upto = np.cumsum([len(ids) for _, ids, _ in encoded])
    number = ((upto - 1) * min(wanted, len(encoded))) // upto[-1]
    parts = [[encoded[i] for i in np.flatnonzero(number == n)] for n in np.unique(number)]
    return [_lay_end_to_end(part) for part in parts], counts


def _lay_end_to_end(documents):
    keys, ids, edges = zip(*documents, strict=True)
    starts = np.cumsum([0, *map(len, ids[:-1])])
    edges = [edge + start for edge, start in zip(edges, starts, strict=True)]
    return Shard(np.concatenate(ids), edges, np.array(keys, np.uint64))


def shuffled_pairs(shard, config, starts_word):
    """Cuts all documents of a shard into pairs, once for each copy, in a random order.

    Args:
        shard: Shard.
        config: PretrainingDataConfig.
        starts_word: bool [V].

    Returns:
        Pairs.
    """
    pairs = concatenate(
        [
            segment_pairs(shard, number, config, subkeys(key, copy)[()], starts_word)
            for copy in range(config.copies)
            for number, key in enumerate(shard.keys)
        ]
    )
    size = len(pairs.labels)
    order = permute(np.arange(size), size, key_of(config.seed, *shard.keys[:1]))
    return Pairs(*(array[order] for array in pairs[:4]), pairs.skipped)


def instance_dataset(shard, pairs, vocabulary, config):
    """Makes the `tf.data` pipeline whose elements are written.

    Args:
        shard: Shard.
        pairs: Pairs of it.
        vocabulary: MaskingVocabulary.
        config: PretrainingDataConfig.

    Returns:
        tf.data.Dataset of batches of instances: a dict with the names and lengths of
        `PRETRAINING_FEATURES`, each [up to 512, length].
    """
    lengths = config.max_seq_length, config.num_predictions

    def batches():
        for begin in range(0, len(pairs.labels), _BATCH):
            part = slice(begin, begin + _BATCH)
            keys = pairs.keys[part]
            starts, sizes = truncate_pairs(
                pairs.starts[part], pairs.lengths[part], keys, config.max_num_tokens
            )
            packed = pack(
                shard.ids,
                starts,
                sizes,
                config.max_seq_length,
                cls_id=vocabulary.cls_id,
                sep_id=vocabulary.sep_id,
            )
            masked = mask_ngrams(
                packed["input_ids"],
                packed["input_mask"],
                keys,
                vocabulary,
                config.masking,
                config.num_predictions,
            )
            yield packed | masked | {"next_sentence_labels": pairs.labels[part, None]}

    signature = {
        name: tf.TensorSpec([None, feature_length(feature, *lengths)], feature.dtype)
        for name, feature in PRETRAINING_FEATURES.items()
    }
    return tf.data.Dataset.from_generator(batches, output_signature=signature).prefetch(2)


def _encoded(dataset, counts):
    """Yields the records of a data set and counts what is in them."""
    for batch in dataset.as_numpy_iterator():
        counts.update(
            instances=len(batch["input_ids"]),
            real_positions=int(batch["input_mask"].sum()),
            positions=batch["input_mask"].size,
            predictions=int(batch["masked_lm_weights"].sum()),
            label_1=int(batch["next_sentence_labels"].sum()),
        )
        yield from encode_instances(batch)


def _check_unfinished_or_new(out):
    """Refuses a folder that holds anything but an unfinished build of ours."""
    left_behind = list(out.iterdir()) if out.is_dir() else []
    if any(INFO_FILE == path.name or not _is_ours(path) for path in left_behind):
        check_output_folder(out)  # says why not
    check_output_folder(out / "new")


def _is_ours(path):
    return path.name == TOKENIZER_FOLDER or "pretraining-" in path.name


@contextlib.contextmanager
def _new_folder(out):
    """Makes the folder, or clears it of an unfinished build; if this one fails, it goes again."""
    existed = out.exists()
    out.mkdir(parents=True, exist_ok=True)
    for path in out.iterdir():
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    try:
        yield
    except BaseException:
        if not existed:
            shutil.rmtree(out, ignore_errors=True)
        raise
