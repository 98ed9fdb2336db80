"""`albert-keras evaluate`."""

from pathlib import Path
from typing import Annotated

from typer import Context, Option

from albert_keras.cli.arguments import check_files, check_records
from albert_keras.cli.command import Output, command
from albert_keras.cli.options import DataDir, Encoding, SkipBadRows, Step, refuse
from albert_keras.formats.detection import detect, read_export_record
from albert_keras.report import count_of, percent, table
from albert_keras.texts.minimal_pairs import pair_files
from data_pipeline.errors import InputError

_SCORING = ("step", "batch_size", "strategy")
_ON_RECORDS = ("run", "data", "baseline_data", "allow_trained_rows", *_SCORING)
_ON_A_TASK = (
    *("run", "data", "data_dir", "split", "out", "encoding", "skip_bad_rows", "bag_of_words"),
    *("allow_trained_rows", *_SCORING),
)
_ON_PAIRS = ("run", "minimal_pairs", "mask_rest_of_word", "out", "overwrite", *_SCORING)
_ON_FILES = ("predictions", "task", "data", "null_odds")

#: Kinds of models that are evaluated on records or examples.
_KINDS = ("run", "fine-tuning", "export")
_WANTED = (
    "It must be the folder of a run or a fine-tuning, or an export. Create one with "
    "`albert-keras pretrain` or `finetune`."
)


@command()
def evaluate(
    context: Context,
    given,
    run: Path | None = None,
    data: Annotated[Path | None, Option(show_default="development examples")] = None,
    split: Annotated[str | None, Option(show_default="dev")] = None,
    data_dir: DataDir = None,
    minimal_pairs: list[Path] | None = None,
    mask_rest_of_word: bool = False,
    baseline_data: Path | None = None,
    out: Path | None = None,
    overwrite: bool = False,
    step: Step = None,
    batch_size: Annotated[int, Option(min=1)] = 64,
    strategy: Annotated[
        str, Option(metavar="[auto|tpu|mirrored|multiworker|single]", hidden=True)
    ] = "auto",
    encoding: Encoding = None,
    skip_bad_rows: SkipBadRows = None,
    bag_of_words: bool = True,
    allow_trained_rows: bool = False,
    predictions: Path | None = None,
    task: str | None = None,
    null_odds: Path | None = None,
):
    """Evaluate a model on held-out examples, compared with guessing, or on minimal pairs.

    A file of examples is read as in training; --encoding and --skip-bad-rows change that.
    --predictions scores a file as the official scripts do, without a model.

    Examples:
      albert-keras evaluate --run runs/books --data records-heldout/
      albert-keras evaluate --run runs/sst-2 --out scores/
      albert-keras evaluate --run albert-mini-en --minimal-pairs blimp/ --out pairs.jsonl
      albert-keras evaluate --predictions CoLA.tsv --task cola --data CoLA/dev.tsv

    Args:
      run: Folder of a run, a fine-tuning or a pre-trained export; or the name of a shipped model.
        With --minimal-pairs, also a checkpoint.
      data: Held-out records, or a labelled file of the task.
      split: Split of the official files of the task.
      minimal_pairs: File of JSON lines, each with an acceptable and an unacceptable sentence, as in
        BLiMP; or folder of such files; may be repeated.
      mask_rest_of_word: With --minimal-pairs, also mask the later tokens of the same word.
      baseline_data: Training records, from which unigram and bigram baselines are computed for
        comparison.
      out: Folder for predictions, errors and a figure. With --minimal-pairs, file for the scores of
        each pair (.jsonl).
      overwrite: With --minimal-pairs, replace the file of --out if it exists.
      batch_size: Rows per batch.
      strategy: Distribution strategy.
      bag_of_words: For a fine-tuned model, also score the linear model on counts of words that was
        saved with it, and say whether the model is worth using.
      allow_trained_rows: Score examples or records even if the model was trained on all of them.
      predictions: predictions.json for SQuAD; a .tsv file of index and prediction for GLUE.
      task: With --predictions, the labelled GLUE task, squad1 or squad2.
      null_odds: With --predictions, null_odds.json of squad2, to find the best thresholds.
    """

    def take(names, thing):
        refuse(context, given.keys() - names, f"must not be given with {thing}.")

    if predictions is not None:
        take(_ON_FILES, "`--predictions`")
        return _score(given)
    if run is None:
        raise InputError("`--run` or `--predictions` is required. Received: neither.")
    del given["run"]
    if minimal_pairs:
        take(_ON_PAIRS, "`--minimal-pairs`")
        given["model"], given["files"] = detect(run), given.pop("minimal_pairs")
        pair_files(minimal_pairs)  # before TensorFlow is imported
        from albert_keras.texts.pair_accuracy import evaluate_minimal_pairs

        result = evaluate_minimal_pairs(**given)
        return Output(result, _describe_pairs(result))
    place = given["model"] = detect(run, _KINDS, _WANTED)
    if place.run_kind == "finetuning":
        take(_ON_A_TASK, "a fine-tuned model")
        if split is None and data_dir is None:
            check_files(data)
        from albert_keras.tasks.evaluate import evaluate_task

        result = evaluate_task(**given)
        return Output(result, describe_task(result))
    if place.kind == "export" and read_export_record(place.path).get("task"):
        raise InputError(
            f"`{run}` is the export of a fine-tuned model, which `evaluate` does not score. Give "
            f"its fine-tuning as `--run`, or answer a file with `albert-keras predict {run} --file "
            "FILE`."
        )
    take(_ON_RECORDS, "a pre-trained model")
    if data is None:
        raise InputError(
            "The evaluation of a pre-training run requires `--data`, a folder of records that were "
            "not used for training; or `--minimal-pairs`. Received: neither."
        )
    check_records(data, baseline_data)
    from albert_keras.training.evaluate import evaluate as evaluate_on_records

    result = evaluate_on_records(**given)
    return Output(result, describe(result))


