"""Reads sentences with a tag for each word: in columns, in a table or in .jsonl → examples."""

import itertools
import logging
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.tables.cells import check_plain
from albert_keras.tasks.tables.lines import line_rows
from albert_keras.tasks.tables.raw_table import JSON_ENDINGS, kept, object_rows, read_raw_table
from albert_keras.tasks.tables.rows import RowError, SkippedRow, checked, examples_from, remark
from albert_keras.tasks.tagging.scores import has_entities
from albert_keras.tasks.tagging.spans import Texts, spans_of
from data_pipeline.config import WordSplit
from data_pipeline.errors import InputError, Mistake
from data_pipeline.limits import check_columns
from data_pipeline.settings import did_you_mean

#: Usual names of columns in lower case, by option; of several in a file the first one here is read.
_NAMES = {
    "text": ("words", "tokens", "word", "token"),
    "label": ("tags", "ner_tags", "tag", "ner_tag", "labels", "label", "ner"),
    "sentence": ("sentence #", "sentence_id", "sent_id", "sentence_idx", "sentence"),
}
#: The same for a text with spans of characters.
_SPANS = {"text": ("text",), "label": ("label", "labels", "entities", "spans")}
_NUMBERS = {"text": ("0",), "label": ("-1",)}  # if columns have no names
#: More different tags than this, and twice as many as words, are words.
_MANY_TAGS = 20
#: Sentences in columns that are longer on average are probably several.
_MANY_WORDS = 200
_DOCUMENT_START = "-DOCSTART-"
_WHITE_SPACE = re.compile(r"[ \t]+")  # a no-break space belongs to a word
#: CoNLL-U: the numbers of words that stand for several others, or are not in the text; and its
#: comment with the plain text of a sentence.
_NO_WORD = re.compile(r"(\d{1,9})[-.](\d{1,9})")
_PLAIN_TEXT = re.compile(r"#\s*text\s*=\s*(.*\S)\s*")

_Text = Annotated[str, Field(min_length=1)]

