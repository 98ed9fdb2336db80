"""Single runs of the benchmark of building, and a clock for the stages of a build.

Each run is called in a process of its own.
"""

import contextlib
import functools
import pkgutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import sentencepiece

from data_pipeline.building.build import build_records
from data_pipeline.building.encoding import text_bytes
from data_pipeline.building.workers import Workers
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.instances.masking import MaskingVocabulary
from data_pipeline.text.corpus import read_corpus
from data_pipeline.text.sentences import split_sentences
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.benchmarks.measure import cpu_seconds, largest_child_mb, peak_mb

#: Time outside of the functions below.
REST = "everything else"

#: Stage -> functions, as "module:name". The time of listed functions that a function calls counts
#: in their own stage.
STAGES = {
    "reading": (
        "data_pipeline.building.build:corpus_ranges",
        "data_pipeline.building.encoding:range_digest",
        "data_pipeline.building.encoding:read_range",
    ),
    "sentences": ("data_pipeline.building.encoding:split_sentences",),
    "encoding": ("data_pipeline.tokenizers.tokenization:Tokenizer.encode_sentences",),
    "spilling and ordering": (
        "data_pipeline.building.encoding:encode_document",
        "data_pipeline.building.encoding:write_part",
        "data_pipeline.building.build:order_documents",
        "data_pipeline.building.shards:documents_digest",
        "data_pipeline.building.shards:gather",
    ),
    "cutting and packing": (
        "data_pipeline.building.shards:block_records",
        "data_pipeline.building.shards:add_separators",
        "data_pipeline.building.shards:split_into_pairs",
        "data_pipeline.building.shards:truncate_pairs",
        "data_pipeline.building.shards:pack",
    ),
    "masking": (
        "data_pipeline.building.shards:mask_ngrams",
        "data_pipeline.building.shards:word_boundaries",
    ),
    "serialising": ("data_pipeline.building.shards:encode_instances",),
    "writing": ("data_pipeline.building.build:build_shard",),
}


def run_build(
    corpus: list,
    corpus_format: str,
    tokenizer: Path,
    config: PretrainingDataConfig,
    workers: int,
    clocked: bool = False,
) -> dict:
    """Builds records in a temporary folder.

    `clocked` measures the stages, which needs one worker, and a little time.

    Returns:
        dict. `seconds` and `cpu_seconds` of `build_records` alone; `sequences`, `text_bytes`;
        `stages`, seconds of each, or None; `peak_mb` of this process, and `worker_peak_mb` of the
        largest worker, None if this is the only process.
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


def run_ceiling(corpus, corpus_format: str, tokenizer: Path, config) -> dict:
    """Encodes the sentences of a corpus with SentencePiece in one thread.

    Returns `seconds` and `cpu_seconds` of SentencePiece alone; `text_bytes`.
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


def run_workers(tokenizer: Path, config: PretrainingDataConfig, workers: int) -> dict:
    """Starts and ends the processes of a build without any work; returns the `seconds`."""
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


class StageClock:
    """Assigns the time between calls to stages: each moment belongs to the innermost one.

    `seconds` (dict of stage to float) sums up to the time between `start` and `stop`; all time
    outside of stages is `REST`.
    """

    def __init__(self):
        self.seconds = dict.fromkeys((*STAGES, REST), 0.0)
        self._open = [REST]
        self._last = None

    def start(self):
        self._last = time.perf_counter()

    def stop(self):
        self._charge()

    def timed(self, function: Callable, stage: str) -> Callable:
        """Returns the function with its calls assigned to a stage; iterators item by item."""

        @functools.wraps(function)
        def call(*args, **kwargs):
            with self._in(stage):
                result = function(*args, **kwargs)
            if isinstance(result, Iterator):
                return self._items(result, stage)
            return result

        return call

    def _items(self, iterator, stage):
        while True:
            with self._in(stage):
                try:
                    item = next(iterator)
                except StopIteration:
                    return
            yield item

    @contextlib.contextmanager
    def _in(self, stage):
        self._charge()
        self._open.append(stage)
        try:
            yield
        finally:
            self._charge()
            self._open.pop()

    def _charge(self):
        now = time.perf_counter()
        self.seconds[self._open[-1]] += now - self._last
        self._last = now


@contextlib.contextmanager
def stage_clock() -> Iterator[StageClock]:
    """Measures the functions of `STAGES`, in this process and for this block."""
    clock, originals = StageClock(), []
    for stage, names in STAGES.items():
        for name in names:
            owner_name, _, attribute = name.replace(":", ".").rpartition(".")
            owner, function = pkgutil.resolve_name(owner_name), pkgutil.resolve_name(name)
            originals.append((owner, attribute, function))
            setattr(owner, attribute, clock.timed(function, stage))
    try:
        clock.start()
        yield clock
        clock.stop()
    finally:
        for owner, attribute, function in originals:
            setattr(owner, attribute, function)
