"""Writes the page of a run: its facts are collected here, the wording is in the template."""

import base64
import io
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import jinja2
import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.models.weight_count import model_line
from albert_keras.runs.curves import PANELS, curves_of, dev_panels
from albert_keras.runs.overview import RunContent, RunSummary, read_run, summarize
from albert_keras.runs.report import tables
from albert_keras.runs.trained_data import RECORDS, Overlap
from albert_keras.tasks.results import best_seed, cautions
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import check_output_folder, whole_text
from data_pipeline.progress import format_duration
from data_pipeline.records.record_files import RecordFiles

logger = logging.getLogger(__name__)

#: Name of the page in the folder of its run.
REPORT = "report.html"
#: Records whose masks are filled, and pictures that are shown if they are in the folder.
_SAMPLES, _PICTURES = 6, ("confusion.png", "scores.png")
_CANDIDATES = 5
#: The model's inputs among the features of a batch.
_INPUTS = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions")


def write_report(
    run: str | Path,
    out: str | Path | None = None,
    data: str | Path | None = None,
    overwrite: bool = False,
) -> Path:
    """Writes a page about a pre-training or a fine-tuning, and returns its path.

    Args:
        run: The folder of the run.
        out: The HTML file; None writes `report.html` in that folder and replaces an older one.
        data: Held-out records, built with the tokenizer of a pre-training, for samples of filled
            masks; None takes the records that `evaluate` scored last, if they still exist.
        overwrite: Whether to replace `out` if it exists.

    Raises:
        InputError: If the folder is not a run, the run is damaged, `data` does not suit the run,
            or `out` exists.
    """
    folder = Path(run)
    path = folder / REPORT if out is None else Path(out)
    if out is not None and not overwrite:
        if path.exists():
            raise InputError(
                f"`{path}` exists. Use `overwrite=True`, or choose another `out`.",
                Mistake.OUTPUT_EXISTS,
            )
        check_output_folder(path)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=True,
    )
    facts = _facts_of(folder, None if data is None else Path(data))
    text = environment.get_template("report.html.jinja").render(**facts)
    with whole_text(path) as file:
        file.write(text)
    return path


def _facts_of(folder: Path, data: Path | None) -> dict[str, Any]:
    """Returns what the template shows."""
    run = read_run(folder)
    if not run.trainings:
        raise InputError(f"`{folder}` has no `run.json`: its training has not started yet.")
    summary = summarize(run)
    _, record, _, evaluations = run.trainings[0]
    is_finetuning = run.kind == "finetuning"
    samples, no_samples, answers = None, "", []
    if is_finetuning:
        if data is not None:
            raise InputError(
                "`data` must be given only for a pre-training run, whose report fills masks."
            )
        scores = tables.result_table(run.result, run.scores())
        answers = tables.wrong_answers(folder, run.result) if run.result else []
    else:
        scores = tables.evaluation_table(evaluations)
        samples, no_samples = _samples(folder, data, evaluations)
    shape = AlbertConfig.from_dict(record["albert_config"])
    return {
        "summary": summary,
        "name": folder.absolute().name,
        "model": f"{summary.model}: {model_line(shape)}, hidden size {shape.hidden_size}, "
        f"{shape.vocab_size:,} pieces",
        "facts": _numbers(summary, run),  # the few most important ones
        "scores": scores,
        "problems": list(_problems(summary, run)),
        "curves": list(
            _curves(run.trainings, (summary.metric or "accuracy") if is_finetuning else None)
        ),
        "samples": samples,
        "no_samples": no_samples,  # why there are none
        "answers": answers,
        "pictures": list(_pictures(folder)),
        "settings": tables.settings_tables(record),
    }


def _samples(folder, data, evaluations):
    """Returns samples, or None and the reason."""
    if data is not None:
        return fill_samples(folder, data, _SAMPLES), ""
    scored = [Path(scores["path"]) for _, scores in evaluations if scores.get("path")]
    if not scored or not scored[-1].is_dir():
        return None, "Held-out records are needed to fill masks: give them as `data`."
    try:
        return fill_samples(folder, scored[-1], _SAMPLES), ""
    except InputError as error:
        return None, str(error)


def _numbers(summary, run):
    steps = "" if summary.steps in (None, summary.step) else f" of {summary.steps:,}"
    numbers = [("steps", f"{summary.step:,}{steps}")]
    if summary.score is not None:
        what = "" if summary.is_held_out else ", training"
        metric = summary.metric.replace("_", " ").replace("lm", "LM")
        numbers.append((f"{metric}{what}", f"{summary.score:.3f}"))
    if run.result:
        numbers.append(("best step", f"{best_seed(run.result).best_step:,}"))
    numbers.append(("training time", format_duration(summary.seconds)))
    if summary.time_budget is not None:
        numbers.append(("time budget", format_duration(summary.time_budget)))
    return numbers