def _score(given):
    for name in ("task", "data"):
        if name not in given:
            raise InputError(f"`--{name}` is required with `--predictions`. Received: none.")
    from albert_keras.tasks.metrics import shown_metric
    from albert_keras.tasks.score_files import score_predictions

    result = score_predictions(**given)
    lines = [f"{result.task}, {count_of(result.examples, 'example')}"]
    lines += [
        f"  {shown_metric(name, result.positive_class):20} {value:.10g}"
        for name, value in result.scores.items()
    ]
    return Output(result, lines)


def _describe_pairs(evaluation) -> list[str]:
    """Returns the lines that describe a MinimalPairsEvaluation."""
    overall = evaluation.overall
    step = "" if evaluation.step is None else f"step {evaluation.step}, "
    lines = [
        f"{step}{count_of(overall.num_pairs, 'minimal pair')}; chance: 50.0 %",
        f"mean of {count_of(evaluation.mean.num_groups, 'group')}  {_accuracy(evaluation.mean)}",
        f"all pairs  {_accuracy(overall)}",
    ]
    if overall.num_ties:
        lines.append(f"ties, each counted as one half: {overall.num_ties:,}")
    for title, means in (("field", evaluation.fields), ("term", evaluation.terms)):
        if len(means) > 1:
            rows = [(mean.name, _accuracy(mean), str(mean.num_groups)) for mean in means]
            lines += table((f"by {title}", "accuracy, 95 % interval", "groups"), rows)
    rows = [
        (group.group, _accuracy(group), str(group.num_pairs), str(group.num_ties))
        for group in evaluation.groups
    ]
    lines += table(("by group", "accuracy, 95 % interval", "pairs", "ties"), rows)
    return lines + ([f"scores of each pair: {evaluation.out}"] if evaluation.out else [])


def _accuracy(one):
    low, high = one.interval
    return f"{percent(one.accuracy):>7} [{100 * low:.1f}, {100 * high:.1f}]"


