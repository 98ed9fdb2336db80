"""Sentences with a tag for each word: files → examples → pieces aligned to words, and back."""

import json
import logging
import re
from pathlib import Path

import numpy as np

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.pair_features import EncodedPairs, encode_texts, lay_out
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

#: In place of a tag where there is nothing to be scored: [CLS], [SEP], padding, and all pieces of
#: a word but the first.
NOT_SCORED = -1

_DOCUMENT_START = "-DOCSTART-"
_WHITE_SPACE = re.compile(r"[ \t]+")  # others, such as a no-break space, belong to words

logger = logging.getLogger(__name__)


def read_tagged(path, *, word_column=0, tag_column=-1, has_tags=True) -> list[TaggedExample]:
    """Reads a file of tagged sentences.

    In columns, as in CoNLL: a word per line, columns parted by spaces or tabs, and an empty line
    or `-DOCSTART-` between sentences. Or, if the name ends in `.jsonl`, an object per line:
    `{"words": ["Ada", "slept"], "tags": ["B-PER", "O"]}`, with an "id" or without.

    Args:
        path: path. UTF-8.
        word_column: int. From 0; negative ones count from the last.
        tag_column: int. Likewise; by default the last.
        has_tags: bool. Whether tags are read; if not, one column is enough.

    Returns:
        list of TaggedExample. The id is the number of the sentence unless the file has one.

    Raises:
        InputError: If there is no sentence, or a line is not as it should be; it names the line.
    """
    path = Path(path)
    if path.suffix.lower() == ".jsonl":
        examples = list(_read_objects(path, has_tags))
    else:
        examples = list(_read_columns(path, word_column, tag_column, has_tags))
    if not examples:
        raise InputError(f"`{path}` should hold at least one sentence. It has none.")
    return examples