def _problems(summary: RunSummary, run: RunContent) -> Iterator[str]:
    """Yields sentences: is the run complete, was every update made, what was trained on?"""
    if not summary.is_finished:
        done = ""
        if summary.time_budget is not None:
            used, all_of_it = map(format_duration, (summary.seconds, summary.time_budget))
            done = f": {used} of its time of {all_of_it}"
        elif summary.steps is not None and summary.step < summary.steps:
            done = f": step {summary.step:,} of {summary.steps:,}"
        yield (f"The run is not complete{done}. Repeat the command that started it to resume it.")
    for one in run.trainings:
        name = f"{one.path.name}: " if len(run.trainings) > 1 else ""
        skipped = [line for line in one.log if line.get("skipped")]
        if skipped:
            count = sum(line["skipped"] for line in skipped)
            yield (
                f"{name}{count:,} update{'s were' if count > 1 else ' was'} skipped, because the "
                "gradients were not finite or far larger than before; the first is in the report "
                f"of step {skipped[0]['step']:,}."
            )
    # The last records that were scored; a fine-tuning has its own cautions.
    first = run.trainings[0]
    evaluations = [] if run.result else first.evaluations
    fields = evaluations and evaluations[-1][1].get("overlap")
    if fields and fields["normalised"]:
        yield f"{Overlap.of(fields).sentence(RECORDS)}."
    scored = [scores for _, scores in first.evaluations if "num_predictions" in scores]
    if scored and not (verdict := tables.verdict_on(scored[-1]))[0]:
        yield f"The model is {verdict[1]}."
    for entry in first.record.get("changes") or ():
        changes = ", ".join(
            f"{key} from {json.dumps(old)} to {json.dumps(new)}"
            for key, (old, new) in entry["changes"].items()
        )
        yield f"Settings were changed at step {entry['at_step']:,}: {changes}."
    yield from cautions(run.result) if run.result else ()


def _curves(trainings, metric):
    """Yields name and address of a picture for each training that has logged anything.

    The main score of a fine-tuning is its `metric`; None stands for a pre-training.
    """
    for folder, _, log, evaluations in trainings:
        if log or evaluations:
            panels = PANELS if metric is None else dev_panels(evaluations, metric)
            picture = io.BytesIO()
            curves_of(folder, panels).savefig(picture, format="png", dpi=100)
            yield folder.name, _address(picture.getvalue())


def _pictures(folder):
    for name in _PICTURES:
        if (path := folder / name).is_file():
            yield name.removesuffix(".png"), _address(path.read_bytes())


def _address(png):
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


class Token(NamedTuple):
    """A token of a text; with guesses if it was masked."""

    text: str  # with a space in front if a word begins here
    guesses: tuple[tuple[str, float], ...] = ()  # pieces, the most likely first
    is_special: bool = False  # such as [CLS], which says nothing about the direction of the text


class Samples(NamedTuple):
    """Records with their masked tokens filled."""

    data: Path  # the folder of the records
    step: int  # the checkpoint
    texts: list[list[Token]]


def fill_samples(run: Path, data: Path, count: int) -> Samples:
    """Lets the model of a pre-training fill the masks of some records, the same every time.

    Args:
        run: The folder of the run.
        data: A folder of records, built with its tokenizer.
        count: Number of records, taken at regular distances.

    Raises:
        InputError: If the run has no checkpoint or no tokenizer, or the records do not suit it.
    """
    from albert_keras.training.scored_model import open_scored_model
    from data_pipeline.reader.reader import evaluation_dataset

    logger.info("filling masks of `%s`", data)
    records = RecordFiles(data)
    weights = open_scored_model(run, records)
    if not len(records):
        raise InputError(f"`{data}` must contain records. Received: 0 records.")
    tokenizer, model = weights.tokenizer, weights.run.load_model(weights.step)
    distance = max(len(records) // count, 1)
    dataset = evaluation_dataset(records, 1).shard(distance, 0).take(count)
    texts = []
    with records.failures_named():
        for batch in dataset.as_numpy_iterator():
            logits = model({name: batch[name] for name in _INPUTS})["masked_lm_logits"].numpy()[0]
            texts.append(_filled(batch, np.asarray(logits, np.float64), tokenizer))
    return Samples(data, weights.step, texts)


def _filled(batch, logits, tokenizer):
    real = batch["masked_lm_weights"][0] > 0
    positions = batch["masked_lm_positions"][0][real].tolist()
    rows = dict(zip(positions, logits[real], strict=True))
    truths = dict(zip(positions, batch["masked_lm_ids"][0][real].tolist(), strict=True))
    tokens = []
    for position in range(int(batch["input_mask"][0].sum())):
        id = truths.get(position, int(batch["input_ids"][0][position]))
        guesses = _guesses(rows[position], tokenizer) if position in rows else ()
        tokens.append(Token(_readable(id, tokenizer), guesses, _is_special(id, tokenizer)))
    return tokens


def _guesses(logits, tokenizer):
    probabilities = np.exp(logits - logits.max())
    probabilities /= probabilities.sum()
    best = np.argsort(-probabilities)[:_CANDIDATES].tolist()
    return tuple((_readable(id, tokenizer), float(probabilities[id])) for id in best)


def _readable(id, tokenizer):
    has_space, piece = tokenizer.shown(id)
    return f" {piece}" if has_space or _is_special(id, tokenizer) else piece


def _is_special(id, tokenizer):
    return id in (tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id)
