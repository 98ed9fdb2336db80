"""Slices of the official files, read with the standard library alone.

A slice has the first rows of a file, and the longest ones, which are truncated or take several
windows.
"""

import csv
import itertools
import json
from pathlib import Path
from typing import Any, NamedTuple


class Slice(NamedTuple):
    """Examples of one file."""

    columns: dict[str, list]  # what a model reads, by the names of its inputs
    ids: list[str]  # an id for each example
    truth: list[Any]  # what the file says, for the scores


def _with_longest(rows, size, first, longest):
    """Returns the first rows, and the longest of the others, in the order of the file."""
    rest = sorted(range(first, len(rows)), key=lambda at: -size(rows[at]))[:longest]
    return [(at, rows[at]) for at in [*range(min(first, len(rows))), *sorted(rest)]]


def table(
    path: Path, texts: tuple, label: Any, quoted: bool = False, first: int = 20, longest: int = 10
) -> Slice:
    """Reads a table whose columns are named by its first line, or by their numbers without one."""
    has_names = not isinstance(texts[0], int)
    with open(path, encoding="utf-8-sig", newline="") as file:
        quoting = csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE
        lines = list(csv.reader(file, delimiter="\t", quoting=quoting))
    names = {name: at for at, name in enumerate(lines.pop(0))} if has_names else {}

    def cell(line, column):
        return line[names[column] if has_names else column]

    lines = [line for line in lines if len(line) >= len(names)]
    chosen = _with_longest(
        lines, lambda line: sum(len(cell(line, one)) for one in texts), first, longest
    )
    rows = [line for _, line in chosen]
    columns = {
        name: [cell(line, column).strip() for line in rows]
        for name, column in zip(("text", "pair"), texts, strict=False)
    }
    several = isinstance(label, list)
    truth = [[cell(line, one) for one in label] if several else cell(line, label) for line in rows]
    return Slice(columns, [str(at) for at, _ in chosen], truth)


def tagged(path: Path, first: int = 20, longest: int = 10) -> Slice:
    """Reads sentences with a word and its tag in each line."""
    lines = path.read_text(encoding="utf-8").splitlines()
    groups = itertools.groupby(lines, lambda line: bool(line.strip()))
    blocks = [[line.split("\t") for line in block] for is_block, block in groups if is_block]
    chosen = _with_longest(blocks, len, first, longest)
    words = [[word for word, _ in block] for _, block in chosen]
    tags = [[tag.strip() for _, tag in block] for _, block in chosen]
    return Slice({"words": words}, [str(at) for at, _ in chosen], tags)


def squad(path: Path, passages: int = 12, longest: int = 4) -> Slice:
    """Reads the first and the last question of passages that are far apart, and of the longest."""
    articles = json.loads(path.read_text(encoding="utf-8"))["data"]
    found = [passage for article in articles for passage in article["paragraphs"]]
    apart = found[:: max(1, len(found) // passages)][:passages]
    by_length = sorted(found, key=lambda passage: -len(passage["context"]))[:longest]
    chosen = {
        question["id"]: (passage["context"], question)
        for passage in (*apart, *by_length)
        for question in (*passage["qas"][:1], *passage["qas"][-1:])
    }
    columns = {
        "context": [context for context, _ in chosen.values()],
        "question": [question["question"] for _, question in chosen.values()],
    }
    truth = [[answer["text"] for answer in question["answers"]] for _, question in chosen.values()]
    return Slice(columns, list(chosen), truth)


def race(folder: Path, articles: int = 8) -> Slice:
    """Reads the first two questions of some articles of each level."""
    columns: dict[str, list] = {"context": [], "question": [], "options": []}
    ids, truth = [], []
    for level in ("middle", "high"):
        for path in sorted((folder / level).glob("*.txt"))[: articles // 2]:
            record = json.loads(path.read_text(encoding="utf-8"))
            for at, question in enumerate(record["questions"][:2]):
                columns["context"].append(record["article"])
                columns["question"].append(question)
                columns["options"].append(record["options"][at])
                ids.append(f"{level}/{path.name}/{at}")
                truth.append("ABCD".index(record["answers"][at]))
    return Slice(columns, ids, truth)
