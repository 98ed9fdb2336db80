"""Builds records: the two passes over a corpus, in one process or several, and what surrounds them.

The bytes of a shard depend on the corpus, the tokenizer, the configuration and its seed alone:
neither on the number of workers nor on the order of the input files. A build that was killed goes
on with the same call.
"""

import logging
import os
import shutil
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from data_pipeline.building.folder import BuildFolder, failure
from data_pipeline.building.order import draw_up_order
from data_pipeline.building.parts import encode_part, parts_of_documents, parts_of_ranges
from data_pipeline.building.progress import Progress
from data_pipeline.building.result import BuildResult, info_of, is_result_of, lack_of
from data_pipeline.building.shards import ShardTask, build_shard, finished_shard, shard_name
from data_pipeline.building.workers import Workers
from data_pipeline.errors import InputError
from data_pipeline.files import whole_folder
from data_pipeline.instances.masking import MaskingVocabulary
from data_pipeline.records.dataset_info import INFO_FILE, TOKENIZER_FOLDER, DatasetInfo
from data_pipeline.text.corpus import corpus_ranges
from data_pipeline.text.sentences import check_splitter
from data_pipeline.text.storage import is_remote

logger = logging.getLogger(__name__)

#: Text that is worth a worker of its own, which takes half a second to start.
_BYTES_PER_WORKER = 8 << 20


class _Context(NamedTuple):
    """What every task of a build needs."""

    out: Path
    work: Path
    tokenizer: object
    vocabulary: MaskingVocabulary
    config: object
    counters: object


def build_records(
    corpus, tokenizer, out, config, corpus_format="auto", workers=1, transient_progress=False
):
    """Turns a corpus into a folder of pre-training records.

    Args:
        corpus: str, Path or list of them, files, folders and globs; or an iterable of Document.
        tokenizer: Tokenizer.
        out: str or Path. Folder to make. An unfinished build there goes on; a finished one of the
            same corpus and settings is left as it is.
        config: PretrainingDataConfig.
        corpus_format: str. How the corpus is written, see `read_corpus`.
        workers: int or None. Processes. 1 stays in this one; None takes one for each processor
            that the size of the corpus keeps busy. With more than 1, a script needs the usual
            `if __name__ == "__main__":`.
        transient_progress: bool. Whether to log progress several times a second, in lines with the
            attribute `transient` that are meant to be written over.

    Returns:
        BuildResult.

    Raises:
        InputError: If the corpus cannot be read or yields no instance, or `out` holds something
            else or an unfinished build with other settings, or has a scheme, which
            `build_with_beam` is for.
    """
    started = time.monotonic()
    if is_remote(out):
        raise InputError(
            f"`{out}` has a scheme, and only a build with Apache Beam writes there. "
            "Add --runner, such as `--runner DirectRunner`, or choose another --out."
        )
    out = Path(out)
    check_splitter(config.splitter, config.language)
    ranges = None
    if _names_files(corpus):
        ranges = corpus_ranges(corpus, corpus_format)
        if (info := _already_built(out, ranges, tokenizer, config)) is not None:
            logger.info("`%s` is complete already, nothing is left to build", out)
            return BuildResult(out, info, time.monotonic() - started, len(info.shards))
    parts = parts_of_documents(corpus) if ranges is None else parts_of_ranges(ranges)
    total_bytes = sum(text_range.num_bytes for text_range in ranges) if ranges else None
    workers = workers or _worth_starting(total_bytes)

    folder = BuildFolder(out, config, tokenizer)
    progress = Progress(total_bytes, config.copies, workers, transient_progress)
    arguments = ((folder.out, folder.work), tokenizer, config)
    try:
        with Workers(workers, _prepare, arguments, progress.tick) as pool:
            progress.watch(pool.counters.values)
            contents, counts = _encode(pool, parts, progress)
            order, stretches = draw_up_order(folder.work, len(contents), config)
            shards, reused = [], 0
            if stretches:
                shards, reused = _write(pool, folder, order, stretches, progress, counts)
        if lack := lack_of(counts, config):
            folder.discard()
            raise InputError(lack)
        contents = sum(contents, []) if ranges else None
        info = info_of(shards, counts, contents, tokenizer, config)
        shutil.rmtree(out / TOKENIZER_FOLDER, ignore_errors=True)
        with whole_folder(out / TOKENIZER_FOLDER) as temporary:
            tokenizer.save(temporary)
        info.save(out)
    except BaseException as error:
        folder.abandon()
        if isinstance(error, OSError):
            raise failure(error, out) from error
        raise
    folder.finish()
    return BuildResult(out, info, time.monotonic() - started, reused)


def _encode(pool, parts, progress):
    """Makes the first pass: list of the parts' contents, and a Counter."""
    contents, counts = {}, Counter()
    for part in pool.run(_encode_part, parts):
        contents[part.number] = part.content
        counts.update(part.counts)
        progress.finished_part(part.counts["pieces"], part.counts["bytes"] if part.reused else 0)
    return [contents[number] for number in sorted(contents)], counts


def _write(pool, folder, order, stretches, progress, counts):
    """Makes the second pass: list of ShardInfo, and how many of them were there before."""
    tasks = [
        ShardTask(number, shard_name(number, len(stretches)), blocks)
        for number, blocks in enumerate(stretches)
    ]
    folder.remove_other_shards([task.name for task in tasks])
    there = [finished_shard(folder.work, folder.out, task, order) for task in tasks]
    finished = {task.number: shard for task, shard in zip(tasks, there, strict=True) if shard}
    reused = len(finished)
    if reused:
        logger.info("re-using %d of %d finished shards", reused, len(tasks))
    progress.begin_writing(len(tasks), reused, counts["pieces"])
    missing = [(task, order) for task in tasks if task.number not in finished]
    for number, shard in pool.run(_build_shard, missing):
        finished[number] = shard
        progress.finished_shard()
    shards = [finished[task.number] for task in tasks]
    for shard in shards:
        counts.update(shard.counts)
    return [shard.info for shard in shards], reused


def _names_files(corpus):
    sources = [corpus] if isinstance(corpus, str | Path) else corpus
    return isinstance(sources, list | tuple) and isinstance(next(iter(sources), None), str | Path)


def _already_built(out, ranges, tokenizer, config):
    """Returns the info of a finished build of just this, or None."""
    if not (out / INFO_FILE).is_file():
        return None
    info = DatasetInfo.load(out)
    return info if is_result_of(info, ranges, tokenizer, config) else None


def _worth_starting(total_bytes):
    processors = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    )
    return max(1, min(processors, (total_bytes or 0) // _BYTES_PER_WORKER))


def _prepare(folder, tokenizer, config, counters):
    vocabulary = MaskingVocabulary.of(tokenizer, config.masking.word_start)
    return _Context(*folder, tokenizer, vocabulary, config, counters)


def _encode_part(context, part):
    return encode_part(part, context.work, context.tokenizer, context.config, context.counters)


def _build_shard(context, task_and_order):
    task, order = task_and_order
    shard = build_shard(
        task,
        order,
        context.work,
        context.out,
        context.config,
        context.vocabulary,
        context.tokenizer.vocab_size,
        context.counters,
    )
    return task.number, shard