def _numbered_lines(path):
    try:
        content = path.read_bytes()
    except OSError as error:
        raise InputError(f"`{path}` cannot be read: {error.strerror}.") from error
    for number, line in enumerate(content.split(b"\n"), start=1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as error:
            byte = f"0x{line[error.start]:02x}"
            raise InputError(
                f"`{path}`, line {number} should be UTF-8. Received: byte {byte}."
            ) from error
        # A byte order mark stands at the start, or inside where files were joined.
        yield number, text.removeprefix("\ufeff").removesuffix("\r")


def _read_columns(path, word_column, tag_column, has_tags):
    words, tags, sentences, width = [], [], 0, None
    for number, line in [*_numbered_lines(path), (0, "")]:
        columns = _WHITE_SPACE.split(line.strip(" \t"))
        if columns[0] in ("", _DOCUMENT_START):
            if words:
                sentences += 1
                yield TaggedExample(str(sentences), tuple(words), tuple(tags) if has_tags else None)
            words, tags = [], []
            continue
        if width is None:
            width = len(columns)
            wanted = {"word_column": word_column}
            if has_tags:
                wanted["tag_column"] = tag_column
            _check_columns(wanted, width, f"`{path}`, line {number}")
        if len(columns) != width:
            raise InputError(
                f"`{path}`, line {number} should have {width} columns, as the lines before it. "
                f"Received: {len(columns)}."
            )
        words.append(columns[word_column])
        if has_tags:
            tags.append(columns[tag_column])


def _read_objects(path, has_tags):
    sentences = 0
    for number, line in _numbered_lines(path):
        if not line.strip():
            continue
        sentences += 1
        place = f"`{path}`, line {number}"
        try:
            sentence = json.loads(line, strict=False)
        except (ValueError, RecursionError) as error:
            fault = getattr(error, "msg", error)
            raise InputError(f"{place} should be a JSON object. It is broken: {fault}.") from error
        if not isinstance(sentence, dict):
            raise InputError(f"{place} should be a JSON object. Received: {line[:60]!r}.")
        names = ("words", "tags") if has_tags else ("words",)
        for name in names:
            values = sentence.get(name)
            if not isinstance(values, list) or not values or not all(map(_is_text, values)):
                raise InputError(
                    f'{place} should have a list of texts, none of them empty, as "{name}". '
                    f"Received: {repr(values)[:60]}."
                )
        counts = [len(sentence[name]) for name in names]
        if len(set(counts)) > 1:
            raise InputError(
                f"{place} should have a tag for every word. Received: {counts[1]} for {counts[0]}."
            )
        tags = tuple(sentence["tags"]) if has_tags else None
        yield TaggedExample(str(sentence.get("id", sentences)), tuple(sentence["words"]), tags)


def tag_names_of(examples) -> list[str]:
    """Returns all tags of the examples, sorted: the order of their ids."""
    return sorted({tag for example in examples for tag in example.tags or ()})


def tag_features(examples, tokenizer, max_seq_length, tag_names=None) -> dict[str, np.ndarray]:
    """Lays out `[CLS] words [SEP]`, with the tag of a word on its first piece.

    Each word is encoded by itself; one that the tokenizer leaves nothing of is an unknown piece.
    A sentence that is too long goes into several rows, cut between words. Only a word that is
    longer than a whole row loses its last pieces, and a warning tells so.

    Args:
        examples: list of TaggedExample.
        tokenizer: Tokenizer.
        max_seq_length: int. S, at least 3.
        tag_names: list of str or None. What tags their ids stand for. None leaves tags out.

    Returns:
        dict of int32 [R, S], with at least as many rows R as sentences, in their order:
        `input_ids`, `input_mask` and `segment_ids` as in `pair_features`, `word_starts` (1 on
        the first piece of a word) and, with `tag_names`, `tag_ids` (elsewhere `NOT_SCORED`).

    Raises:
        InputError: If an example has no tags or one that is not in `tag_names`, or if
            `max_seq_length` leaves no room.
    """
    if max_seq_length < 3:  # [CLS], a piece, [SEP]
        raise InputError(f"`max_seq_length` should be at least 3. Received: {max_seq_length}.")
    words = [word for example in examples for word in example.words]
    ids, starts, lengths = encode_texts(words, tokenizer)
    starts[lengths == 0], lengths[lengths == 0] = len(ids), 1
    ids = np.append(ids, np.int32(tokenizer.unk_id))
    room = max_seq_length - 2
    too_long = np.flatnonzero(lengths > room)
    if len(too_long):
        logger.warning(
            "%d words have more than %d pieces and lose the rest, such as %.40r.",
            len(too_long),
            room,
            words[too_long[0]],
        )
    lengths = np.minimum(lengths, room)

    rows = _rows_of_words([len(example.words) for example in examples], lengths.tolist(), room)
    places = lengths.cumsum() - lengths  # of first pieces, all words end to end
    pieces = ids[np.repeat(starts - places, lengths) + np.arange(lengths.sum())]
    begins = places[np.flatnonzero(np.diff(rows, prepend=-1))]  # of rows
    row_lengths = np.diff(begins, append=len(pieces))
    none = np.zeros_like(begins)
    pairs = EncodedPairs(
        pieces, np.stack([begins, none], axis=1), np.stack([row_lengths, none], axis=1)
    )
    features = lay_out(pairs, tokenizer, max_seq_length)

    columns = 1 + places - begins[rows]
    shape = features["input_ids"].shape
    features["word_starts"] = np.zeros(shape, np.int32)
    features["word_starts"][rows, columns] = 1
    if tag_names is not None:
        features["tag_ids"] = np.full(shape, NOT_SCORED, np.int32)
        features["tag_ids"][rows, columns] = _tag_ids(examples, tag_names)
    return features


def tags_of_words(predictions, features, examples, tag_names) -> list[tuple[str, ...]]:
    """Reads predicted tags off the first pieces of words.

    Args:
        predictions: int [R, S]. Ids of tags, for the rows of `features`.
        features: dict. What `tag_features` made of `examples`.
        examples: list of TaggedExample.
        tag_names: list of str. By id.

    Returns:
        list of tuple of str. For each example, a tag for each word.
    """
    tags = [tag_names[id] for id in np.asarray(predictions)[features["word_starts"] == 1]]
    ends = np.cumsum([len(example.words) for example in examples], dtype=np.int64).tolist()
    return [tuple(tags[begin:end]) for begin, end in zip([0, *ends], ends, strict=False)]


def _rows_of_words(sentence_lengths, lengths, room):
    """Fills rows with words from the left; returns the row of each word."""
    rows, row, word = [], -1, 0
    for count in sentence_lengths:
        used = room + 1  # a sentence begins a row
        for length in lengths[word : word + count]:
            if used + length > room:
                row, used = row + 1, 0
            used += length
            rows.append(row)
        word += count
    return np.array(rows, np.int64)


def _tag_ids(examples, tag_names):
    numbers = {name: number for number, name in enumerate(tag_names)}
    for example in examples:
        if example.tags is None or len(example.tags) != len(example.words):
            raise InputError(f"Sentence {example.id} should have a tag for every word.")
        for tag in example.tags:
            if tag not in numbers:
                raise InputError(
                    f"The tag `{tag}` of sentence {example.id} is not a known one"
                    f"{did_you_mean(tag, tag_names)}"
                )
    return [numbers[tag] for example in examples for tag in example.tags]


def _check_columns(wanted, width, place):
    for name, column in wanted.items():
        if not -width <= column < width:
            raise InputError(
                f"{place} should have the column that `{name}` names. "
                f"Received: {name}={column}, and {width} columns."
            )
    if len(wanted) > len({column % width for column in wanted.values()}):
        raise InputError(f"{place} should have a word and a tag. Received: one column for both.")


def _is_text(value):
    return isinstance(value, str) and value != ""
