"""`albert-keras evaluate`."""

from pathlib import Path

import typer

from albert_keras.cli import options
from albert_keras.cli.command import Output, command
from albert_keras.cli.early_exit import evaluate_exits
from albert_keras.cli.minimal_pairs import evaluate_pairs
from albert_keras.cli.options import option, refuse
from albert_keras.cli.output import count_of, percent
from albert_keras.cli.preflight import check_files, check_model_folder, check_records
from albert_keras.runs.kind import kind_of_run
from data_pipeline.errors import InputError

#: Options that apply to minimal pairs alone.
_FOR_PAIRS = ("mask_rest_of_word", "overwrite")
#: Options that apply to fine-tuned models alone, but not to their early exit.
_FOR_ALL_LAYERS = ("all_seeds", "delimiter", "encoding", "skip_bad_rows", "bag_of_words")
#: Options that apply to fine-tuned models alone.
_FOR_TASKS = ("split", "data_dir", *_FOR_ALL_LAYERS)
_NOT_FOR_EXITS = ("minimal_pairs", "baseline_data", "strategy", "out", *_FOR_PAIRS)
_NOT_FOR_EXITS += _FOR_ALL_LAYERS
_NOT_FOR_PREDICTIONS = ("run", "step", "out", "batch_size", "strategy", "exit_at_confidence")
_NOT_FOR_PREDICTIONS += ("minimal_pairs", "baseline_data", "allow_trained_rows")
_NOT_FOR_PREDICTIONS += _FOR_TASKS + _FOR_PAIRS
_NOT_FOR_PAIRS = ("data", "baseline_data", "allow_trained_rows", *_FOR_TASKS)


@command()
def evaluate(
    context: typer.Context,
    run: list[Path] | None = option(
        None,
        "Folder of a run, of a pre-trained export, or of fine-tunings to average, which may be "
        "repeated; or the name of a shipped model. With --minimal-pairs, also a checkpoint.",
        metavar="PATH",
    ),
    data: Path | None = option(
        None, "Held-out records, or a labelled file of the task.", shown="development examples"
    ),
    predictions: Path | None = option(
        None,
        "Instead of --run, a file of predictions to score as the official script of --task does: "
        "predictions.json of SQuAD, or a .tsv of index and prediction for GLUE.",
    ),
    task: str | None = option(None, "With --predictions: a GLUE task, squad1 or squad2."),
    null_odds: Path | None = option(
        None, "With --predictions: null_odds.json of squad2, to find the best thresholds."
    ),
    split: str | None = option(None, "Split of the official files of the task.", shown="dev"),
    data_dir: Path | None = options.DATA_DIR,
    minimal_pairs: list[Path] | None = option(
        None,
        "File of JSON lines, each with an acceptable and an unacceptable sentence, as in BLiMP; "
        "or folder of such files; may be repeated.",
        metavar="PATH",
    ),
    mask_rest_of_word: bool = option(
        False,
        "With --minimal-pairs, also mask the later tokens of the same word.",
        "--mask-rest-of-word",
    ),
    baseline_data: Path | None = option(
        None,
        "Training records, from which unigram and bigram baselines are computed for comparison.",
    ),
    out: Path | None = option(
        None,
        "Folder for predictions, errors and a figure. With --minimal-pairs, file for the scores "
        "of each pair (.jsonl).",
    ),
    overwrite: bool = option(
        False, "With --minimal-pairs, replace the file of --out if it exists.", "--overwrite"
    ),
    all_seeds: bool = options.ALL_SEEDS,
    step: str | None = options.STEP,
    batch_size: int = option(64, "Rows per batch.", min=1),
    strategy: str = options.STRATEGY,
    delimiter: str | None = options.DELIMITER,
    encoding: str | None = options.ENCODING,
    skip_bad_rows: bool | None = options.SKIP_BAD_ROWS,
    bag_of_words: bool = option(
        True,
        "For a fine-tuned model, also score a linear model on counts of words, trained on the same "
        "examples.",
    ),
    exit_at_confidence: str | None = option(
        None,
        "Score early exit of a model trained with --exit-heads, at these probabilities, "
        "separated by commas.",
        metavar="P,...",
    ),
    allow_trained_rows: bool = option(
        False,
        "Score examples or records even if the model was trained on all of them.",
        "--allow-trained-rows",
    ),
):
    """Evaluate models on held-out examples, compared with guessing, or on minimal pairs.

    \b
    Examples:
      albert-keras evaluate --run runs/books --data records-heldout/
      albert-keras evaluate --run runs/sst-2 --out scores/
      albert-keras evaluate --run runs/sst-2 --run runs/sst-2-large --all-seeds
      albert-keras evaluate --predictions CoLA.tsv --task cola --data CoLA/dev.tsv
      albert-keras evaluate --run runs/books --minimal-pairs blimp/ --out pairs.jsonl
      albert-keras evaluate --run albert-mini-en --minimal-pairs blimp/
      albert-keras evaluate --run runs/sst-2 --exit-at-confidence 0.7,0.8,0.9,0.95
    """
    if predictions is not None:
        return _evaluate_predictions(context, predictions, task, data, null_odds)
    refuse(context, ("task", "null_odds"), "requires `--predictions`.")
    if not run:
        raise InputError("`--run` or `--predictions` is required. Received: neither.")
    if exit_at_confidence is not None:
        refuse(context, _NOT_FOR_EXITS, "must not be given with `--exit-at-confidence`.")
        return evaluate_exits(
            run,
            exit_at_confidence,
            data,
            data_dir,
            split,
            step,
            batch_size,
            allow_trained_rows,
        )
    if minimal_pairs:
        refuse(context, _NOT_FOR_PAIRS, "must not be given with `--minimal-pairs`.")
        return evaluate_pairs(
            run, minimal_pairs, out, overwrite, mask_rest_of_word, step, batch_size, strategy
        )
    refuse(context, _FOR_PAIRS, "requires `--minimal-pairs`.")
    for each in run:
        check_model_folder(each, accepts_exports=True)
    kinds = [kind_of_run(each) for each in run]
    if len(set(kinds)) > 1:
        listing = ", ".join(f"`{each}` ({kind})" for each, kind in zip(run, kinds, strict=True))
        raise InputError(
            f"Runs that are evaluated together must be of one kind. Received: {listing}. Evaluate "
            "pre-training runs one at a time, with --data RECORDS."
        )
    if "finetuning" in kinds:
        refuse(context, ("baseline_data",), f"requires a pre-trained model. Received: `{run[0]}`.")
        if split is None and data_dir is None:
            check_files(data)
        from albert_keras.tasks.evaluate import evaluate_task

        step = step or "best"
        result = evaluate_task(
            run,
            data,
            data_dir,
            split,
            out,
            all_seeds,
            step,
            batch_size,
            strategy,
            delimiter,
            encoding,
            skip_bad_rows,
            bag_of_words=bag_of_words,
            allow_trained_rows=allow_trained_rows,
        )
        return Output(result, describe_task(result))
    refuse(context, ("out", *_FOR_TASKS), f"requires a fine-tuned model. Received: `{run[0]}`.")
    if len(run) > 1 or data is None:
        raise InputError(
            "The evaluation of a pre-training run requires one `--run` and `--data` with a folder "
            f"of records, or `--minimal-pairs`. Received: {count_of(len(run), 'run')} and "
            f"{data or 'no --data'}."
        )
    check_records(data, baseline_data)
    from albert_keras.training.evaluate import evaluate as evaluate_run

    result = evaluate_run(
        run[0], data, step, batch_size, strategy, allow_trained_rows, baseline_data
    )
    return Output(result, describe(result))


