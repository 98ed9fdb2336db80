"""`albert-keras evaluate`."""

from pathlib import Path

import typer

from albert_keras.cli.arguments import check_files, check_records
from albert_keras.cli.command import Output, command
from albert_keras.cli.parameters import refuse
from albert_keras.formats.detection import detect
from albert_keras.report import count_of, percent, table
from albert_keras.texts.minimal_pairs import pair_files
from data_pipeline.errors import InputError

_RECORDS = "albert_keras.training.evaluate:evaluate"
_TASK = "albert_keras.tasks.evaluate:evaluate_task"
_PAIRS = "albert_keras.texts.pair_accuracy:evaluate_minimal_pairs"
_FILES = "albert_keras.tasks.score_files:score_predictions"

#: Kinds of models that are evaluated on records or examples.
_KINDS = ("run", "fine-tuning", "export")
_WANTED = (
    "It must be the folder of a run or a fine-tuning, or an export. Create one with "
    "`albert-keras pretrain` or `finetune`."
)


@command(_RECORDS, _TASK, _PAIRS, _FILES)
def evaluate(
    context: typer.Context,
    call,
    run: Path | None = None,
    minimal_pairs: list[Path] | None = None,
    predictions: Path | None = None,
):
    """Evaluate a model on held-out examples, compared with guessing, or on minimal pairs.

    A file of examples is read as in training; --encoding and --skip-bad-rows change that.
    --predictions scores a file as the official scripts do, without a model.

    Examples:
      albert-keras evaluate --run runs/books --data records-heldout/
      albert-keras evaluate --run runs/sst-2 --out scores/
      albert-keras evaluate --run albert-mini-en --minimal-pairs blimp/ --out pairs.jsonl
      albert-keras evaluate --predictions CoLA.tsv --task cola --data CoLA/dev.tsv

    Options:
      run PATH: Folder of a run, a fine-tuning or a pre-trained export; or the name of a shipped
        model. With --minimal-pairs, also a checkpoint.
      data (development examples): Held-out records, or a labelled file of the task.
      split (dev): Split of the official files of the task.
      data_dir
      minimal_pairs PATH: File of JSON lines, each with an acceptable and an unacceptable sentence,
        as in BLiMP; or folder of such files; may be repeated.
      mask_rest_of_word: With --minimal-pairs, also mask the later tokens of the same word.
      baseline_data: Training records, from which unigram and bigram baselines are computed for
        comparison.
      out: Folder for predictions, errors and a figure. With --minimal-pairs, file for the scores of
        each pair (.jsonl).
      overwrite: With --minimal-pairs, replace the file of --out if it exists.
      step
      batch_size {1..}: Rows per batch.
      ~strategy ~encoding ~skip_bad_rows
      bag_of_words: For a fine-tuned model, also score a linear model on counts of words, trained on
        the same examples.
      allow_trained_rows: Score examples or records even if the model was trained on all of them.
      predictions: predictions.json for SQuAD; a .tsv file of index and prediction for GLUE.
      task: With --predictions, the labelled GLUE task, squad1 or squad2.
      null_odds: With --predictions, null_odds.json of squad2, to find the best thresholds.
    """
    problem = "must not be given with"
    if predictions is not None:
        refuse(context, ("run", "minimal_pairs"), f"{problem} `--predictions`.")
        return _score(call.to(_FILES, f"{problem} `--predictions`."), predictions)
    if run is None:
        raise InputError("`--run` or `--predictions` is required. Received: neither.")
    if minimal_pairs:
        call = call.to(_PAIRS, f"{problem} `--minimal-pairs`.")
        place = detect(run)
        pair_files(minimal_pairs)  # before TensorFlow is imported
        result = call(place, minimal_pairs)
        return Output(result, _describe_pairs(result))
    data = call.given.get("data")
    place = detect(run, _KINDS, _WANTED)
    if place.run_kind == "finetuning":
        call = call.to(_TASK, f"{problem} a fine-tuned model.")
        if not call.given.keys() & {"split", "data_dir"}:
            check_files(data)
        result = call(place)
        return Output(result, describe_task(result))
    call = call.to(_RECORDS, f"{problem} a pre-trained model.")
    if data is None:
        raise InputError(
            "The evaluation of a pre-training run requires `--data`, a folder of records that were "
            "not used for training; or `--minimal-pairs`. Received: neither."
        )
    check_records(data, call.given.get("baseline_data"))
    result = call(place)
    return Output(result, describe(result))


def _score(call, predictions):
    from albert_keras.tasks.metrics import shown_metric

    for name in ("task", "data"):
        if name not in call.given:
            raise InputError(f"`--{name}` is required with `--predictions`. Received: none.")
    result = call(predictions=predictions)
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
    from albert_keras.tasks.kinds import TAGGING
    from albert_keras.tasks.metrics import count_caution
    from albert_keras.tasks.results import MOST_FREQUENT_TAG, formatter, other_scores

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
        is_tagging = evaluation.task in TAGGING.own_tasks
        name = MOST_FREQUENT_TAG if is_tagging else "always the same answer"
        lines.append(f"  {name}: {metric} {shown(evaluation.guessing[metric])}")
    if words is not None:
        lines.append(f"  bag of words: {metric} {shown(words[metric])}")
    if evaluation.tuned:
        tuned = ", ".join(f"{name} {value:.3g}" for name, value in evaluation.tuned.items())
        where = "on the same examples" if evaluation.is_tuned_here else "in training"
        lines.append(f"  tuned {where}: {tuned}")
    if overlap and overlap.normalised:
        lines.append(f"  {overlap.sentence(ROWS)}")
    lines += [f"warning: {text}" for text in (caution, evaluation.collapse) if text]
    files = evaluation.files
    if files:
        shown_files = [f"{name}: {files[name]}" for name in files if name != "answers"]
        lines += ["   ".join(shown_files), f"answers: {', '.join(files['answers'])}"]
    return lines


def describe(evaluation):
    """Returns the lines that describe an Evaluation, list of str."""
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
    if overlap is None:
        lines.append("it is unknown whether the model was trained on these records")
    elif overlap.normalised:
        lines.append(overlap.sentence(RECORDS))
    return lines
