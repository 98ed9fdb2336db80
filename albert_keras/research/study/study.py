"""Runs a study: text, vocabularies and records once, then one run after the other, then the report.

One process at a time works in the folder of a study:

    study.json           what was asked for, and the updates of the runs if time decided them
    corpus/<id>/         training and held-out text, if a part of the corpus is held out
    vocabularies/<id>/   one for each vocabulary
    records/<id>/        records, for training and held out
    runs/<name>-seed-<n>-<id>/    `run/`, the training; `result.json`, its scores
    report/              report.md, pictures and tables

An id is computed from the settings and the text that decide the content, so runs that need the same
content share it, and a run whose settings have changed gets a folder of its own.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.research.study.config import StudyConfig, read_study
from albert_keras.research.study.materials import (
    StudyCorpus,
    prepare_corpus,
    prepare_materials,
    read_json,
    write_json,
)
from albert_keras.research.study.planned import PlannedStudy, plan_study
from albert_keras.research.study.report import REPORT_FOLDER, write_report
from albert_keras.research.study.training import Job, run_job
from albert_keras.research.study.updates import measure_seconds, needs_times, updates_in_time
from data_pipeline.errors import InputError
from data_pipeline.files import LOCK_FILE, check_output_folder
from data_pipeline.folder_lock import FolderLock

logger = logging.getLogger(__name__)

_STUDY_FILE = "study.json"


class StudyResult(NamedTuple):
    """The result of a call of `study`."""

    path: Path  # folder of the study
    report: Path  # in Markdown, in a folder with its pictures and tables
    trainings: int  # runs times seeds
    trained_here: int  # trainings that this call finished


def study(
    name: str | Path | StudyConfig,
    corpus: str | Path | Sequence[str | Path],
    out: str | Path,
    scale: str = "tiny",
    minutes: float | None = None,
    seeds: int | None = None,
    eval_corpus: str | Path | Sequence[str | Path] = (),
    corpus_format: str = "auto",
    language: str | None = None,
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
        language: Code of the language by whose rules sentences are split, the same as
            `data.language` in `changes`; None takes the language of the study, English.
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
    planned = plan_study(config, scale, changes, language)
    if not (out / _STUDY_FILE).is_file():
        check_new_folder(out)
    advice = "Wait until it has ended."
    lock = FolderLock(out, work="is in use", advice=advice, makes_folder=True)
    with lock:
        lock.take()
        text = prepare_corpus(out, _sources(corpus), _sources(eval_corpus), corpus_format)
        _check_same(out, planned, text, minutes)
        if not (out / _STUDY_FILE).is_file():
            write_json(out / _STUDY_FILE, _described(planned, text, minutes))
        materials = prepare_materials(out, planned, text, workers)
        planned = _with_updates(out, planned, text, materials, minutes)
        jobs = _jobs(out, planned, materials, seeds)
        unfinished = [job for job in jobs if not job.is_complete]
        for job in unfinished:
            if not job.is_complete:  # runs with the same settings share their training
                run_job(job)
        results = {(job.run.name, job.seed): job.result() for job in jobs}
        report = write_report(out / REPORT_FOLDER, planned, results, seeds)
    return StudyResult(out, report, len(jobs), len(unfinished))


def _jobs(out, planned, materials, seeds) -> list[Job]:
    """Returns the trainings of all runs and seeds, each teacher before its students."""
    runs, jobs = {run.name: run for run in planned.runs}, {}

    def add(name, seed):
        if (name, seed) not in jobs:
            run = runs[name]
            teacher = None if run.teacher is None else add(run.teacher, seed)
            jobs[name, seed] = Job(out, run, seed, materials[name], teacher)
        return jobs[name, seed]

    for seed in range(1, seeds + 1):
        for name in runs:
            add(name, seed)
    return list(jobs.values())


def check_new_folder(out: Path) -> None:
    """Raises InputError unless a new study can be written at `out`.

    A process that ended before `study.json` was written has left text at most.
    """
    if out.is_dir() and all(entry.name in ("corpus", LOCK_FILE) for entry in out.iterdir()):
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
        "corpus": text.training.digest,
        "eval_corpus": text.held_out.digest,
    }


def _check_same(out, planned, text, minutes):
    saved = read_json(out / _STUDY_FILE)
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
            "command of that study to continue it, or choose another `out`."
        )


def _with_updates(out, planned, text, materials, minutes):
    """Returns the study with the final updates of its runs, which the first call has chosen."""
    if needs_times(planned, minutes):
        saved = (read_json(out / _STUDY_FILE) or {}).get("updates", {})
        names = {run.name for run in planned.runs}
        if not names <= saved.keys():
            logger.info("measuring the time of an update of %d runs", len(names))
            seconds = measure_seconds(planned, materials)
            saved = updates_in_time(planned, seconds, minutes, saved)
            described = _described(planned, text, minutes)
            write_json(out / _STUDY_FILE, described | {"updates": saved})
        updates = saved
    else:
        updates = updates_in_time(planned, {}, minutes)
    runs = []
    for run in planned.runs:
        changed = run.config.with_flags(steps=updates[run.name])
        logger.info("%s: %s updates", run.name, f"{changed.training.steps:,}")
        runs.append(run._replace(config=changed))
    return planned._replace(runs=tuple(runs))
