"""How fast a corpus becomes records, compared to SentencePiece alone and with more workers."""

import logging
import tempfile
import time
from functools import partial
from pathlib import Path

import sentencepiece

from albert_keras.training.process_memory import peak_mb
from data_pipeline.building.build import build_records
from data_pipeline.building.encoding import text_bytes
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.text.corpus import read_corpus
from data_pipeline.text.sentences import split_sentences
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.benchmarks.measure import (
    in_new_process,
    in_turn,
    machine,
    ratios,
    runs_lines as data_lines,  # noqa: F401
    summary,
)

logger = logging.getLogger(__name__)

CEILING = "SentencePiece alone"


def benchmark_data(
    corpus: list[str],
    tokenizer: Path,
    max_seq_length: int = 512,
    copies: list[int] = (1, 10),
    workers: list[int] = (1, 2),
    repeats: int = 3,
) -> dict:
    """Measures builds of a corpus with each number of copies, and of workers at the first.

    Every run is a process of its own, and the runs take turns; README.md explains the numbers.

    Args:
        corpus: See `read_corpus`.
        workers: The first one is used for all copies, and the others are compared with it.

    Returns:
        dict for JSON, see `runs_lines`.
    """
    facts = machine()
    builds = [(count, workers[0]) for count in copies]
    builds += [(copies[0], number) for number in workers[1:]]
    config = PretrainingDataConfig(max_seq_length=max_seq_length)
    actions = {CEILING: partial(in_new_process, run_ceiling, corpus, tokenizer, config)}
    for count, number in dict.fromkeys(builds):
        name = f"copies {count}, {number} worker{'s' if number > 1 else ''}"
        own = config.replace(copies=count)
        actions[name] = partial(in_new_process, run_build, corpus, tokenizer, own, number)
    logger.info("warming up")
    list(actions.values())[1]()
    runs = in_turn(actions, repeats)
    return {
        "machine": facts,
        "about": f"S = {max_seq_length}, {repeats} runs of each",
        "runs": {name: _result(found, runs[CEILING]) for name, found in runs.items()},
    }


def run_build(corpus, tokenizer, config, workers) -> dict:
    """Builds records in a temporary folder; the seconds are those of `build_records` alone."""
    tokenizer = Tokenizer.load(tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        started = time.perf_counter()
        result = build_records(corpus, tokenizer, Path(folder, "out"), config, workers=workers)
        seconds = time.perf_counter() - started
    return {
        "seconds": seconds,
        "sequences": result.info.num_records,
        "text_bytes": result.info.statistics["bytes"],
        "peak_mb": peak_mb(),
    }


def run_ceiling(corpus, tokenizer, config) -> dict:
    """Encodes the sentences of a corpus with SentencePiece in one thread."""
    model = Tokenizer.load(tokenizer).model_bytes
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    seconds, size = 0.0, 0
    for document in read_corpus(corpus):
        sentences = split_sentences(document, config.splitter, config.language)
        sentences = [sentence.encode(errors="replace").decode() for sentence in sentences]
        size += text_bytes(document)
        started = time.perf_counter()
        processor.encode(sentences, num_threads=1)
        seconds += time.perf_counter() - started
    return {"seconds": seconds, "sequences": 0, "text_bytes": size, "peak_mb": peak_mb()}


def _result(runs, ceiling):
    seconds = [run["seconds"] for run in runs]
    return {
        "sequences/s": summary(run["sequences"] / run["seconds"] for run in runs),
        "text MB/s": summary(run["text_bytes"] / 1e6 / run["seconds"] for run in runs),
        "of ceiling": ratios([run["seconds"] for run in ceiling], seconds),
        "peak MB": summary(run["peak_mb"] for run in runs),
    }
