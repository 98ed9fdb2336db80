"""Reads sentences with a tag for each word: in columns, in a table or as objects → examples."""

import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.tables.lines import line_rows
from albert_keras.tasks.tables.raw_table import JSON_ENDINGS, object_rows, read_raw_table
from albert_keras.tasks.tables.rows import Row, RowError, SkippedRow, checked, examples_from
from albert_keras.tasks.tagging.spans import span_of, tagged_words
from albert_keras.tasks.task_config import Offsets
from data_pipeline.config import WordSplit
from data_pipeline.errors import InputError, Mistake
from data_pipeline.settings import did_you_mean

#: Columns of words, of tags and of the number of the sentence in a table, unless others are named.
_WORD, _TAG, _SENTENCE = "Word", "Tag", "Sentence #"
_DOCUMENT_START = "-DOCSTART-"
#: CoNLL-U: the numbers of lines that stand for several words, or for one that is not in the text.
_NO_WORD = re.compile(r"\d+[-.]\d+")

_Text = Annotated[str, Field(min_length=1)]


class _Sentence(BaseModel):
    words: Annotated[list[_Text], Field(min_length=1)]
    tags: list[_Text] = []
    id: Any = None


def read_tagged(
    path: str | Path,
    text: str | int | None = None,
    label: str | int | None = None,
    has_tags: bool = True,
    known: Sequence[str] = (),
    encoding: str | None = None,
    skipped: list[SkippedRow] | None = None,
    split: WordSplit = "punctuation",
    offsets: Offsets = "characters",
) -> list[TaggedExample]:
    """Reads a file of tagged sentences.

    - **Objects**, in a .jsonl or .json: `{"words": ["Ada", "slept"], "tags": ["B-PER", "O"]}`, or a
      text with spans, `{"text": "Ada slept", "label": [[0, 3, "PER"]]}`, see `span_of`; both may
      have an "id".
    - **A table**, if it is a .csv or `text` is a name: a word in each row, and columns `Word`,
      `Tag` and `Sentence #`, which at least the first word of a sentence has; or an empty line
      between sentences.
    - **Columns**, in any other file, as in CoNLL: a word in each line, and an empty line or
      `-DOCSTART-` between sentences. Columns are separated by tabs if the first line has one, else
      by spaces. A line before a sentence that begins with `#` is a comment, unless it has as many
      columns as the others. In a .conllu lines such as `2-3` and `2.1`, which are no words,
      are left out.

    Args:
        path: The file.
        text, label: Columns of words and tags: names of a table or of objects, or numbers of
            columns from 0, or from -1 for the last. None is the usual name, or the first and the
            last column.
        has_tags: Whether tags are read; if not, words are enough.
        known: All tags that are allowed, if any; and the names of tags that are numbers from 0.
        encoding: See `line_rows`.
        skipped: Receives the sentences that cannot be used. None makes them an error.
        split: How a text with spans becomes words, see `split_words`.
        offsets: How spans count characters, see `TaskConfig`.

    Returns:
        The id is the number of the sentence unless the file has one.

    Raises:
        InputError: If a column is missing, or as `examples_from`.
    """
    path = Path(path)
    rows: Iterable[Row]
    if path.suffix.lower() in JSON_ENDINGS:
        given = {"text": text, "label": label}
        objects = object_rows(path, encoding)
        rows = (_of_object(row, given, has_tags, split, offsets) for row in objects)
    elif path.suffix.lower() == ".csv" or text is not None and not _is_position(text):
        names = [text or _WORD, label or _TAG][: 1 + has_tags]
        rows = _sentences(_table_words(path, names, encoding))
    else:
        numbers = [text or 0, -1 if label is None else label][: 1 + has_tags]
        rows = _sentences(_column_words(path, numbers, encoding))

    def example(number, row):
        sentence = checked(_Sentence, row.fields | {"tags": _names(row.fields, known)})
        words, tags = tuple(sentence.words), tuple(sentence.tags)
        if has_tags and len(tags) != len(words):
            raise RowError(
                f"must have a tag for every word. Received: {len(tags)} for {len(words)}."
            )
        for tag, word in zip(tags, words, strict=False):
            if known and tag not in known:
                raise RowError(f"has an unknown tag, `{tag}` of `{word}`{did_you_mean(tag, known)}")
        id = str(number + 1 if sentence.id is None else sentence.id)
        return TaggedExample(id, words, tags if has_tags else None)

    return examples_from(path, rows, example, skipped)


def _is_position(column):
    return re.fullmatch(r"-?\d+", str(column)) is not None


