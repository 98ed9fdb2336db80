"""Files of minimal pairs: JSON lines with an acceptable and an unacceptable sentence.

A line has the keys of BLiMP, `sentence_good`, `sentence_bad` and `UID`, or `good`, `bad` and
`group`; it may have `field` and `linguistics_term`. Other keys are ignored. A pair without a group
belongs to the group that has the name of its file, or its path if several files have this name.

Source:
    Warstadt et al.: BLiMP: The benchmark of linguistic minimal pairs for English
    (https://arxiv.org/abs/1912.00582).
"""

import functools
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from albert_keras.tasks.answer_table import check_answer_table
from albert_keras.tasks.examples import text_problem
from albert_keras.tasks.tables.lines import line_rows
from albert_keras.tasks.tables.raw_table import object_row
from albert_keras.tasks.tables.rows import RowError, examples_from
from data_pipeline.errors import InputError
from data_pipeline.text import storage

_ENDING = ".jsonl"
#: Keys of the two sentences, and of the group.
_FORMATS = (("sentence_good", "sentence_bad", "UID"), ("good", "bad", "group"))


class MinimalPair(NamedTuple):
    """Two sentences; a model of the language should give the first one the higher score."""

    good: str
    bad: str
    group: str  # BLiMP's paradigm
    field: str | None  # BLiMP's field, such as "syntax"
    term: str | None  # BLiMP's phenomenon, such as "island_effects"
    file: str
    line: int  # from 1


def pair_files(paths: Iterable[str | Path]) -> list[Path]:
    """Lists files of pairs, with the `.jsonl` files of each folder in the order of their names.

    Raises:
        InputError: If there is no such file.
    """
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            files = sorted(path.glob(f"*{_ENDING}"))
            if not files:
                raise InputError(f"The folder `{path}` contains no files that end in {_ENDING}.")
            found += files
        else:
            storage.open_to_read(path).close()
            found.append(path)
    if not found:
        raise InputError("There must be at least one file of minimal pairs. Received: none.")
    return found


def read_pairs(files: Sequence[Path]) -> list[MinimalPair]:
    """Reads the pairs of some files, see `pair_files`. Blank lines are ignored.

    Raises:
        InputError: If a file cannot be read, has no pair, or has a line that cannot be used.
    """
    stems = Counter(file.stem for file in files)
    pairs = []
    for file in files:
        group = file.stem if stems[file.stem] == 1 else str(file)
        rows = (object_row(row) for row in line_rows(file, "utf-8") if row.fields.strip())
        make = functools.partial(_pair, str(file), group)
        pairs += examples_from(file, rows, make, may_skip=False)
    return pairs


def _pair(file, default_group, number, row):
    """Returns the pair of the object in a Row, or raises RowError."""
    line, row = row.line, row.fields
    formats = [keys for keys in _FORMATS if keys[0] in row or keys[1] in row]
    if not formats:
        raise RowError(
            "must have the keys `sentence_good` and `sentence_bad`, or `good` and `bad`. "
            f"Received: {', '.join(row) or 'none'}."
        )
    keys = (*formats[0], "field", "linguistics_term")
    for key in keys:
        is_optional = key not in formats[0][:2]
        if not (is_optional and row.get(key) is None) and (problem := text_problem(row.get(key))):
            raise RowError(f"`{key}` {problem}")
    good, bad, group, *names = map(row.get, keys)
    return MinimalPair(good, bad, default_group if group is None else group, *names, file, line)


def check_score_file(out: Path, overwrite: bool, pairs: Sequence[Path]) -> None:
    """Checks, before any model is loaded, that scores can be written at `out`; else InputError.

    `pairs` are the files of the pairs, which are never replaced, and the folders that were given,
    in which a file of scores would be read as one of pairs the next time.
    """
    target = out.resolve()
    is_among_pairs = not {target, target.parent}.isdisjoint(path.resolve() for path in pairs)
    if out.suffix.lower() != _ENDING or is_among_pairs:
        raise InputError(
            f"`out` must end in {_ENDING}, and must not be a file of minimal pairs or in a "
            f"folder of them. Received: `{out}`."
        )
    check_answer_table(out, overwrite)