def describe_task(evaluation):
    """Returns the lines that describe a TaskEvaluation, list of str."""
    from albert_keras.runs.trained_data import ROWS, Overlap

    is_percent = evaluation.task in ("squad1", "squad2")

    def shown(value):
        return f"{value:.1f}" if is_percent else f"{value:.3f}"

    from albert_keras.tasks.metrics import count_caution, interval_caution, shown_metric

    low, high = evaluation.interval
    metric, words = evaluation.metric, evaluation.bag_of_words
    cautions = [
        count_caution(evaluation.examples, metric, "evaluated set"),
        interval_caution(metric, evaluation.interval, evaluation.examples),
        evaluation.collapse,
    ]
    if words is not None and evaluation.scores[metric] <= words[metric]:
        cautions.append(
            f"no better than the bag of words: {metric} {shown(evaluation.scores[metric])} versus "
            f"{shown(words[metric])}. Counts of words and word pairs predict at least as well"
        )
    averaged = f", {len(evaluation.runs)} models averaged" if len(evaluation.runs) > 1 else ""
    overlap = Overlap.of(evaluation.overlap)
    kind = "training score: " if overlap and overlap.is_total else ""
    lines = [
        f"{kind}{metric} {shown(evaluation.scores[metric])} [{shown(low)}, {shown(high)}] on "
        f"{count_of(evaluation.examples, 'example')} of {evaluation.split}{averaged}"
    ]
    others = [
        f"{name} {value:,.0f}"
        if name.endswith("_total")
        else f"{shown_metric(name, evaluation.positive_class)} {shown(value)}"
        for name, value in evaluation.scores.items()
        if name not in (metric, "total")
    ]
    if others:
        lines.append("  " + "  ".join(others))
    if evaluation.guessing is not None:
        lines.append(f"  always the same answer: {metric} {shown(evaluation.guessing[metric])}")
    if words is not None:
        lines.append(f"  bag of words: {metric} {shown(words[metric])}")
    if evaluation.tuned:
        tuned = ", ".join(f"{name} {value:.3g}" for name, value in evaluation.tuned.items())
        where = "on the same examples" if evaluation.is_tuned_here else "in training"
        lines.append(f"  tuned {where}: {tuned}")
    if overlap and overlap.normalised:
        line = f"  {overlap.sentence(ROWS)}"
        if evaluation.unseen_scores is not None:
            line += f"; {metric} on the other rows: {shown(evaluation.unseen_scores[metric])}"
        lines.append(line)
    if evaluation.unknown_overlap:
        runs = ", ".join(evaluation.unknown_overlap)
        lines.append(f"  it is unknown whether these rows were used to train {runs}")
    lines += [f"warning: {caution}" for caution in cautions if caution]
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


def _evaluate_predictions(context, predictions, task, data, null_odds):
    """Scores a file of predictions; see `score_predictions`."""
    refuse(context, _NOT_FOR_PREDICTIONS, "must not be given with `--predictions`.")
    for name, value in (("--task", task), ("--data", data)):
        if value is None:
            raise InputError(f"`{name}` is required with `--predictions`. Received: none.")
    from albert_keras.tasks.metrics import shown_metric
    from albert_keras.tasks.score_files import score_predictions

    result = score_predictions(task, data, predictions, null_odds)
    lines = [f"{result.task}, {count_of(result.examples, 'example')}"]
    lines += [
        f"  {shown_metric(name, result.positive_class):20} {value:.10g}"
        for name, value in result.scores.items()
    ]
    return Output(result, lines)