def _names(fields, known):
    """Returns the tags of a sentence; those that are numbers by their names."""
    tags = fields["tags"]
    if not isinstance(tags, list) or not tags or not all(type(tag) is int for tag in tags):
        return tags
    if not 0 <= min(tags) <= max(tags) < len(known):
        raise RowError(
            "has numbers as tags. Give the names of all, in the order of the numbers: "
            "`task.labels=[O, B-PER, I-PER]`."
        )
    return [known[tag] for tag in tags]


def _of_object(row, given, has_tags, split, offsets):
    """Returns a row of an object with its words and tags, or with its problem."""
    if row.problem is not None:
        return row
    record = row.fields
    text_key = given["text"] or ("words" if "words" in record else "text")
    words, tags = record.get(text_key), []
    tags_key = given["label"] or ("label" if isinstance(words, str) else "tags")
    missing = [key for key in (text_key, tags_key)[: 1 + has_tags] if key not in record]
    if missing:
        problem = (
            f"has no `{missing[0]}`. It must have `words` and `tags`, `text` and `label`, or what "
            f"the options `text` and `label` name. Received: {', '.join(record) or 'nothing'}."
        )
        return row._replace(problem=problem)
    if has_tags:
        tags = record[tags_key]
    try:
        if isinstance(words, str):
            words, tags = tagged_words(words, _spans(tags), split, offsets)
    except RowError as error:
        return row._replace(problem=str(error))
    return row._replace(fields={"words": words, "tags": tags, "id": record.get("id")})


def _spans(spans):
    if not isinstance(spans, list):
        raise RowError(f"must have a list of spans. Received: {spans!r:.60}.")
    return [span_of(span) for span in spans]


def _sentences(words: Iterable[Row | None]) -> Iterator[Row]:
    """Yields a Row for each sentence of Rows of words and tags, between which None is."""
    for is_sentence, group in itertools.groupby(words, lambda word: word is not None):
        if is_sentence:
            sentence = list(group)
            row = next((row for row in sentence if row.problem is not None), sentence[0])
            fields = {"words": [], "tags": []}
            if row.problem is None:
                columns = zip(*(row.fields for row in sentence), strict=True)
                fields |= dict(zip(fields, map(list, columns), strict=False))
            yield row._replace(fields=fields, raw="".join(row.raw for row in sentence))


def _table_words(path, names, encoding):
    """Yields the words of a table with a word in each row as Rows, see `_sentences`."""
    table, sentence = read_raw_table(path, names, encoding=encoding), ""
    for row in table.rows:
        if not row.raw.strip():
            yield None
            continue
        if row.problem is None:
            number = row.fields.get(_SENTENCE, "").strip()
            if number not in ("", sentence):  # only the first word may have it
                yield None
                sentence = number
            row = row._replace(fields=[row.fields[key] for key in table.keys])
        yield row


def _column_words(path, numbers, encoding):
    """Yields the words of a file with columns as Rows, see `_sentences`."""
    rows, no_words = line_rows(path, encoding), ("#", _DOCUMENT_START)
    first = next((row.fields for row in rows if _is_word(row.fields, no_words)), "")
    has_tabs = "\t" in first.strip()
    lines = [(row, _columns(row.fields, has_tabs)) for row in rows]
    width = len(_columns(first, has_tabs))
    if not width:
        return
    positions = [int(number) if _is_position(number) else width for number in numbers]
    if not all(-width <= one < width for one in positions) or len(
        {one % width for one in positions}
    ) < len(positions):
        raise InputError(
            f"`{path}` must have a column of words and one of tags, separated by tabs or spaces; "
            "their numbers, counted from 0, are `text` and `label`. Received: "
            f"{' and '.join(map(str, numbers))} of {width} columns.",
            Mistake.NO_COLUMN,
        )
    is_first = True
    for row, columns in lines:
        is_end = not columns or row.fields.startswith(_DOCUMENT_START)
        is_comment = is_first and row.fields.startswith("#") and len(columns) != width
        if is_end or is_comment:
            is_first = True
            yield None
        elif path.suffix.lower() != ".conllu" or not _NO_WORD.fullmatch(columns[0]):
            is_first = False
            if row.problem is None and len(columns) != width:
                rule = f"must have {width} columns, like the first one"
                row = row._replace(problem=f"{rule}. Received: {len(columns)}.")
            if row.problem is None:
                row = row._replace(fields=[columns[at] for at in positions])
            yield row


def _is_word(line, no_words):
    return line.strip() != "" and not line.startswith(no_words)


def _columns(line, has_tabs):
    """Returns the columns of a line, none of a blank one."""
    if not line.strip(" \t"):
        return []
    if has_tabs:
        return [column.strip(" ") for column in line.split("\t")]
    return re.split("[ \t]+", line.strip(" \t"))  # U+00A0 belongs to a word