logger = logging.getLogger(__name__)


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
    remarks: list[str] | None = None,
    plain: dict[tuple[str, ...], list[str]] | None = None,
) -> list[TaggedExample]:
    """Reads a file of tagged sentences.

    In columns, as in CoNLL: a word per line, columns separated by spaces or tabs, and an empty line
    or `-DOCSTART-` between sentences; comments, which begin with `#`, are left out. In a .csv: a
    word per row, and columns with names, one of them for the number of the sentence; in a .tsv or
    .txt with such names, too. In a .jsonl or .json: objects such as
    `{"words": ["Ada", "slept"], "tags": ["B-PER", "O"]}`, perhaps with an "id"; or with spans of
    characters, `{"text": "Ada slept", "label": [[0, 3, "PER"]]}`, as pairs of spaCy as well, see
    `Texts`.

    Args:
        text, label: Columns of words and tags: a name; or where columns have none, a number from 0,
            or from -1 for the last. None is a usual name, or the first and the last column.
        has_tags: Whether tags are read; if not, words are enough.
        known: All tags that are allowed, if any; and the names of tags that are numbers from 0.
        encoding: See `read_raw_table`.
        skipped: Receives the sentences that cannot be used. None makes them an error.
        split: How a text becomes words, which end where a span does, see `split_words`.
        remarks: Receives what is unusual about the file, which is logged in any case.
        plain: Receives what plain text has for the words of a sentence, if the file says that.

    Returns:
        The id is the number of the sentence unless the file has one.

    Raises:
        InputError: If a column is missing, or as `examples_from`.
    """
    path, wanted = Path(path), {"text": text} | ({"label": label} if has_tags else {})
    ending = path.suffix.lower()
    is_json = ending in JSON_ENDINGS
    if is_json:
        rows = [row for row in object_rows(path, encoding) if row.raw.strip()]
        rows = kept(path, rows, remarks) if has_tags else rows
        texts = Texts(_texts_with_spans(rows, wanted))
    else:
        is_table = ending == ".csv" or ending in (".tsv", ".txt") and _has_names(path, encoding)
        if is_table:
            words = _table_words(path, wanted, encoding)
        else:
            words = _column_words(path, wanted, encoding, is_training=has_tags and not known)
        rows = _sentences(words)

    def example(number, row):
        fields = _named(row.fields, wanted) if is_json else row.fields
        if isinstance(tags := fields.get("tags"), str):
            raise RowError(f"must have tags or spans in a list, not in a text. Received: {tags!r}.")
        if isinstance(fields["words"], str):
            text, spans = fields["words"], spans_of(fields.get("tags", ()))
            fields["words"], fields["tags"] = texts.words(row.place(), text, spans, split)
        tags = fields.get("tags")
        if isinstance(tags, list) and tags and all(type(tag) is int for tag in tags):
            if not 0 <= min(tags) <= max(tags) < len(known):
                raise RowError(
                    "has numbers as tags. Give the names of all, in the order of the numbers: "
                    "`task.labels=[O, B-PER, I-PER]`."
                )
            tags = [known[tag] for tag in tags]
        sentence = checked(_Sentence, fields | {"tags": tags or []})
        words, tags = tuple(sentence.words), tuple(sentence.tags)
        for tag in set(tags):
            check_plain(tag, "a tag for each word")
        if has_tags and len(tags) != len(words):
            raise RowError(
                f"must have a tag for every word. Received: {len(tags)} for {len(words)}."
            )
        for tag, word in zip(tags, words, strict=False):
            if known and tag not in known:
                raise RowError(f"has an unknown tag, `{tag}` of `{word}`{did_you_mean(tag, known)}")
        if plain is not None:
            plain[words] = [one for one in fields["written"] if one and isinstance(one, str)]
        id = str(number + 1 if sentence.id is None else sentence.id)
        return TaggedExample(id, words, tags if has_tags else None)

    examples = examples_from(path, rows, example, skipped)
    remark(path, texts.remarks() if is_json else (), remarks)
    length = sum(len(one.words) for one in examples) // max(1, len(examples))
    if not is_json and length > _MANY_WORDS:
        text = f"sentences have {length:,} words on average: perhaps empty lines are missing"
        remark(path, [text], remarks)
    if is_json and texts.first:
        logger.info("%s: the first span is %s.", path, texts.first)
    return examples


def _texts_with_spans(rows, wanted):
    """Yields the texts of rows that have spans, with these."""
    for row in rows:
        try:
            fields = _named(row.fields, wanted) if row.problem is None else {"words": ()}
            if isinstance(fields["words"], str):
                yield fields["words"], spans_of(fields.get("tags", ()))
        except RowError:  # which is reported with the others
            pass


def _keys(names, wanted, usual):
    """Returns the value in `names` of each column that is wanted; None for one that is missing."""
    given = {option: usual[option] if name is None else (name,) for option, name in wanted.items()}
    return [
        next((names[str(name).lower()] for name in some if str(name).lower() in names), None)
        for some in given.values()
    ]


def _named(record, wanted):
    """Returns the words, tags and id of an object under these names; RowError if it has others."""
    names = {name.lower(): name for name in record}
    for usual in (_NAMES, _SPANS):
        keys = _keys(names, wanted, usual)
        if None not in keys:
            break
    else:
        if _keys(names, {"text": None}, _SPANS) != [None] and wanted.get("label") is None:
            raise RowError(
                "has a text without spans: none of the keys "
                f"{', '.join(_SPANS['label'])}. A text without marks has an empty list."
            )
        raise RowError(
            "must have lists of words and tags, called `words` and `tags` or as `text` and `label` "
            "say, or a text with spans, as doccano and JSON_MIN of Label Studio. "
            f"Received: {', '.join(record)}."
        )
    values = [record[key] for key in keys]
    others = {"id": record.get("id"), "written": [record.get("text")]}
    return dict(zip(_Sentence.model_fields, values, strict=False)) | others


