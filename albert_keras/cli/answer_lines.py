"""Answers as lines of text, as `albert-keras predict` prints them."""

import re

from albert_keras.report import count_of, percent


def describe_answer(example, answer):
    """Returns one line that describes an answer to an example."""
    if hasattr(answer, "tags"):
        pairs = zip(answer.words, answer.tags, strict=True)
        line = " ".join(word if tag == "O" else f"{word}/{tag}" for word, tag in pairs)
    elif hasattr(answer, "labels"):
        labels = [f"{name} {percent(answer.probabilities[name])}" for name in answer.labels]
        line = f"{', '.join(labels) or '(no label)'}  {_shown(example)}"
    elif hasattr(answer, "scores"):
        scores = ", ".join(f"{name} {score:.3f}" for name, score in answer.scores.items())
        line = f"{scores}  {_shown(example)}"
    elif hasattr(answer, "score"):
        line = f"{answer.score:7.3f}  {_shown(example)}"
    elif hasattr(answer, "label"):
        line = f"{answer.label}  {percent(answer.probability)}  {_shown(example)}"
    else:
        text = answer.option if hasattr(answer, "option") else answer.text or "(no answer)"
        line = f"{text}  {percent(answer.probability)}  {example.question}"
    return re.sub(r"\s*[\n\r\v\f\x85\u2028\u2029]\s*", " ", line) + _truncation(answer)


def describe_pretrained(answer):
    """Returns the lines that describe a FilledMask or a SentenceOrder, list of str."""
    if hasattr(answer, "in_order"):
        shown = f"{percent(answer.in_order):>7}  in this order: {answer.first}"
        return [shown + _truncation(answer)]
    lines = [answer.filled_text + _truncation(answer)]
    for candidates in answer.masks:
        shown = "  ".join(f"{piece} {percent(score)}" for piece, score in candidates)
        lines.append(f"    {shown}" if shown else "    (beyond the maximum length of the model)")
    return lines


def _truncation(answer):
    """Returns a note of what a model did not read, "" if it read all."""
    dropped = [
        count_of(getattr(answer, f"dropped_{noun}s", 0), noun)
        for noun in ("token", "word")
        if getattr(answer, f"dropped_{noun}s", 0)
    ]
    return f"  (truncated: {dropped[0]} not read)" if dropped else ""


def _shown(example):
    return example.first if example.second is None else f"{example.first} | {example.second}"
