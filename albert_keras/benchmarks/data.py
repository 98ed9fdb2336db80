"""How fast a corpus becomes records, against SentencePiece alone and with more workers."""

import itertools
import logging
import shutil
import tempfile
from functools import partial
from pathlib import Path, PurePath

from albert_keras.benchmarks.data_run import run_build, run_ceiling, run_workers
from albert_keras.benchmarks.documentation import train_on, write_documentation
from albert_keras.benchmarks.measure import (
    in_new_process,
    in_turn,
    machine,
    median_run,
    ratios,
    summary,
)
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.text import storage
from data_pipeline.text.text_files import find_files
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)


def benchmark_data(
    corpus=None,
    tokenizer=None,
    vocab_size=8000,
    max_seq_length=512,
    copies=(1, 10),
    workers=(1, 2),
    repeats=3,
    scale_to_mb=400,
    corpus_format="auto",
):
    """Measures builds of a corpus.

    Every run is a process of its own, and the runs take turns; README.md tells what each number
    means. All that is written goes to the system's folder for temporary files.

    Args:
        corpus: list of str or Path. See `read_corpus`. None takes the documentation of the
            installed Python packages.
        tokenizer: str, Path or None. None trains a vocabulary on the corpus first.
        vocab_size: int. Pieces of that one, or fewer if the corpus has no more.
        max_seq_length: int. S.
        copies: sequence of int. Each is measured.
        workers: sequence of int. The others are compared with the first.
        repeats: int.
        scale_to_mb: float. To compare workers the files of the corpus are copied again and again
            until they are this large.
        corpus_format: str. See `read_corpus`.

    Returns:
        dict for JSON: `machine`, `corpus`, `ceiling`, `builds` (one for each number of copies),
        `scaling` (one for each number of workers but the first, at the first number of copies),
        `start_up`.

    Raises:
        InputError: If corpus, tokenizer or a setting cannot be used.
    """
    facts = machine()
    copies, workers = list(dict.fromkeys(copies)), list(dict.fromkeys(workers))
    configs = {
        count: PretrainingDataConfig(max_seq_length=max_seq_length, copies=count)
        for count in copies
    }
    with tempfile.TemporaryDirectory() as folder:
        if not corpus:
            corpus = [write_documentation(folder)]
        if tokenizer is None:
            logger.info("training a vocabulary of %d pieces", vocab_size)
            tokenizer = train_on(corpus, corpus_format, vocab_size, Path(folder, "tokenizer"))
        larger, compared = Path(folder, "corpus"), []
        if len(workers) > 1:
            repeat_files(corpus, scale_to_mb, larger)
            compared = [(copies[0], number) for number in workers]

        def build(sources, count, number, clocked=False):
            arguments = sources, corpus_format, tokenizer, configs[count], number, clocked
            return partial(_measure, run_build, *arguments)

        first = configs[copies[0]]
        actions = {
            _CEILING: partial(_measure, run_ceiling, corpus, corpus_format, tokenizer, first)
        }
        for count in copies:
            actions[_build_name(count)] = build(corpus, count, 1, clocked=True)
        for number in sorted({1, *workers}):
            actions[_start_name(number)] = partial(_measure, run_workers, tokenizer, first, number)
        for count, number in compared:
            actions[_scaled_name(count, number)] = build([larger], count, number)
        logger.info("warming up")
        actions[_build_name(copies[0])]()
        runs = in_turn(actions, repeats)
        num_pieces = Tokenizer.load(tokenizer).vocab_size

    return {
        "machine": facts,
        "corpus": {
            "sources": [str(source) for source in corpus],
            "text_mb": runs[_CEILING][0]["text_bytes"] / 1e6,
            "vocab_size": num_pieces,
            "max_seq_length": max_seq_length,
            "max_predictions_per_seq": first.num_predictions,
            "repeats": repeats,
        },
        **_results(runs, copies, workers),
    }