def _sentences(words):
    """Yields a Row for each sentence of Rows of words and tags, between which None is."""
    for is_sentence, group in itertools.groupby(words, lambda word: word is not None):
        if is_sentence:
            sentence = list(group)
            row = next((row for row in sentence if row.problem is not None), sentence[0])
            columns = zip(*(row.fields for row in sentence), strict=row.problem is None)
            fields = dict(zip(("written", "words", "tags"), map(list, columns), strict=False))
            yield row._replace(fields=fields, raw="".join(row.raw for row in sentence))


def _has_names(path, encoding):
    """Returns whether the first line of a file has usual names of columns of words and tags."""
    lines = (row.fields.lower() for row in line_rows(path, encoding))
    first = re.split(r"[\t,;|]", next(filter(str.strip, lines), ""))
    names = {name.strip(' "') for name in first}
    return all(names.intersection(_NAMES[option]) for option in ("text", "label"))


def _column_words(path, wanted, encoding, is_training):
    """Yields the words of a file with columns as Rows of the columns wanted, see `_sentences`."""
    rows = line_rows(path, encoding)
    no_columns = ("#", _DOCUMENT_START)
    texts = [row.fields for row in rows if not row.fields.startswith(no_columns)]
    counts = {text.count("\t") for text in texts if text.strip()}
    # If all lines have as many tabs, only these separate columns: words may contain spaces.
    split = (
        re.compile(r" *\t *").split if len(counts - {0}) == len(counts) == 1 else _WHITE_SPACE.split
    )
    lines = [(row, split(row.fields.strip(" \t"))) for row in rows]
    no_words = ("", _DOCUMENT_START, "#")
    words = [line for line in lines if line[1][0].partition(" ")[0] not in no_words]
    if not words:
        return
    if {"text", "label"} <= {
        option for option, names in _NAMES.items() for name in words[0][1] if name.lower() in names
    }:
        raise InputError(
            f"`{path}` must have words and tags alone. Received: names of columns in its first "
            "line. Remove this line, or separate its columns by tabs in a .tsv."
        )
    [(width, _)] = Counter(len(columns) for _, columns in words).most_common(1)
    check_columns(width, path)
    tabs = next((row.fields.count("\t") for row, columns in words if len(columns) == width))
    first = [columns[0] for _, columns in words[:2]]
    if first in (["1", "2"], ["1-2", "1"]) and None in wanted.values():
        raise InputError(
            f"`{path}` has the number of each word in its first column. Give the columns of "
            "words and tags, from 0: `text=1` and `label=3` in CoNLL-U, `text=1` and `label=2` in "
            "GermEval."
        )
    names = {str(number): number % width for number in range(-width, width)}
    keys, is_start = _keys(names, wanted, _NUMBERS), True
    written, hidden = "", 0  # what plain text has instead of so many words
    if None in keys or len(set(keys)) < len(keys):
        given = [f"`{name}={value}`" for name, value in wanted.items() if value is not None]
        text = ", ".join([*given, f"{width} columns"])
        raise InputError(
            f"`{path}` must have a column of words and one of tags, separated by spaces or tabs; "
            f"their numbers, counted from 0, are `text` and `label`. Received: {text}.",
            Mistake.NO_COLUMN,
        )
    if is_training:
        whole = [columns for _, columns in words if len(columns) == width]
        _check_columns(path, whole, wanted, keys)
    following = [*(columns[0] for _, columns in lines[1:]), ""]
    for (row, columns), next_number in zip(lines, following, strict=True):
        if columns[0].partition(" ")[0] in ("", _DOCUMENT_START):
            is_start, hidden = True, 0
            yield None
            continue
        has_width = (len(columns), row.fields.count("\t")) == (width, tabs)
        is_comment = is_start and row.fields.startswith("#") and not has_width
        number = None if is_comment or 0 in keys else _NO_WORD.fullmatch(columns[0])
        if number and "-" in number[0] and next_number.partition(".")[0] != number[1]:
            number = None  # WebAnno: word 2 of sentence 1 is 1-2
        if is_comment or number:
            if text := _PLAIN_TEXT.fullmatch(row.fields):
                written, hidden = text[1], len(lines)
            elif number and "-" in number[0] and hidden <= 0:
                hidden = 1 + int(number[2]) - int(number[1])
                written = "".join(columns[keys[0] : keys[0] + 1])
            continue
        is_start = False
        if not has_width and row.fields.count("\t") == tabs == width - 1:
            columns = row.fields.split("\t")  # words with spaces
        if len(columns) != width:
            rule = f"must have {width} columns, like the other lines. Received: {len(columns)}."
            if len(columns) > width:
                rule += f" Separate columns by tabs if words or tags have spaces: {row.raw!r:.60}."
            yield row._replace(problem=row.problem or rule)
        else:
            values = [columns[key] for key in keys]
            yield row._replace(fields=[written if hidden > 0 else values[0], *values])
            written, hidden = "", hidden - 1


