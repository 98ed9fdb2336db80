"""The file of the scores of each pair: JSON lines, in the order of the pairs."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from albert_keras.minimal_pairs.pairs import SCORE_KEY, MinimalPair
from albert_keras.tasks.answer_table import check_answer_table
from data_pipeline.errors import InputError
from data_pipeline.files import naming, whole_file

if TYPE_CHECKING:  # loads TensorFlow
    from albert_keras.minimal_pairs.pseudo_likelihood import SentenceScores

_ENDING = ".jsonl"


def check_score_file(out: Path, overwrite: bool, pairs: Sequence[Path]) -> None:
    """Checks, before any model is loaded, that scores can be written at `out`; else InputError.

    `pairs` are the files of the pairs, which are never replaced, and the folders that were given,
    in which a file of scores would be read as one of pairs the next time.
    """
    if out.suffix.lower() != _ENDING or out.is_dir():
        raise InputError(
            f"The scores of pairs are written to a file that ends in {_ENDING}. Received: `{out}`."
        )
    target = out.resolve()
    if not {target, target.parent}.isdisjoint(path.resolve() for path in pairs):
        raise InputError(
            "`--out` must not be a file of minimal pairs, or in a folder of them. "
            f"Received: `{out}`. Choose a file in another folder."
        )
    check_answer_table(out, overwrite)


def write_scores(path: Path, pairs: Sequence[MinimalPair], found: "SentenceScores") -> None:
    """Writes a line for each of N pairs: where it is, its sentences, their scores and the result.

    Args:
        path: File to write, which appears whole or not at all.
        pairs: N.
        found: Scores of the N acceptable sentences, then of the N others.
    """
    count = len(pairs)
    with naming(path):
        path.absolute().parent.mkdir(parents=True, exist_ok=True)
        with whole_file(path) as temporary, open(temporary, "w", encoding="utf-8") as file:
            for number, pair in enumerate(pairs):
                good, bad = float(found.scores[number]), float(found.scores[count + number])
                row = {
                    "file": pair.file,
                    "line": pair.line,
                    "group": pair.group,
                    "good": pair.good,
                    "bad": pair.bad,
                    SCORE_KEY: good,
                    "bad_score": bad,
                    "good_tokens": len(found.ids[number]),
                    "bad_tokens": len(found.ids[count + number]),
                    "result": "tie" if good == bad else "right" if good > bad else "wrong",
                }
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
