"""Small inputs with the names that the pages use: texts, tables and their columns."""

import itertools
from pathlib import Path

#: Folders of texts -> the sentences of the corpus that they contain.
_TEXTS = {"books": slice(0, 240), "heldout": slice(240, 290), "law": slice(290, 320)}
_TEXTS["law-heldout"] = slice(320, 348)
_SUBJECTS = "The invoice,The contract,The payment,The meeting,The agenda,The minutes".split(",")
_ENDS = "is attached,was late,is still missing,came on Monday,needs your name,is wrong".split(",")


def write_inputs(folder: Path, corpus: list[str]) -> None:
    """Writes all inputs.

    Args:
        folder: Path. The folder in which the pages are executed.
        corpus: list of str. Sentences, all different.
    """
    for name, part in _TEXTS.items():
        sentences = corpus[part]
        for number in range(0, len(sentences), 20):
            path = folder / name / f"{number}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text("\n\n".join(_paragraphs(sentences[number : number + 20])) + "\n")
    rows = [
        f"{subject} {end}.,{'work' if number % 6 < 3 else 'other'}"
        for number, (subject, end) in enumerate(itertools.product(_SUBJECTS, _ENDS))
    ]
    (folder / "mail.csv").write_text("\n".join(["body,folder", *rows[::2] * 4]) + "\n")
    (folder / "mail-of-june.csv").write_text("\n".join(["body,folder", *rows[1::2]]) + "\n")


def _paragraphs(sentences):
    return [" ".join(sentences[start : start + 5]) for start in range(0, len(sentences), 5)]
