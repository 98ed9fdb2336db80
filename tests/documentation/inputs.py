"""Small inputs with the names that the pages use: texts, tables and their columns."""

import itertools
from pathlib import Path

#: Folders of texts -> the sentences of the corpus that they contain.
_TEXTS = {
    "books": slice(0, 240),
    "heldout": slice(240, 290),
    "law": slice(290, 320),
    "law-heldout": slice(320, 348),
}
_SUBJECTS = "The invoice,The contract,The payment,The meeting,The agenda,The minutes".split(",")
_ENDS = "is attached,was late,is still missing,came on Monday,needs your name,is wrong".split(",")
_STS_B = "index genre filename year old_index source1 source2 sentence1 sentence2 score".split()


def write_inputs(folder: Path, corpus: list[str]) -> None:
    """Writes all inputs.

    Args:
        folder: Path. The folder in which the pages are executed.
        corpus: list of str. Sentences, all different.
    """
    for name, part in _TEXTS.items():
        sentences = corpus[part]
        for number in range(0, len(sentences), 20):
            text = "\n\n".join(_paragraphs(sentences[number : number + 20])) + "\n"
            _write(folder / name / f"{number}.txt", text)
    texts = [f"{subject} {end}." for subject, end in itertools.product(_SUBJECTS, _ENDS)]
    late = [number % 6 < 3 for number in range(len(texts))]
    bits = [f"{int(one)},{int(not one)},{int(number % 3 == 0)}" for number, one in enumerate(late)]
    tables = {
        "mail.csv": ("body,folder", ["work" if one else "other" for one in late]),
        "new.csv": ("body,note", ["-"] * len(texts)),
        "remarks.csv": ("remark,toxic,insult,threat", bits),
        "news.csv": ("body,topics", ["sport|art", "art", "sport"] * 12),
        "essays.csv": (
            "essay,grammar,style",
            [f"{number % 5},{number % 3}" for number in range(36)],
        ),
    }
    for name, (header, columns) in tables.items():
        rows = [f"{text},{column}" for text, column in zip(texts, columns, strict=True)]
        _write(folder / name, "\n".join([header, *rows[::2] * 4]) + "\n")
        if name == "mail.csv":
            _write(folder / "mail-of-june.csv", "\n".join([header, *rows[1::2]]) + "\n")
    _write_glue(folder / "glue", texts, late)
    _write(folder / "sentences.txt", "\n".join(texts) + "\n")
    for name, header, count in (
        ("pairs.csv", "a,b,score", 6),
        ("questions.csv", "first,second,same", 2),
    ):
        pairs = [
            f"{text},{texts[number - 2]},{number % count}"  # others than those of STS-B
            for number, text in enumerate(texts)
        ]
        _write(folder / name, "\n".join([header, *pairs]) + "\n")


def _write_glue(folder, texts, late):
    rows = [f"{text}\t{int(one)}" for text, one in zip(texts, late, strict=True)]
    scored = [
        "\t".join([str(number), *["none"] * 6, text, texts[number - 1], f"{number % 6}.0"])
        for number, text in enumerate(texts)
    ]
    for name, part in (("train", slice(0, None, 2)), ("dev", slice(1, None, 2))):
        _write(folder / "SST-2" / f"{name}.tsv", "\n".join(["sentence\tlabel", *rows[part]]) + "\n")
        lines = ["\t".join(_STS_B), *scored[part]]
        _write(folder / "STS-B" / f"{name}.tsv", "\n".join(lines) + "\n")


def _write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def _paragraphs(sentences):
    return [" ".join(sentences[start : start + 5]) for start in range(0, len(sentences), 5)]
