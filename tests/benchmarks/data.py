"""How fast a corpus becomes records, compared to SentencePiece alone and with more workers."""

import logging
import os
import resource
import tempfile
import time
from functools import partial
from pathlib import Path

import sentencepiece

from albert_keras.report import optional, table
from data_pipeline.building.build import build_records
from data_pipeline.building.encoding import text_bytes
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.text.corpus import read_corpus, write_jsonl
from data_pipeline.text.installed_docs import installed_documentation
from data_pipeline.text.sentences import split_sentences
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary
from tests.benchmarks.measure import (
    in_new_process,
    in_turn,
    machine,
    machine_lines,
    max_resident_mb,
    peak_mb,
    ratios,
    shown,
    summary,
)

logger = logging.getLogger(__name__)

CEILING = "SentencePiece alone"


def write_documentation(folder: str | Path) -> Path:
    """Writes the documentation of the installed Python packages as a file of JSON lines."""
    path = Path(folder, "documentation.jsonl")
    write_jsonl(installed_documentation(), path)
    return path


def train_on(corpus, corpus_format: str, vocab_size: int, out: Path) -> Path:
    """Trains a vocabulary of at most `vocab_size` pieces on a corpus; returns its folder."""
    documents = read_corpus(corpus, corpus_format)
    paragraphs = (paragraph for document in documents for paragraph in document.paragraphs)
    return train_vocabulary(paragraphs, out, vocab_size, hard_limit=False).path


def benchmark_data(
    corpus: list[str] | None = None,
    tokenizer: Path | None = None,
    vocab_size: int = 8000,
    max_seq_length: int = 512,
    copies: list[int] = (1, 10),
    workers: list[int] = (1, 2),
    repeats: int = 3,
    corpus_format: str = "auto",
) -> dict:
    """Measures builds of a corpus with each number of copies, and of workers at the first.

    Every run is a process of its own, and the runs take turns; README.md explains the numbers.

    Args:
        corpus: See `read_corpus`. None takes the documentation of the installed Python packages.
        tokenizer: None trains a vocabulary on the corpus first.
        vocab_size: Pieces of that vocabulary, or fewer if the corpus has no more.
        workers: The first one is used for all copies, and the others are compared with it.

    Returns:
        dict for JSON: `machine`, `settings`, `runs`: name -> `sequences`, summaries of
        `sequences_per_second`, `text_mb_per_second` and `of_ceiling`, `cpus` (processors used, on
        average), `peak_mb`, and `worker_peak_mb` or None.
    """
    facts = machine()
    builds = [(count, workers[0]) for count in copies]
    builds += [(copies[0], number) for number in workers[1:]]
    with tempfile.TemporaryDirectory() as folder:
        corpus = [str(path) for path in corpus or [write_documentation(folder)]]
        if tokenizer is None:
            tokenizer = train_on(corpus, corpus_format, vocab_size, Path(folder, "tokenizer"))
        config = PretrainingDataConfig(max_seq_length=max_seq_length)
        actions = {CEILING: partial(_run, run_ceiling, corpus, corpus_format, tokenizer, config)}
        for count, number in dict.fromkeys(builds):
            name = f"copies {count}, {number} worker{'s' if number > 1 else ''}"
            own = config.replace(copies=count)
            actions[name] = partial(_run, run_build, corpus, corpus_format, tokenizer, own, number)
        logger.info("warming up")
        list(actions.values())[1]()
        runs = in_turn(actions, repeats)
    return {
        "machine": facts,
        "settings": {"max_seq_length": max_seq_length, "repeats": repeats},
        "runs": {name: _result(found, runs[CEILING]) for name, found in runs.items()},
    }


def run_build(corpus, corpus_format, tokenizer, config, workers) -> dict:
    """Builds records in a temporary folder; the seconds are those of `build_records` alone."""
    tokenizer = Tokenizer.load(tokenizer)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "records"
        started, cpu_started = time.perf_counter(), sum(os.times()[:4])
        result = build_records(corpus, tokenizer, out, config, corpus_format, workers)
        seconds, cpu = time.perf_counter() - started, sum(os.times()[:4]) - cpu_started
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "sequences": result.info.num_records,
        "text_bytes": result.info.statistics["bytes"],
        "peak_mb": peak_mb(),
        "worker_peak_mb": None if workers == 1 else max_resident_mb(resource.RUSAGE_CHILDREN),
    }


def run_ceiling(corpus, corpus_format, tokenizer, config) -> dict:
    """Encodes the sentences of a corpus with SentencePiece in one thread."""
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
    return {
        "seconds": seconds,
        "cpu_seconds": cpu,
        "sequences": 0,
        "text_bytes": size,
        "peak_mb": peak_mb(),
        "worker_peak_mb": None,
    }


def _run(function, *arguments):
    return in_new_process(function, *arguments)[0]


def _result(runs, ceiling):
    seconds = [run["seconds"] for run in runs]
    return {
        "sequences": runs[0]["sequences"],
        "sequences_per_second": summary(run["sequences"] / run["seconds"] for run in runs),
        "text_mb_per_second": summary(run["text_bytes"] / 1e6 / run["seconds"] for run in runs),
        "of_ceiling": ratios([run["seconds"] for run in ceiling], seconds),
        "cpus": sum(run["cpu_seconds"] for run in runs) / sum(seconds),
        "peak_mb": max(run["peak_mb"] for run in runs),
        "worker_peak_mb": max(run["worker_peak_mb"] or 0 for run in runs) or None,
    }


def data_lines(result):
    """Yields the lines of the result of `benchmark_data`."""
    settings = result["settings"]
    yield from machine_lines(result["machine"])
    repeats = f"median of {settings['repeats']} runs [lowest..highest]"
    yield f"S = {settings['max_seq_length']}; {repeats}"
    yield ""
    header = ("", "sequences/s", "text MB/s", "of ceiling", "CPUs", "peak MB", "MB per worker")
    rows = [
        (
            name,
            shown(run["sequences_per_second"], ",.0f") if run["sequences"] else "",
            shown(run["text_mb_per_second"], ".2f"),
            f"{run['of_ceiling']['median']:.0%}",
            f"{run['cpus']:.2f}",
            f"{run['peak_mb']:.0f}",
            optional(run["worker_peak_mb"], ".0f"),
        )
        for name, run in result["runs"].items()
    ]
    yield from table(header, rows)