def _check_columns(path, rows, wanted, keys):
    """Raises InputError if a column that was not given seems to have something else."""
    columns = [set(column) for column in zip(*rows, strict=True)]
    words, tags = (columns[key] for key in keys)
    if wanted["label"] is None and len(tags) == 1 and len(columns) > 2 and len(rows) > 1:
        others = [str(at) for at, column in enumerate(columns) if len(column) > 1 and at != keys[0]]
        raise InputError(
            f"`{path}` must have the tags in its last column unless `label` is given. Received: "
            f"`{tags.pop()}` in each line. Columns that differ, counted from 0: "
            f"{', '.join(others) or 'none'}."
        )
    if 2 * sum(row[keys[0]].count(" ") > 2 for row in rows) > len(rows):
        raise InputError(
            f"`{path}` must have a word in each line. Received: whole texts, such as "
            f"{rows[0][keys[0]][:60]!r}. Use `task=classification` for texts with labels."
        )
    is_swapped = has_entities(words) and not has_entities(tags)
    is_swapped |= len(tags) > _MANY_TAGS and 2 * len(words) < len(tags)
    if None in wanted.values() and is_swapped:
        shown = ", ".join(sorted(words)[:5])
        raise InputError(
            f"`{path}` seems to have tags in the column of words, {keys[0]}, and words in that of "
            f"tags, {keys[1]}. Give both: `text={keys[1]}` and `label={keys[0]}`. Received words: "
            f"{shown}."
        )


def _table_words(path, wanted, encoding):
    """Yields the words of a table with a word in each row, as `_column_words`."""
    table = read_raw_table(path, encoding=encoding)
    names = {name.lower(): name for name in table.names}
    (place, *keys), sentence = _keys(names, {"sentence": None} | wanted, _NAMES), ""
    ends = [not row.raw.strip() or row.is_blank for row in table.rows]
    if None in keys or len({place, *keys}) < 1 + len(keys) or place is None and not any(ends):
        raise InputError(
            f"`{path}` must have a column with one word in each row and one with its tag, which "
            "`text` and `label` name, and one with the number of the sentence, such as `Word`, "
            "`Tag` and `Sentence #`, or an empty row between sentences. Lists of words require "
            f".jsonl. Received: {', '.join(table.names)}.",
            Mistake.NO_COLUMN,
        )
    for row, is_end in zip(table.rows, ends, strict=True):
        if is_end or row.raw.startswith(_DOCUMENT_START):
            yield None
            continue
        if row.problem is None:
            number = "" if place is None else row.fields[place].strip()
            row = row._replace(fields=[row.fields[key] for key in (keys[0], *keys)])
            if number not in ("", sentence):  # only the first word may have it
                yield None
                sentence = number
            if not row.fields[0].strip():
                row = row._replace(problem=f"must have a word in `{keys[0]}`. It is blank.")
        yield row
