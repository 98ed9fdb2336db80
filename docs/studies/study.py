"""Trains models that differ in a few settings, each with several seeds, and compares their scores.

    python docs/studies/study.py docs/studies/sharing.yaml --corpus books/ --out runs/sharing

A study is a YAML file: those beside this script repeat tables of papers, and docs/experiments.md
explains the keys. The same command continues an interrupted study and uses again what is finished.
"""

import argparse
import hashlib
import json
import statistics
from pathlib import Path
from typing import Any, Literal

import yaml

import data_pipeline
from albert_keras import PretrainingConfig, distill, evaluate, pretrain
from albert_keras.cli.arguments import read_values
from albert_keras.distillation.config import DistillationConfig
from albert_keras.report import markdown_table
from data_pipeline import InputError, PretrainingDataConfig
from data_pipeline.settings import Settings
from data_pipeline.text.corpus import split_heldout

#: All models are scored on the same held-out records: with fixed masks of single words.
HELD_OUT = {"static_masks": True, "copies": 1, "masking": {"masked_lm_prob": 0.15, "max_ngram": 1}}
RULE = "Accuracies in percent: the median over the seeds, with the lowest and the highest."


class Changes(Settings):
    """Settings of a run by section, or those that differ from others; `plan` checks the values."""

    vocabulary_size: int = 8000
    data: dict[str, Any] = {}
    model: dict[str, Any] = {}
    training: dict[str, Any] = {}
    optimizer: dict[str, Any] = {}
    distillation: dict[str, Any] = {}


class RunOfStudy(Changes):
    """A run: its differences from the base."""

    name: str
    scales: dict[Literal["tiny", "mini", "paper"], Changes] = {}  # further differences
    teacher: str | None = None  # an earlier run, from which this one is distilled
    corpus_share: float = 1.0  # fraction of the training documents
    published: dict[str, float] = {}  # results of the source, by the keys of `measures`


class Study(Settings):
    """A study: a base, runs as differences from it, and what all of them are scored on."""

    title: str
    question: str = ""
    source: str = ""  # the publication that is repeated
    note: str = ""  # how its runs differ from these
    measures: dict[str, str] = {}  # headings of its results
    evaluate: dict[str, dict[str, Any]] = {"masked LM": {"objective": "none"}}  # settings of data
    base: Changes = Changes()
    scales: dict[Literal["tiny", "mini", "paper"], Changes] = {}
    runs: tuple[RunOfStudy, ...]


def merged(*parts: dict[str, Any]) -> dict[str, Any]:
    """Merges nested values; later ones take precedence."""
    result: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            both = isinstance(value, dict) and isinstance(result.get(key), dict)
            result[key] = merged(result[key], value) if both else value
    return result


def plan(study: Study, scale: str, changes: dict[str, Any], length: float = 1.0) -> tuple:
    """Returns vocabulary size, data and training of each run; and data of the held-out records."""
    scales = yaml.safe_load(Path(__file__).with_name("scales.yaml").read_text(encoding="utf-8"))
    parts = [Changes(**scales[scale]), study.base, study.scales.get(scale), Changes(**changes)]
    base = merged(*(part.model_dump(exclude_unset=True) for part in parts if part is not None))
    planned: dict[str, tuple] = {}
    for run in study.runs:
        own = run.model_dump(exclude_unset=True, include=set(Changes.model_fields))
        further = run.scales.get(scale, Changes()).model_dump(exclude_unset=True)
        values = merged(base, own, further)
        if run.teacher not in (None, *planned):
            raise InputError(f"The teacher {run.teacher!r} of `{run.name}` must be an earlier run.")
        kind = PretrainingConfig if run.teacher is None else DistillationConfig
        config = kind.of({name: values[name] for name in kind.model_fields if name in values})
        config = config.with_flags(steps=max(1, round(length * config.training.steps)))
        data = PretrainingDataConfig(**values["data"])
        planned[run.name] = values["vocabulary_size"], data, config
    kept = {name: merged(base["data"], HELD_OUT, own) for name, own in study.evaluate.items()}
    return planned, {name: PretrainingDataConfig(**kept[name]) for name in kept}


def read_texts(corpus: list[str], eval_corpus: list[str] | None) -> tuple[list, list]:
    """Returns documents to train on, of which any first part is a fair share, and held-out ones."""
    documents = sorted(data_pipeline.read_corpus(corpus), key=lambda document: document.digest)
    if eval_corpus:
        return documents, list(data_pipeline.read_corpus(eval_corpus))
    return split_heldout(documents, 0.1)


