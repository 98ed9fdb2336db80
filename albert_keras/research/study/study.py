"""Runs a study: text, vocabularies and records once, then one run after the other, then the report.

One process at a time works in the folder of a study.
"""

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.research.study.config import StudyConfig, read_study
from albert_keras.research.study.folder import (
    LOCK_FILE,
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
from data_pipeline.files import check_output_folder

logger = logging.getLogger(__name__)


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
    with lock_of(out) as lock:
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
        trained_here = sum(not is_complete(one, _result(out, one, jobs)) for one in jobs.values())
        for job in jobs.values():
            _complete(out, job, jobs)
        results = {key: _result(out, job, jobs) for key, job in jobs.items()}
        report = write_report(out / REPORT_FOLDER, planned, results, seeds)
    return StudyResult(out, report, len(jobs), trained_here)


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


def _complete(out, job, jobs):
    """Trains and scores a run, its teacher first, unless that was done by an earlier call."""
    folder = _folder_of(out, job, jobs)
    if is_complete(job, read_json(folder / RESULT_FILE)):
        return
    teacher = None
    if job.run.teacher is not None:
        teaching = jobs[job.run.teacher, job.seed]
        _complete(out, teaching, jobs)
        diverged_at = _result(out, teaching, jobs)["diverged_at"]
        if diverged_at is not None:
            raise InputError(
                f"The training of `{teaching.title}`, the teacher of `{job.run.name}`, diverged at "
                f"update {diverged_at:,}. Lower the learning rate of the teacher."
            )
        teacher = _folder_of(out, teaching, jobs) / "run"
    run_job(job, folder, _id_of(job, jobs), teacher)
