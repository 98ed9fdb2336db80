"""Reads sentences with a tag for each word: CoNLL columns or `.jsonl` → examples."""

import re
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.json_entries import checked, parsed_line
from albert_keras.tasks.tables.rows import numbered_lines
from data_pipeline.errors import InputError

_DOCUMENT_START = "-DOCSTART-"
_WHITE_SPACE = re.compile(r"[ \t]+")  # a no-break space belongs to a word

_Text = Annotated[str, Field(min_length=1)]


class _Sentence(BaseModel):
    words: Annotated[list[_Text], Field(min_length=1)]
    tags: list[_Text] = []
    id: Any = None


def read_tagged(
    path: str | Path, *, word_column: int = 0, tag_column: int = -1, has_tags: bool = True
) -> list[TaggedExample]:
    """Reads a UTF-8 file of tagged sentences.

    In columns, as in CoNLL: a word per line, columns separated by spaces or tabs, and an empty line
    or `-DOCSTART-` between sentences. Or, if the name ends in `.jsonl`, an object per line:
    `{"words": ["Ada", "slept"], "tags": ["B-PER", "O"]}`, with or without an "id".

    Args:
        word_column, tag_column: From 0; negative numbers count from the last column.
        has_tags: Whether tags are read; if not, one column is enough.

    Returns:
        The id is the number of the sentence unless the file has one.

    Raises:
        InputError: If there is no sentence, or a line is broken; it names the line.
    """
    path = Path(path)
    if path.suffix.lower() == ".jsonl":
        examples = list(_read_objects(path, has_tags))
    else:
        examples = list(_read_columns(path, word_column, tag_column, has_tags))
    if not examples:
        raise InputError(f"`{path}` must contain at least one sentence. It is empty.")
    return examples


def _lines(path):
    for number, text in numbered_lines(path):
        # A byte order mark is inside where files were joined.
        yield number, text.removeprefix("\ufeff").removesuffix("\n").removesuffix("\r")


def _read_columns(path, word_column, tag_column, has_tags):
    words, tags, sentences, width = [], [], 0, None
    for number, line in [*_lines(path), (0, "")]:
        columns = _WHITE_SPACE.split(line.strip(" \t"))
        if columns[0] in ("", _DOCUMENT_START):
            if words:
                sentences += 1
                yield TaggedExample(str(sentences), tuple(words), tuple(tags) if has_tags else None)
            words, tags = [], []
            continue
        if width is None:
            width = len(columns)
            wanted = {"word_column": word_column} | ({"tag_column": tag_column} if has_tags else {})
            _check_columns(wanted, width, f"`{path}`, line {number}")
        if len(columns) != width:
            raise InputError(
                f"`{path}`, line {number} must have {width} columns, like the lines before it. "
                f"Received: {len(columns)}."
            )
        words.append(columns[word_column])
        if has_tags:
            tags.append(columns[tag_column])


def _check_columns(wanted, width, location):
    for name, column in wanted.items():
        if not -width <= column < width:
            raise InputError(
                f"{location} must have the column that `{name}` names. "
                f"Received: {name}={column}, and {width} columns."
            )
    if len(wanted) > len({column % width for column in wanted.values()}):
        raise InputError(f"{location} must have a word and a tag. Received: one column for both.")


def _read_objects(path, has_tags):
    sentences = 0
    for number, line in _lines(path):
        if not line.strip():
            continue
        sentences += 1
        location = f"`{path}`, line {number}"
        sentence = checked(_Sentence, parsed_line(line, location), location)
        words, tags = tuple(sentence.words), tuple(sentence.tags)
        if has_tags and len(tags) != len(words):
            raise InputError(
                f"{location} must have a tag for every word. "
                f"Received: {len(tags)} for {len(words)}."
            )
        id = str(sentences if sentence.id is None else sentence.id)
        yield TaggedExample(id, words, tags if has_tags else None)