def repeat_files(corpus, megabytes, folder):
    """Copies the files of a corpus, again and again under new names, until they are large enough.

    Args:
        corpus: list of str or Path. See `read_corpus`.
        megabytes: float. Where to stop; the last file is copied whole.
        folder: Path. Made here.
    """
    folder.mkdir()
    files, size = find_files(corpus), 0
    sizes = [storage.size_of(file.path) for file in files]
    for number in itertools.count():
        file = files[number % len(files)]
        target = folder / f"{number:06d}-{PurePath(file.path).name}"
        with storage.open_to_read(file.path) as source, open(target, "wb") as copy:
            shutil.copyfileobj(source, copy)
        size += sizes[number % len(files)]
        if size >= megabytes * 1e6 or not sum(sizes):
            return


_CEILING = "SentencePiece alone"


def _build_name(copies):
    return f"build, copies {copies}"


def _start_name(workers):
    return f"start, workers {workers}"


def _scaled_name(copies, workers):
    return f"larger build, copies {copies}, workers {workers}"


def _measure(run, *arguments):
    result, seconds = in_new_process(run, *arguments)
    return result | {"start_up": seconds - result["seconds"]}


def _results(runs, copies, workers):
    ceiling = runs[_CEILING]
    per_copy = runs[_build_name(copies[0])][0]["sequences"] / copies[0]
    starts = {number: runs[_start_name(number)] for number in {1, *workers}}
    return {
        "ceiling": _speeds([run | {"sequences": per_copy} for run in ceiling]),
        "builds": [
            {"copies": count, **_build_result(runs[_build_name(count)], ceiling, per_copy)}
            for count in copies
        ],
        "scaling": [
            {
                "copies": count,
                "workers": number,
                "compared_with": workers[0],
                **_gain(runs[_scaled_name(count, workers[0])], runs[_scaled_name(count, number)]),
            }
            for count in copies[:1]
            for number in workers[1:]
        ],
        "start_up": {
            "process_seconds": summary(run["start_up"] for run in starts[1]),
            "workers_seconds": {
                number: summary(_seconds(starts[number])) for number in workers if number > 1
            },
        },
    }


def _build_result(runs, ceiling, per_copy):
    middle = median_run(runs)
    return {
        "sequences": middle["sequences"],
        **_speeds(runs),
        "text_to_ceiling": ratios(_seconds(ceiling), _seconds(runs)),
        "sequences_to_ceiling": ratios(
            [run["sequences"] / run["seconds"] for run in runs],
            [per_copy / run["seconds"] for run in ceiling],
        ),
        "peak_mb": max(run["peak_mb"] for run in runs),
        "seconds": middle["seconds"],
        "stages": middle["stages"],
    }


def _gain(base, runs):
    worker_peaks = [run["worker_peak_mb"] for run in runs if run["worker_peak_mb"]]
    return {
        "text_mb": runs[0]["text_bytes"] / 1e6,
        "gain": ratios(_seconds(base), _seconds(runs)),
        "seconds_compared_with": summary(_seconds(base)),
        "seconds": summary(_seconds(runs)),
        "cpu_time": ratios(_cpu_seconds(runs), _cpu_seconds(base)),
        "cpu_share_compared_with": _cpu_share(base),
        "cpu_share": _cpu_share(runs),
        "peak_mb": max(run["peak_mb"] for run in runs),
        "worker_peak_mb": max(worker_peaks, default=None),
    }


def _speeds(runs):
    return {
        "sequences_per_second": summary(run["sequences"] / run["seconds"] for run in runs),
        "text_mb_per_second": summary(run["text_bytes"] / 1e6 / run["seconds"] for run in runs),
        "cpu_share": _cpu_share(runs),
    }


def _cpu_share(runs):
    """Returns how many processors the runs had, summed up over all of them."""
    return sum(_cpu_seconds(runs)) / sum(_seconds(runs))


def _cpu_seconds(runs):
    return [run["cpu_seconds"] for run in runs]


def _seconds(runs):
    return [run["seconds"] for run in runs]
