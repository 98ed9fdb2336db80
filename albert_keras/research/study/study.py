"""Runs a study: text, vocabularies and records once, then one run after the other, then the report.

Once the records exist, several processes, also on several machines, may run the same study in one
shared folder: each run is done by the process that has its lock.
"""

import csv
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.research.study.config import StudyConfig, read_study
from albert_keras.research.study.folder import (
    RESULT_FILE,
    STUDY_FILE,
    lock_of,
    read_json,
    run_folder,
    write_json,
)
from albert_keras.research.study.materials import StudyCorpus, prepare_corpus, prepare_materials
from albert_keras.research.study.planned import PlannedStudy, plan_study
from albert_keras.research.study.report import REPORT_FOLDER, write_report
from albert_keras.research.study.training import Job, is_complete, run_job
from albert_keras.research.study.updates import measure_seconds, needs_times, updates_in_time
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_file

logger = logging.getLogger(__name__)


class StudyResult(NamedTuple):
    """The result of a call of `study`."""

    path: Path  # folder of the study
    report: Path  # in Markdown, in a folder with its pictures and tables
    finished: int  # trainings that are finished, by all calls
    trainings: int  # runs times seeds
    trained_here: int  # trainings that this call finished
    in_use: tuple[str, ...]  # trainings that other processes work on, or that wait for these


def study(
    name: str | Path | StudyConfig,
    corpus: str | Path | Sequence[str | Path],
    out: str | Path,
    scale: str = "tiny",
    minutes: float | None = None,
    seeds: int | None = None,
    eval_corpus: str | Path | Sequence[str | Path] = (),
    corpus_format: str = "auto",
    changes: dict[str, Any] | None = None,
    workers: int | None = None,
) -> StudyResult:
    """Compares runs that differ in a few settings, and writes a report.

    The same call resumes an interrupted study, and ends in the same report. Trainings that are
    finished are used again if nothing that decides their weights has changed.

    Args:
        name: Name of a study of the package, a YAML file, or a StudyConfig.
        corpus: Text to train on, as in `read_corpus`.
        out: Folder of the study.
        scale: One of `SCALES`: model, lengths and updates to start from.
        minutes: Time for the training of one run with one seed. The updates of all runs are
            calculated from it and from a few measured steps, once: the study keeps them. None takes
            the updates of the scale.
        seeds: Seeds of each run; None takes the number in the study.
        eval_corpus: Held-out text; () holds out a tenth of the documents.
        corpus_format: Format of both texts, see `read_corpus`.
        changes: Settings of the base that replace settings of the study, nested.
        workers: Processes that build records, see `build_records`.

    Returns:
        StudyResult.

    Raises:
        InputError: If study, settings and text do not fit together, or `out` contains something
            else or another study.
        TrainingStopped: After SIGTERM or Ctrl-C, once the state is saved.
    """
    out = Path(out)
    config = name if isinstance(name, StudyConfig) else read_study(name)
    seeds = config.seeds if seeds is None else seeds
    if seeds < 1 or (minutes is not None and not minutes > 0):
        raise InputError(
            "`seeds` must be at least 1, and `minutes` more than 0. "
            f"Received: seeds={seeds}, minutes={minutes}."
        )
    planned = plan_study(config, scale, changes)
    if not (out / STUDY_FILE).is_file():
        check_new_folder(out)
    with lock_of(out, ".preparing.lock") as lock:
        lock.take()
        text = prepare_corpus(out, _sources(corpus), _sources(eval_corpus), corpus_format)
        _check_same(out, planned, text, minutes)
        if not (out / STUDY_FILE).is_file():
            write_json(out / STUDY_FILE, _described(planned, text, minutes))
        materials = prepare_materials(out, planned, text, workers)
        planned = _with_updates(out, planned, text, materials, minutes)
    jobs = {
        (run.name, seed): Job(run, seed, materials[run.name])
        for seed in range(1, seeds + 1)
        for run in planned.runs
    }
    trained_here, in_use = _take_turns(out, jobs)
    results = {key: _result(out, job, jobs) for key, job in jobs.items()}
    report = write_report(out / REPORT_FOLDER, planned, results, seeds)
    _write_times(out / "times.csv", results)
    finished = sum(is_complete(job, results[key]) for key, job in jobs.items())
    return StudyResult(out, report, finished, len(jobs), trained_here, in_use)


