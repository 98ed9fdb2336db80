"""Writes the golden answers again: `python -m tests.golden.make FOLDER_OF_THE_DATA [MODEL ...]`.

The heads in `answers.json` stay as they are. They were chosen so that answers are of several kinds,
and that each is decided by a margin. Answers may change only for a reason that the commit names.
"""

import json
import sys
from pathlib import Path
from typing import Any

from tests.differences import differences
from tests.golden.kinds import KINDS, MODELS, build_model, plain

PATH = Path(__file__).with_name("answers.json")


def main(data: Path, models: list[str]) -> None:
    """Writes `answers.json` from the files in a folder, of some models or of all."""
    golden = json.loads(PATH.read_text(encoding="utf-8"))
    for name in models or MODELS:
        model = build_model(name, golden["heads"][name])
        for kind, _, _, found in golden_of(name, model, data):
            print(kind, found["scores"], flush=True)
            print("\n".join(differences(found, golden["kinds"][kind])) or "nothing changed")
            golden["kinds"][kind] = found
    PATH.write_text(_with_lines(golden), encoding="utf-8")


def golden_of(name: str, model: Any, data: Path):
    """Yields for each kind that a model answers: its name, examples, answers, and golden values."""
    for kind, (of, read, score) in KINDS.items():
        if of == name:
            examples = read(data)
            answers = model.answer(examples.columns)
            scores = {key: float(one) for key, one in score(examples, answers).items()}
            values = dict(zip(examples.ids, plain(answers), strict=True))
            yield kind, examples, answers, {"scores": scores, "answers": values}


def _with_lines(golden):
    """Returns JSON with a line for each answer."""
    kinds = []
    for name, kind in golden["kinds"].items():
        lines = ",\n".join(
            f"{json.dumps(id)}: {json.dumps(one, ensure_ascii=False)}"
            for id, one in kind["answers"].items()
        )
        scores = json.dumps(kind["scores"])
        kinds.append(f'{json.dumps(name)}: {{"scores": {scores},\n"answers": {{\n{lines}}}}}')
    heads = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(one)}" for name, one in golden["heads"].items()
    )
    return f'{{"heads": {{\n{heads}}},\n"kinds": {{\n' + ",\n".join(kinds) + "}}\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