def describe_task(evaluation):
    """Returns the lines that describe a TaskEvaluation, list of str."""
    from albert_keras.runs.trained_data import ROWS, Overlap
    from albert_keras.tasks.metrics import count_caution, tuned_text
    from albert_keras.tasks.results import formatter, other_scores

    shown = formatter(evaluation.task)
    low, high = evaluation.interval
    metric, words = evaluation.metric, evaluation.bag_of_words
    caution = count_caution(evaluation.examples, metric, "evaluated set")
    overlap = Overlap.of(evaluation.overlap)
    kind = "training score: " if overlap and overlap.is_total else ""
    lines = [
        f"{kind}{metric} {shown(evaluation.scores[metric])} [{shown(low)}, {shown(high)}] on "
        f"{count_of(evaluation.examples, 'example')} of {evaluation.split}"
    ]
    others = other_scores(evaluation.scores, metric, evaluation.positive_class, shown)
    if others:
        lines.append("  " + "  ".join(others))
    if evaluation.guessing is not None:
        lines.append(f"  always the same answer: {metric} {shown(evaluation.guessing[metric])}")
    if words is not None:
        lines.append(f"  bag of words: {metric} {shown(words[metric])}")
    if evaluation.tuned:
        where = "on the same examples" if evaluation.is_tuned_here else "in training"
        lines.append(f"  tuned {where}: {tuned_text(evaluation.tuned)}")
    if overlap and overlap.normalised:
        lines.append(f"  {overlap.sentence(ROWS)}")
    lines += [f"warning: {text}" for text in (caution, evaluation.collapse) if text]
    if verdict := evaluation.verdict:
        lines.append(verdict.sentence if verdict.is_better else f"warning: {verdict.sentence}")
    files = evaluation.files
    if files:
        shown_files = [f"{name}: {files[name]}" for name in files if name != "answers"]
        lines += ["   ".join(shown_files), f"answers: {', '.join(files['answers'])}"]
    return lines


def describe(evaluation):
    """Returns the lines that describe an Evaluation, list of str."""
    from albert_keras.runs.report.tables import verdict_on
    from albert_keras.runs.trained_data import RECORDS, Overlap

    overlap = Overlap.of(evaluation.overlap)
    kind = "training score: " if overlap and overlap.is_total else ""
    kind += "" if evaluation.step is None else f"step {evaluation.step}, "
    lines = [
        f"{kind}{count_of(evaluation.num_records, 'record')}, "
        f"{count_of(evaluation.num_predictions, 'masked token')}",
        f"masked LM       accuracy {percent(evaluation.masked_lm_accuracy, 2)}   "
        f"always guessing {evaluation.unigram_guess!r}: "
        f"{percent(evaluation.unigram_accuracy, 2)}   loss {evaluation.masked_lm_loss:.3f}",
    ]
    if evaluation.sentence_order_accuracy is not None:
        lines.append(
            f"sentence order  accuracy {percent(evaluation.sentence_order_accuracy, 2)} "
            f"± {percent(evaluation.sentence_order_error, 2)}   "
            f"chance: {percent(evaluation.sentence_order_chance, 2)}   "
            f"loss {evaluation.sentence_order_loss:.3f}"
        )
    elif evaluation.sentence_order_chance is None:
        lines.append("sentence order  not scored: the records have no labels")
    for name, baseline in (evaluation.baselines or {}).items():
        lines.append(
            f"  {name:14}  accuracy {percent(baseline['masked_lm_accuracy'], 2)}   "
            f"loss {baseline['masked_lm_loss']:.3f}"
        )
    is_better, verdict = verdict_on(evaluation._asdict())
    lines.append(verdict if is_better else f"warning: {verdict}")
    if overlap is None:
        lines.append("it is unknown whether the model was trained on these records")
    elif overlap.normalised:
        lines.append(overlap.sentence(RECORDS))
    return lines
