"""How fast a corpus becomes records, compared to SentencePiece alone and with more workers."""

import logging
import tempfile
from functools import partial
from pathlib import Path

from data_pipeline.config import PretrainingDataConfig
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.benchmarks.corpus import repeat_files, train_on, write_documentation
from tests.benchmarks.data_runs import run_build, run_ceiling, run_workers
from tests.benchmarks.measure import (
    in_new_process,
    in_turn,
    machine,
    median_run,
    ratios,
    summary,
)
from tests.benchmarks.report import machine_lines, spread, table

logger = logging.getLogger(__name__)


def benchmark_data(
    corpus: list[str] | None = None,
    tokenizer: Path | None = None,
    vocab_size: int = 8000,
    max_seq_length: int = 512,
    copies: list[int] = (1, 10),
    workers: list[int] = (1, 2),
    repeats: int = 3,
    scale_to_mb: float = 400,
    corpus_format: str = "auto",
) -> dict:
    """Measures builds of a corpus.

    Every run is a process of its own, and the runs take turns; README.md explains the numbers.
    Everything is written to the system's folder for temporary files.

    Args:
        corpus: See `read_corpus`. None takes the documentation of the installed Python packages.
        tokenizer: None trains a vocabulary on the corpus first.
        vocab_size: Pieces of that vocabulary, or fewer if the corpus has no more.
        workers: The others are compared with the first.
        scale_to_mb: To compare workers, the files of the corpus are copied repeatedly until they
            are this large.

    Returns:
        dict for JSON: `machine`, `corpus`, `ceiling`, `builds` (one for each number of copies),
        `scaling` (one for each number of workers but the first, at the first number of copies),
        `start_up`.
    """
    facts = machine()
    copies, workers = list(dict.fromkeys(copies)), list(dict.fromkeys(workers))
    configs = {
        count: PretrainingDataConfig(max_seq_length=max_seq_length, copies=count)
        for count in copies
    }
    first = configs[copies[0]]
    with tempfile.TemporaryDirectory() as folder:
        if not corpus:
            corpus = [write_documentation(folder)]
        if tokenizer is None:
            logger.info("training a vocabulary of %d pieces", vocab_size)
            tokenizer = train_on(corpus, corpus_format, vocab_size, Path(folder, "tokenizer"))

        def build(sources, config, number, clocked=False):
            arguments = sources, corpus_format, tokenizer, config, number, clocked
            return partial(_measure, run_build, *arguments)

        ceiling = partial(_measure, run_ceiling, corpus, corpus_format, tokenizer, first)
        actions = {"SentencePiece alone": ceiling}
        for count, config in configs.items():
            actions[_build_name(count)] = build(corpus, config, 1, clocked=True)
        for number in sorted({1, *workers}):
            actions[_start_name(number)] = partial(_measure, run_workers, tokenizer, first, number)
        if len(workers) > 1:
            larger = Path(folder, "corpus")
            repeat_files(corpus, scale_to_mb, larger)
            for number in workers:
                actions[_scaled_name(number)] = build([larger], first, number)
        logger.info("warming up")
        actions[_build_name(copies[0])]()
        runs = in_turn(actions, repeats)
        vocab_size = Tokenizer.load(tokenizer).vocab_size

    ceiling = runs["SentencePiece alone"]
    per_copy = runs[_build_name(copies[0])][0]["sequences"] / copies[0]
    return {
        "machine": facts,
        "corpus": {
            "sources": [str(source) for source in corpus],
            "text_mb": ceiling[0]["text_bytes"] / 1e6,
            "vocab_size": vocab_size,
            "max_seq_length": max_seq_length,
            "max_predictions_per_seq": first.num_predictions,
            "repeats": repeats,
        },
        "ceiling": _speeds([run | {"sequences": per_copy} for run in ceiling]),
        "builds": [
            {"copies": count, **_build_result(runs[_build_name(count)], ceiling, per_copy)}
            for count in copies
        ],
        "scaling": [
            {
                "copies": copies[0],
                "workers": number,
                "compared_with": workers[0],
                **_gain(runs[_scaled_name(workers[0])], runs[_scaled_name(number)]),
            }
            for number in workers[1:]
        ],
        "start_up": {
            "process_seconds": summary(run["start_up"] for run in runs[_start_name(1)]),
            "workers_seconds": {
                number: summary(_values(runs[_start_name(number)], "seconds"))
                for number in workers
                if number > 1
            },
        },
    }


def _build_name(copies):
    return f"build, copies {copies}"


def _start_name(workers):
    return f"start, workers {workers}"


def _scaled_name(workers):
    return f"larger build, workers {workers}"


def _measure(run, *arguments):
    result, seconds = in_new_process(run, *arguments)
    return result | {"start_up": seconds - result["seconds"]}


