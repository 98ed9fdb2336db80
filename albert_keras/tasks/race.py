"""RACE: passages of English exams with questions of four options → examples, features, accuracy."""

import json
import logging
import re
from pathlib import Path

import numpy as np

from albert_keras.tasks.examples import ChoiceExample
from albert_keras.tasks.pair_features import EncodedPairs, encode_texts, lay_out
from data_pipeline.errors import InputError

LEVELS = ("middle", "high")
SPLITS = ("train", "dev", "test")

_LETTERS = "ABCD"
_ALL = "all.txt"
# The blank of a question: the underscore and what clean-up turns into it.
_BLANK = re.compile("[_\ufe33\ufe34\ufe4d-\ufe4f\uff3f]")

logger = logging.getLogger(__name__)


def read_race(data_dir, split, levels=LEVELS) -> list[ChoiceExample]:
    """Reads a split: `RACE/dev/high/all.txt`, or one file per passage as in the original corpus.

    Args:
        data_dir: path. The folder of the corpus or the one that `RACE` lies in.
        split: str. "train", "dev" or "test".
        levels: sequence of str. "middle", "high" or both, in this order.

    Returns:
        list of ChoiceExample. Four options each; the id is the passage's and the number of the
        question, as in "high107.txt-1". The label is None where the passage has no "answers".

    Raises:
        InputError: If a folder is missing or empty or a file cannot be used; it names the line.
    """
    if split not in SPLITS:
        raise InputError(f"`split` should be one of {', '.join(SPLITS)}. Received: {split}.")
    if not levels or not set(levels) <= set(LEVELS):
        raise InputError(f"`levels` should be some of {', '.join(LEVELS)}. Received: {levels}.")
    root = Path(data_dir)
    root = root / "RACE" if (root / "RACE").is_dir() else root
    examples = []
    for level in levels:
        for path in _files(root / split / level):
            for line, passage in _passages(path):
                examples += _examples(passage, level, path, line)
    return examples


def _files(folder):
    if not folder.is_dir():
        raise InputError(f"RACE should have a folder `{folder}`. It is missing.")
    files = [path for path in folder.glob("*.txt") if not path.name.startswith(".")]
    if not files:
        raise InputError(f"`{folder}` should hold {_ALL} or a .txt file per passage. It has none.")
    if folder / _ALL not in files:
        return sorted(files, key=lambda path: (len(path.name), path.name))  # 9.txt before 10.txt
    if len(files) > 1:
        logger.warning(
            "`%s` is read and %d other .txt files beside it are not.", folder / _ALL, len(files) - 1
        )
    return [folder / _ALL]


