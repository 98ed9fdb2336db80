"""What `evaluate --minimal-pairs` and `predict --score` do."""

from pathlib import Path

from albert_keras.cli.command import Call, Output, streamed
from albert_keras.cli.output import plain
from albert_keras.cli.typed_inputs import text_batches
from albert_keras.formats.detection import detect
from albert_keras.report import count_of, percent, table
from albert_keras.texts.minimal_pairs import pair_files


def evaluate_pairs(call: Call, run: Path, files: list[Path]) -> Output:
    """Evaluates a model on files of minimal pairs."""
    detect(run)
    pair_files(files)  # before TensorFlow is imported
    result = call(run, files)
    return Output(plain(result), describe_pairs(result))


def describe_pairs(evaluation) -> list[str]:
    """Returns the lines that describe a MinimalPairsEvaluation."""
    overall = evaluation.overall
    step = "" if evaluation.step is None else f"step {evaluation.step}, "
    lines = [
        f"{step}{count_of(overall.num_pairs, 'minimal pair')}; chance: 50.0 %",
        f"mean of {count_of(evaluation.mean.num_groups, 'group')}  {_shown(evaluation.mean)}",
        f"all pairs  {_shown(overall)}",
    ]
    if overall.num_ties:
        lines.append(f"ties, each counted as one half: {overall.num_ties:,}")
    for title, means in (("field", evaluation.fields), ("term", evaluation.terms)):
        if len(means) > 1:
            rows = [(mean.name, _shown(mean), str(mean.num_groups)) for mean in means]
            lines += table((f"by {title}", "accuracy, 95 % interval", "groups"), rows)
    rows = [
        (group.group, _shown(group), str(group.num_pairs), str(group.num_ties))
        for group in evaluation.groups
    ]
    lines += table(("by group", "accuracy, 95 % interval", "pairs", "ties"), rows)
    return lines + ([f"scores of each pair: {evaluation.out}"] if evaluation.out else [])


def _shown(one):
    low, high = one.interval
    return f"{percent(one.accuracy):>7} [{100 * low:.1f}, {100 * high:.1f}]"


def score_texts(model: Path, texts: list[str] | None, mask_rest_of_word: bool) -> Output:
    """Scores the texts of the command line, or lines of stdin as they arrive."""
    detect(model)
    batches = text_batches(texts)
    from albert_keras.texts.sentence_scores import PseudoLikelihood

    scorer = PseudoLikelihood(model, mask_rest_of_word)
    answers = (score for several in batches for score in scorer.score_texts(several))
    return streamed(answers, describe_score, as_list=bool(texts))


def describe_score(score) -> list[str]:
    """Returns the lines that describe a SentenceScore."""
    tokens = "  ".join(f"{token.piece} {token.log_probability:.2f}" for token in score.tokens)
    return [
        f"{score.score:9.3f}  {score.score_per_token:8.3f} per token  {score.text}",
        f"    {tokens}",
    ]