def _build_result(runs, ceiling, per_copy):
    middle = median_run(runs)
    return {
        "sequences": middle["sequences"],
        **_speeds(runs),
        "text_to_ceiling": ratios(_values(ceiling, "seconds"), _values(runs, "seconds")),
        "sequences_to_ceiling": ratios(
            [run["sequences"] / run["seconds"] for run in runs],
            [per_copy / run["seconds"] for run in ceiling],
        ),
        "peak_mb": max(_values(runs, "peak_mb")),
        "seconds": middle["seconds"],
        "stages": middle["stages"],
    }


def _gain(base, runs):
    return {
        "text_mb": runs[0]["text_bytes"] / 1e6,
        "gain": ratios(_values(base, "seconds"), _values(runs, "seconds")),
        "seconds_compared_with": summary(_values(base, "seconds")),
        "seconds": summary(_values(runs, "seconds")),
        "cpu_time": ratios(_values(runs, "cpu_seconds"), _values(base, "cpu_seconds")),
        "cpu_share_compared_with": _cpus(base),
        "cpu_share": _cpus(runs),
        "peak_mb": max(_values(runs, "peak_mb")),
        "worker_peak_mb": max(filter(None, _values(runs, "worker_peak_mb")), default=None),
    }


def _speeds(runs):
    return {
        "sequences_per_second": summary(run["sequences"] / run["seconds"] for run in runs),
        "text_mb_per_second": summary(run["text_bytes"] / 1e6 / run["seconds"] for run in runs),
        "cpu_share": _cpus(runs),
    }


def _cpus(runs) -> float:
    """Returns how many processors the runs used on average."""
    return sum(_values(runs, "cpu_seconds")) / sum(_values(runs, "seconds"))


def _values(runs, name):
    return [run[name] for run in runs]


def data_lines(result):
    """Yields the lines of the result of `benchmark_data`."""
    corpus, builds, ceiling = result["corpus"], result["builds"], result["ceiling"]
    yield from machine_lines(result["machine"])
    yield (
        f"corpus: {corpus['text_mb']:.1f} MB of text, V = {corpus['vocab_size']}, "
        f"S = {corpus['max_seq_length']}, P = {corpus['max_predictions_per_seq']}; "
        f"median of {corpus['repeats']} runs [lowest..highest]"
    )
    yield ""
    yield "One worker, the original corpus"
    header = ["", "sequences/s", "of ceiling", "text MB/s", "of ceiling", "CPUs", "peak MB"]
    rows = [_speed_cells("ceiling: SentencePiece alone", ceiling, 1.0, 1.0, "")]
    for build in builds:
        shares = (build[name]["median"] for name in ("sequences_to_ceiling", "text_to_ceiling"))
        rows.append(
            _speed_cells(f"copies {build['copies']}", build, *shares, f"{build['peak_mb']:.0f}")
        )
    yield from table(header, rows)
    yield ""
    yield "Time of the stages, one worker"
    header = [""]
    for build in builds:
        header += [f"copies {build['copies']}", "%"]
    rows = []
    for name in (*builds[0]["stages"], "whole build"):
        rows.append([name])
        for build in builds:
            seconds = build["stages"].get(name, build["seconds"])
            rows[-1] += [f"{seconds:.2f} s", f"{seconds / build['seconds']:.1%}"]
    yield from table(header, rows)
    if result["scaling"]:
        yield ""
        yield "More workers, a larger corpus"
        header = ["", "text MB", "workers", "gain", "seconds", "CPU time", "CPUs", "peak MB"]
        yield from table([*header, "MB per worker"], map(_scaling_cells, result["scaling"]))
    yield ""
    start_up = result["start_up"]
    yield f"start-up of a process: {spread(start_up['process_seconds'], '.2f')} s"
    for number, seconds in start_up["workers_seconds"].items():
        yield f"start-up of {number} workers, part of each build: {spread(seconds, '.2f')} s"


def _speed_cells(name, speeds, sequences_share, text_share, peak_mb):
    return [
        name,
        spread(speeds["sequences_per_second"], ",.0f"),
        f"{sequences_share:.0%}",
        spread(speeds["text_mb_per_second"], ".2f"),
        f"{text_share:.0%}",
        f"{speeds['cpu_share']:.2f}",
        peak_mb,
    ]


def _scaling_cells(row):
    before, after = row["seconds_compared_with"]["median"], row["seconds"]["median"]
    worker_peak = row["worker_peak_mb"]
    return [
        f"copies {row['copies']}",
        f"{row['text_mb']:.0f}",
        f"{row['compared_with']} → {row['workers']}",
        spread(row["gain"], ".2f"),
        f"{before:.1f} → {after:.1f}",
        f"{row['cpu_time']['median'] - 1:+.0%}",
        f"{row['cpu_share_compared_with']:.2f} → {row['cpu_share']:.2f}",
        f"{row['peak_mb']:.0f}",
        "" if worker_peak is None else f"{worker_peak:.0f}",
    ]