def _passages(path):
    """Yields the number of a line and the JSON object on it."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}.") from error
    # A file of one passage may spread it over lines.
    lines = content.split(b"\n") if path.name == _ALL else [content]
    found = False
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        found = True
        try:
            yield number, json.loads(line.decode("utf-8-sig"), strict=False)
        except (ValueError, RecursionError) as error:
            number += getattr(error, "lineno", 1) - 1
            raise InputError(
                f"`{path}`, line {number} should be a JSON object in UTF-8. It is broken: "
                f"{getattr(error, 'msg', error)}."
            ) from error
    if not found:
        raise InputError(f"`{path}` should hold a JSON object per passage. It is empty.")


def _examples(passage, level, path, line):
    place = f"`{path}`, line {line}"
    if not isinstance(passage, dict):
        raise InputError(f"{place} should be a JSON object. Received: {_short(passage)}.")
    for name, kind in (("article", str), ("questions", list), ("options", list)):
        if not isinstance(passage.get(name), kind):
            word = "text" if kind is str else "list"
            received = _short(passage.get(name))
            raise InputError(f'{place} should have a {word} "{name}". Received: {received}.')
    questions, options = passage["questions"], passage["options"]
    answers = passage.get("answers", [None] * len(questions))
    for name, values in (("options", options), ("answers", answers)):
        if not isinstance(values, list) or len(values) != len(questions):
            raise InputError(
                f'{place} should have as many "{name}" as "questions", {len(questions)}. '
                f"Received: {_short(values)}."
            )
    if not questions:
        raise InputError(f'{place} should have at least one of "questions". Received: none.')
    name = passage.get("id", f"{level}-{path.name}-{line}")
    for number, (question, choices, answer) in enumerate(
        zip(questions, options, answers, strict=True), start=1
    ):
        here = f"{place}, question {number}"
        if not isinstance(question, str):
            raise InputError(f"{here} should be a text. Received: {_short(question)}.")
        if (
            not isinstance(choices, list)
            or len(choices) != len(_LETTERS)
            or not all(isinstance(choice, str) for choice in choices)
        ):
            raise InputError(
                f"{here} should have four texts as options. Received: {_short(choices)}."
            )
        if answer is not None and answer not in tuple(_LETTERS):
            raise InputError(
                f"{here} should have an answer A, B, C or D. Received: {_short(answer)}."
            )
        label = None if answer is None else _LETTERS.index(answer)
        yield ChoiceExample(
            f"{name}-{number}", passage["article"], question, tuple(choices), label, level
        )


def _short(value):
    return repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:60]}..."


def choice_text(question, option) -> str:
    """Puts an option into the blanks of a question, or after a question that has none.

    Args:
        question: str. A blank is `_`, or any other low line that clean-up makes one of.
        option: str.

    Returns:
        str.
    """
    question, option = question.strip(), option.strip()
    filled, blanks = _BLANK.subn(lambda _: option, question)
    return filled if blanks else f"{question} {option}"


def choice_features(examples, tokenizer, max_seq_length=512, max_qa_length=128):
    """Lays out `[CLS] passage [SEP] question with option [SEP]` for every option.

    Of question and option the last pieces stay, of the passage the first ones.

    Args:
        examples: list of ChoiceExample. N of them, all with C options.
        tokenizer: Tokenizer.
        max_seq_length: int. S.
        max_qa_length: int. Most pieces of question and option, at least 1 and below S - 3.

    Returns:
        dict of int32 [N, C, S]: `input_ids`, `input_mask` and `segment_ids`, as in
        `pair_features`.

    Raises:
        InputError: If lengths do not fit or the examples have different numbers of options.

    Source:
        `convert_single_example` in google-research/albert, `race_utils.py`.
    """
    if not 1 <= max_qa_length < max_seq_length - 3:
        raise InputError(
            "`max_qa_length` should be at least 1 and less than `max_seq_length` - 3. "
            f"Received: max_qa_length={max_qa_length}, max_seq_length={max_seq_length}."
        )
    choices = {len(example.options) for example in examples}
    if len(choices) > 1:
        raise InputError(
            f"All questions should have equally many options. Received: {sorted(choices)}."
        )
    count = max(choices, default=len(_LETTERS))
    texts = [example.context for example in examples for _ in example.options]
    texts += [
        choice_text(example.question, option) for example in examples for option in example.options
    ]
    ids, starts, lengths = encode_texts(texts, tokenizer)
    starts, lengths = starts.reshape(2, -1).T.copy(), lengths.reshape(2, -1).T.copy()
    surplus = np.maximum(lengths[:, 1] - max_qa_length, 0)
    starts[:, 1] += surplus
    lengths[:, 1] -= surplus
    lengths[:, 0] = np.minimum(lengths[:, 0], max_seq_length - 3 - lengths[:, 1])
    features = lay_out(EncodedPairs(ids, starts, lengths), tokenizer, max_seq_length)
    shape = (len(examples), count, max_seq_length)
    return {name: values.reshape(shape) for name, values in features.items()}


def choice_accuracy(examples, predictions) -> dict[str, float]:
    """Returns the share of right choices, of all questions and by level.

    Args:
        examples: list of ChoiceExample. N of them, with labels.
        predictions: int [N]. The option chosen.

    Returns:
        dict. `accuracy`, and `accuracy_middle` and `accuracy_high` where there are such questions.

    Raises:
        InputError: If there is no question, one has no label, or the numbers differ.
    """
    if not examples or len(examples) != len(predictions):
        raise InputError(
            "Accuracy needs one prediction for each of at least one question. "
            f"Received: {len(predictions)} for {len(examples)}."
        )
    for example in examples:
        if example.label is None:
            raise InputError(f"Accuracy needs the right answers. Question {example.id} has none.")
    right = np.array([example.label for example in examples]) == np.asarray(predictions)
    levels = np.array([example.level for example in examples])
    scores = {"accuracy": float(right.mean())}
    for level in LEVELS:
        if (levels == level).any():
            scores[f"accuracy_{level}"] = float(right[levels == level].mean())
    return scores
