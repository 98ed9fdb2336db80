"""Builds records: two passes over a corpus, in one process or several.

The bytes of a shard depend only on the corpus, the tokenizer, the configuration and its seed, not
on the number of workers or the order of the input files. The same call resumes an interrupted
build.
"""

import logging
import shutil
import time
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from data_pipeline.building.document_order import order_documents
from data_pipeline.building.encoding import encode_part, parts_of_documents, parts_of_ranges
from data_pipeline.building.folder import (
    WORK,
    BuildFolder,
    BuildResult,
    info_of,
    is_result_of,
    warn_of_lost_text,
)
from data_pipeline.building.sample_check import check_sample
from data_pipeline.building.shards import ShardTask, build_shard, finished_shard, shard_name
from data_pipeline.child_processes import Workers, num_processors
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.files import whole_folder
from data_pipeline.instances.masking import MaskingVocabulary
from data_pipeline.progress import CountedProgress
from data_pipeline.records.dataset_info import INFO_FILE, DatasetInfo
from data_pipeline.text.corpus import corpus_ranges
from data_pipeline.text.sentences import check_splitter
from data_pipeline.text.storage import is_remote
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER

logger = logging.getLogger(__name__)

#: Text for which one more worker is worth the half second that it takes to start.
_BYTES_PER_WORKER = 8 << 20


class BuildContext(NamedTuple):
    """What every task of a build needs, created once in each process."""

    out: Path
    work: Path
    tokenizer: Tokenizer
    vocabulary: MaskingVocabulary
    config: PretrainingDataConfig


def build_records(
    corpus: str | Path | Iterable,
    tokenizer: Tokenizer,
    out: str | Path,
    config: PretrainingDataConfig,
    corpus_format: str = "auto",
    workers: int | None = 1,
) -> BuildResult:
    """Converts a corpus to a folder of pre-training records.

    Args:
        corpus: str, Path or list of them, files, folders and globs; or an iterable of Document.
        tokenizer: Tokenizer.
        out: str or Path. Folder to create. An unfinished build there is resumed; a finished one of
            the same corpus and settings is left unchanged.
        config: PretrainingDataConfig.
        corpus_format: str. Format of the corpus, see `read_corpus`.
        workers: int or None. Number of processes. 1 uses this process; None uses one for each
            processor that the size of the corpus keeps busy. With more than 1, a script needs the
            usual `if __name__ == "__main__":`.

    Returns:
        BuildResult.

    Raises:
        InputError: If the corpus cannot be read or yields no instance, its language must be given
            (see `check_sample`), or `out` contains something
            else or an unfinished build with other settings, or has a scheme, which requires
            `build_with_beam`.
        OSError: If a file cannot be written. The same call resumes the build.
    """
    started = time.monotonic()
    if is_remote(out):
        raise InputError(
            f"`{out}` is a URL, and only a build with Apache Beam can write to URLs. "
            "Build with one of its runners, such as `runner=DirectRunner`, or choose another `out`."
        )
    out = Path(out)
    check_splitter(config.splitter, config.language)
    if workers is not None and workers < 1:
        raise InputError(
            f"`workers` must be at least 1, or None for one per processor. Received: {workers}."
        )
    ranges = None
    if _names_files(corpus):
        ranges = corpus_ranges(corpus, corpus_format)
    if ranges and (out / INFO_FILE).is_file():
        info = DatasetInfo.load(out)
        if is_result_of(info, ranges, tokenizer, config):
            shutil.rmtree(out / WORK, ignore_errors=True)  # of a build that was killed at its end
            logger.info("`%s` is already complete; nothing to build", out)
            return BuildResult(out, info, time.monotonic() - started, len(info.shards))
    if ranges:
        check_sample(ranges, tokenizer, config)
    parts = parts_of_documents(corpus) if ranges is None else parts_of_ranges(ranges)
    total_bytes = sum(text_range.num_bytes for text_range in ranges) if ranges else None
    if not workers:
        workers = max(1, min(num_processors(), (total_bytes or 0) // _BYTES_PER_WORKER))

    folder = BuildFolder(out, config, tokenizer)
    try:
        tokenizer.save(folder.work / TOKENIZER_FOLDER)  # for the workers
        with Workers(workers, _prepare, (folder.out, folder.work, config)) as pool:
            encoded = _encode(pool, parts, total_bytes)
            order, shards = order_documents(folder.work, len(encoded), config)
            finished, num_reused = _write(pool, folder, order, shards)
        try:
            info = info_of(encoded, finished, tokenizer, config, from_files=ranges is not None)
        except InputError:  # there is no record
            folder.discard()
            raise
        shutil.rmtree(out / TOKENIZER_FOLDER, ignore_errors=True)
        with whole_folder(out / TOKENIZER_FOLDER) as temporary:
            tokenizer.save(temporary)
        info.save(out)
    except BaseException:
        folder.abandon()
        raise
    folder.finish()
    return warn_of_lost_text(BuildResult(out, info, time.monotonic() - started, num_reused))


def _encode(pool, parts, total_bytes):
    """Runs the first pass; returns the list of EncodedPart."""
    total = None if total_bytes is None else total_bytes / 1e6
    progress = CountedProgress(logger, "reading", total, "MB")
    encoded = []
    for part in pool.run(encode_part, parts):
        encoded.append(part)
        progress.add(part.counts["bytes"] / 1e6)
    return encoded


def _write(pool, folder, order, shards):
    """Runs the second pass; returns the list of FinishedShard, and how many existed before."""
    tasks = [
        ShardTask(number, shard_name(number, len(shards)), blocks, order)
        for number, blocks in enumerate(shards)
    ]
    folder.remove_other_shards([task.name for task in tasks])
    finished = [finished_shard(folder.work, folder.out, task) for task in tasks]
    missing = [task for task, shard in zip(tasks, finished, strict=True) if not shard]
    num_reused = len(tasks) - len(missing)
    if num_reused:
        logger.info("re-using %d of %d finished shards", num_reused, len(tasks))
    progress = CountedProgress(logger, "writing", len(missing), "shards")
    for shard in pool.run(build_shard, missing):
        finished[shard.number] = shard
        progress.add()
    return finished, num_reused


def _names_files(corpus):
    sources = [corpus] if isinstance(corpus, str | Path) else corpus
    return isinstance(sources, list | tuple) and isinstance(next(iter(sources), None), str | Path)


def _prepare(out, work, config):
    tokenizer = Tokenizer.load(work / TOKENIZER_FOLDER)
    vocabulary = MaskingVocabulary.of(tokenizer, config.masking.word_start)
    return BuildContext(out, work, tokenizer, vocabulary, config)