def check_new_folder(out: Path) -> None:
    """Raises InputError unless a new study can be written at `out`.

    A process that ended before `study.json` was written has left text at most.
    """
    if out.is_dir() and all(entry.name in ("corpus", ".preparing.lock") for entry in out.iterdir()):
        return
    check_output_folder(out)


def _sources(corpus):
    sources = [corpus] if isinstance(corpus, str | Path) else corpus
    return tuple(str(source) for source in sources)


def _described(planned: PlannedStudy, text: StudyCorpus, minutes):
    """Returns what must be the same whenever a study is continued."""
    return {
        "title": planned.study.title,
        "scale": planned.scale,
        "minutes": minutes,
        "equal": planned.study.equal,
        "corpus": text.digest,
        "eval_corpus": text.held_out_digest,
    }


def _check_same(out, planned, text, minutes):
    saved = read_json(out / STUDY_FILE)
    if saved is None:
        return
    described = _described(planned, text, minutes)
    differences = [
        f"{key} {described[key]!r} instead of {saved.get(key)!r}"
        for key in described
        if saved.get(key) != described[key]
    ]
    if differences:
        raise InputError(
            f"`{out}` contains another study. Received: {', '.join(differences)}. Repeat the "
            "command of that study to continue it, or choose another --out."
        )


def _with_updates(out, planned, text, materials, minutes):
    """Returns the study with the final updates of its runs, which the first call has chosen."""
    if needs_times(planned, minutes):
        saved = (read_json(out / STUDY_FILE) or {}).get("updates", {})
        names = {run.name for run in planned.runs}
        if not names <= saved.keys():
            logger.info("measuring the time of an update of %d runs", len(names))
            seconds = measure_seconds(planned, materials)
            saved = updates_in_time(planned, seconds, minutes, saved)
            described = _described(planned, text, minutes)
            write_json(out / STUDY_FILE, described | {"updates": saved})
        updates = saved
    else:
        updates = updates_in_time(planned, {}, minutes)
    runs = []
    for run in planned.runs:
        changed = run.config.with_flags(steps=updates[run.name])
        logger.info("%s: %s updates", run.name, f"{changed.training.steps:,}")
        runs.append(run._replace(config=changed))
    return planned._replace(runs=tuple(runs))


def _id_of(job, jobs):
    teacher = job.run.teacher
    return job.id(None if teacher is None else _id_of(jobs[teacher, job.seed], jobs))


def _folder_of(out, job, jobs):
    return run_folder(out, job.run.name, job.seed, _id_of(job, jobs))


def _result(out, job, jobs):
    return read_json(_folder_of(out, job, jobs) / RESULT_FILE)


def _take_turns(out, jobs):
    """Does every job that no other process does; returns their number, and the others' titles."""
    trained_here, pending = 0, list(jobs.values())
    while pending:
        postponed = []
        for job in pending:
            if is_complete(job, _result(out, job, jobs)):
                continue
            if not _try(out, job, jobs):
                postponed.append(job)
                continue
            trained_here += 1
        if len(postponed) == len(pending):
            return trained_here, tuple(job.title for job in postponed)
        pending = postponed
    return trained_here, ()


def _try(out, job, jobs):
    """Does a job, unless another process does it or its teacher is not trained; returns whether."""
    teacher = None
    if job.run.teacher is not None:
        teaching = jobs[job.run.teacher, job.seed]
        result = _result(out, teaching, jobs)
        if result is None:
            return False
        if result["diverged_at"] is not None:
            raise InputError(
                f"The training of `{teaching.title}`, the teacher of `{job.run.name}`, diverged at "
                f"update {result['diverged_at']:,}. Lower the learning rate of the teacher."
            )
        teacher = _folder_of(out, teaching, jobs) / "run"
    folder = _folder_of(out, job, jobs)
    with lock_of(folder, ".turn.lock") as lock:
        try:
            lock.take()
        except InputError as refusal:
            logger.info("%s: %s", job.title, refusal)
            return False
        if not is_complete(job, read_json(folder / RESULT_FILE)):
            run_job(job, folder, _id_of(job, jobs), teacher)
    return True


def _write_times(path, results):
    """Writes the time of each training, which the report does not contain."""
    with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(("run", "seed", "updates", "seconds"))
        for (name, seed), result in results.items():
            if result is not None:
                writer.writerow((name, seed, result["updates"], f"{result['seconds']:.1f}"))
