"""Single runs of the benchmark of building: each is called in a process of its own."""

import contextlib
import tempfile
import time
from pathlib import Path

import sentencepiece

from albert_keras.benchmarks.measure import cpu_seconds, largest_child_mb, peak_mb
from albert_keras.benchmarks.stages import stage_clock
from data_pipeline.building.build import build_records
from data_pipeline.building.encoding import text_bytes
from data_pipeline.building.workers import Workers
from data_pipeline.instances.masking import MaskingVocabulary
from data_pipeline.text.corpus import read_corpus
from data_pipeline.text.sentences import split_sentences
from data_pipeline.tokenizers.tokenization import Tokenizer


def run_build(corpus, corpus_format, tokenizer, config, workers, clocked=False):
    """Builds records in a temporary folder.

    Args:
        corpus: list of str or Path.
        corpus_format: str. See `read_corpus`.
        tokenizer: Path.
        config: PretrainingDataConfig.
        workers: int.
        clocked: bool. Whether to tell the stages; that needs one worker, and a little time.

    Returns:
        dict. `seconds` and `cpu_seconds` of `build_records` alone; `sequences`, `text_bytes`;
        `stages`, seconds of each, or None; `peak_mb` of this process, and
        `worker_peak_mb` of the largest worker, None if there was but this process.
    """
    tokenizer = Tokenizer.load(tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "records"
        started, cpu_started = time.perf_counter(), cpu_seconds()
        with stage_clock() if clocked else contextlib.nullcontext() as clock:
            result = build_records(corpus, tokenizer, out, config, corpus_format, workers)
        seconds, cpu = time.perf_counter() - started, cpu_seconds() - cpu_started
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "sequences": result.info.num_records,
        "text_bytes": result.info.statistics["bytes"],
        "stages": clock and clock.seconds,
        "peak_mb": peak_mb(),
        "worker_peak_mb": None if workers == 1 else largest_child_mb(),
    }


def run_ceiling(corpus, corpus_format, tokenizer, config):
    """Encodes the sentences of a corpus by SentencePiece and does nothing else.

    Args:
        corpus, corpus_format, tokenizer, config: As in `run_build`.

    Returns:
        dict. `seconds` and `cpu_seconds` of SentencePiece alone, in one thread; `text_bytes`.
    """
    model = Tokenizer.load(tokenizer).model_bytes
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    seconds, cpu, size = 0.0, 0.0, 0
    for document in read_corpus(corpus, corpus_format):
        sentences = split_sentences(document, config.splitter, config.language)
        sentences = [sentence.encode(errors="replace").decode() for sentence in sentences]
        size += text_bytes(document)
        started, cpu_started = time.perf_counter(), time.process_time()
        processor.encode(sentences, num_threads=1)
        seconds += time.perf_counter() - started
        cpu += time.process_time() - cpu_started
    return {"seconds": seconds, "cpu_seconds": cpu, "text_bytes": size}


def run_workers(tokenizer, config, workers):
    """Starts the processes of a build and ends them, without any work.

    Args:
        tokenizer, config, workers: As in `run_build`.

    Returns:
        dict. `seconds`.
    """
    tokenizer = Tokenizer.load(tokenizer)
    started = time.perf_counter()
    with Workers(workers, _prepare, (tokenizer, config), _do_nothing) as pool:
        for _ in pool.run(_task, range(2 * workers)):
            pass
    return {"seconds": time.perf_counter() - started}


def _prepare(tokenizer, config, counters):
    return MaskingVocabulary.of(tokenizer, config.masking.word_start)


def _do_nothing():
    pass


def _task(vocabulary, number):
    return number