def folder_for(parent: Path, *content: Any) -> Path:
    """Returns the folder below `parent` of what these values decide, whatever made them."""
    text = json.dumps(content, sort_keys=True, default=str)
    return parent / hashlib.sha256(text.encode()).hexdigest()[:12]


def tokenizer_for(out: Path, documents: list, size: int):
    """Returns a tokenizer, whose vocabulary is trained if it does not exist."""
    folder = folder_for(out / "vocabularies", size, [one.digest for one in documents])
    if not folder.is_dir():
        texts = (paragraph for document in documents for paragraph in document.paragraphs)
        data_pipeline.train_vocabulary(texts, folder, size)
    return data_pipeline.Tokenizer.load(folder)


def records_for(out: Path, documents: list, tokenizer, config) -> Path:
    """Returns a folder of records, which are built if they do not exist."""
    texts, settings = [one.digest for one in documents], config.model_dump(mode="json")
    folder = folder_for(out / "records", texts, tokenizer.digest, settings)
    if not (folder / "dataset_info.json").is_file():
        data_pipeline.build_records(documents, tokenizer, folder, config)
    return folder


def train(folder: Path, config, records: Path, held_out: dict[str, Path], teacher: Path | None):
    """Trains a run and scores it, unless that is done; returns updates and accuracies."""
    result = folder / "result.json"
    if not result.is_file():
        if teacher is None:
            done = pretrain(records, folder / "run", config)
        else:
            done = distill(teacher / "run", records, folder / "run", config)
        scores = {"updates": done.step}
        for name, data in held_out.items():
            found = evaluate(folder / "run", data)
            is_masked_lm = data_pipeline.DatasetInfo.read(data).objective == "none"
            key = "masked_lm_accuracy" if is_masked_lm else "sentence_order_accuracy"
            scores[name] = getattr(found, key)
        result.write_text(json.dumps(scores))
    return json.loads(result.read_text())


def report(study: Study, results: dict[str, list[dict[str, Any]]]) -> str:
    """Returns the report in Markdown."""
    published, rows = [f"published: {title}" for title in study.measures.values()], []
    for run in study.runs:
        cells = [run.name, f"{statistics.median(one['updates'] for one in results[run.name]):,.0f}"]
        for name in study.evaluate:
            scores = [one[name] for one in results[run.name] if one[name] is not None]
            three = [100 * of(scores) for of in (statistics.median, min, max) if scores]
            cells.append("{:.1f} [{:.1f}..{:.1f}]".format(*three) if scores else "no head")
        rows.append(cells + [str(run.published.get(key, "")) for key in study.measures])
    lines = markdown_table(["run", "updates", *study.evaluate, *published], rows)
    parts = [f"# {study.title}", study.question, study.source, study.note, "\n".join(lines), RULE]
    return "\n\n".join(filter(None, parts)) + "\n"


def main(words: list[str] | None = None) -> None:
    """Runs the study that a command names, and prints and writes its report."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("study", type=Path, help="YAML file")
    parser.add_argument("--corpus", nargs="+", required=True, help="files or folders")
    parser.add_argument("--eval-corpus", nargs="*", help="default: a tenth of it")
    parser.add_argument("--out", type=Path, required=True, help="folder of the study")
    parser.add_argument("--scale", choices=("tiny", "mini", "paper"), default="tiny")
    parser.add_argument("--seeds", type=int, default=2, help="trainings of each run")
    parser.add_argument("--length", type=float, default=1.0, help="fraction of all updates")
    parser.add_argument("--set", nargs="*", help="SECTION.KEY=VALUE, settings of the base")
    given = parser.parse_args(words)
    study, out = Study(**yaml.safe_load(given.study.read_text(encoding="utf-8"))), given.out
    planned, evaluations = plan(study, given.scale, read_values(None, given.set), given.length)
    documents, kept = read_texts(given.corpus, given.eval_corpus)
    results, folders = {run.name: [] for run in study.runs}, {}
    for run in study.runs:
        size, data, config = planned[run.name]
        tokenizer = tokenizer_for(out, documents, size)
        share = documents[: max(1, round(run.corpus_share * len(documents)))]
        records = records_for(out, share, tokenizer, data)
        held_out = {key: records_for(out, kept, tokenizer, one) for key, one in evaluations.items()}
        for seed in range(1, given.seeds + 1):
            config, teacher = config.with_flags(seed=seed), folders.get((run.teacher, seed))
            content = config.model_dump(mode="json"), records, held_out, teacher
            folder = folders[run.name, seed] = folder_for(out / "runs", *content)
            results[run.name].append(train(folder, config, records, held_out, teacher))
    text = report(study, results)
    (out / "report.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        raise SystemExit(f"error: {error}") from None
