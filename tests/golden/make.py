"""Writes the golden answers: `python -m tests.golden.make FOLDER_OF_THE_DATA [MODEL ...]`.

Weights of the heads are drawn with a seed, scaled and centred so that answers are of several kinds,
and drawn again until each answer is decided by a margin: `answers.json` has what determines them.
Answers may change only for a reason that the commit names.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np

from tests.golden.answers import differences, plain
from tests.golden.kinds import KINDS, MODELS, build_model

PATH = Path(__file__).with_name("answers.json")
#: By how much the best answer must be better than the next one, in probability.
_MARGIN = 0.0005
#: The share of the examples of a kind that may have the same answer.
_MOST = 0.85
#: Spread of the logits of a head, in which a scale of 1 is too decided or too undecided.
_SPREAD = 2.0


def main(data: Path, models: list[str]) -> None:
    """Writes `answers.json` from the files in a folder, of some models or of all."""
    examples = {name: kind.read(data) for name, kind in KINDS.items()}
    found: dict = json.loads(PATH.read_text()) if models else {"heads": {}, "kinds": {}}
    for model_name in models or MODELS:
        slices = {name: examples[name] for name, kind in KINDS.items() if kind.model == model_name}
        for seed in range(20):
            head = _calibrated(model_name, seed, slices)
            model = build_model(model_name, head)
            answers = {name: model.answer(one.columns) for name, one in slices.items()}
            margin = min(_margin(one, head) for each in answers.values() for one in each)
            if MODELS[model_name].of == "tags":
                [columns] = [one.columns for one in slices.values()]
                margin = _margin_of_words(model.predict(columns, verbose=0))
            share = min(map(_share, answers.values()))
            print(model_name, head, "margin", margin, "share", share, flush=True)
            if margin > _MARGIN and share < _MOST:
                break
        else:
            raise SystemExit(f"No seed decides all answers of {model_name}.")
        found["heads"][model_name] = head
        for name, each in answers.items():
            scores = {
                key: float(one) for key, one in KINDS[name].score(examples[name], each).items()
            }
            print(name, scores, flush=True)
            values = dict(zip(examples[name].ids, plain(each), strict=True))
            found["kinds"][name] = {"scores": scores, "answers": values}
    if PATH.exists():
        print("\n".join(differences(json.loads(PATH.read_text()), found)) or "nothing changed")
    PATH.write_text(_with_lines(found))


def _calibrated(model_name, seed, slices):
    """Returns the head of a model, centred by its outputs for the slices."""
    of, head = MODELS[model_name].of, {"seed": seed, "scale": 1.0}
    if of == "similarity":
        return head
    if of == "spans":
        head["scale"] = 8.0
        if "none" not in model_name:
            return head
        model = build_model(model_name, head)
        [columns] = [one.columns for one in slices.values()]
        scores = sorted(one.null_score for one in model.answer(columns))
        half = len(scores) // 2
        return head | {"thresholds": {"null_threshold": round(sum(scores[half : half + 2]) / 2, 4)}}
    model = build_model(model_name, head)
    outputs = np.concatenate(
        [_logits(of, np.asarray(model.predict(one.columns, verbose=0))) for one in slices.values()]
    )
    if of == "options":  # compared with each other: there is no centre
        return head | {"scale": round(float(_SPREAD / outputs.std()), 3)}
    means, spread = outputs.mean(0), outputs.std(0).mean()
    scale = round(float(_SPREAD / spread), 3)
    return head | {"scale": scale, "bias": [round(float(-scale * one), 3) for one in means]}


def _logits(of, outputs):
    """Returns the logits of outputs, up to a constant for each row."""
    if of == "numbers":
        return outputs
    if of == "labels":
        return np.log(outputs) - np.log1p(-outputs)
    rows = outputs.reshape(-1, outputs.shape[-1])
    rows = np.log(rows[rows.sum(-1) > 0])  # not those that fill up sentences
    return rows - rows.mean(-1, keepdims=True)


def _margin(answer, head):
    """Returns by how much an answer is better than the next one."""
    if hasattr(answer, "labels"):
        return min(abs(one - 0.5) for one in answer.probabilities.values())
    if hasattr(answer, "nbest"):
        nbest = [one["probability"] for one in answer.nbest]
        margin = min(-np.diff(nbest), default=1.0)
        if answer.null_score is None:
            return margin
        return min(margin, abs(answer.null_score - head["thresholds"]["null_threshold"]))
    if not isinstance(getattr(answer, "probability", None), float):
        return 1.0  # of numbers; that of tags is seen in the outputs alone
    values = answer.probabilities
    values = sorted(values.values() if isinstance(values, dict) else values)
    return values[-1] - values[-2]


def _margin_of_words(outputs):
    """Returns the margin of the tag of each word, of probabilities [B, words, C]."""
    rows = np.sort(outputs.reshape(-1, outputs.shape[-1]))
    return float((rows[:, -1] - rows[:, -2])[rows.sum(-1) > 0].min())


def _share(answers):
    """Returns the share of the most frequent class, option, or answer that is none."""
    names = [
        getattr(one, "label", getattr(one, "choice", getattr(one, "text", at)))
        for at, one in enumerate(answers)
    ]
    return Counter(names).most_common(1)[0][1] / len(names)


def _with_lines(found):
    """Returns JSON with a line for each answer."""
    kinds = []
    for name, kind in found["kinds"].items():
        lines = ",\n".join(
            f"{json.dumps(id)}: {json.dumps(one, ensure_ascii=False)}"
            for id, one in kind["answers"].items()
        )
        scores = json.dumps(kind["scores"])
        kinds.append(f'{json.dumps(name)}: {{"scores": {scores},\n"answers": {{\n{lines}}}}}')
    heads = ",\n".join(
        f"{json.dumps(name)}: {json.dumps(one)}" for name, one in found["heads"].items()
    )
    return f'{{"heads": {{\n{heads}}},\n"kinds": {{\n' + ",\n".join(kinds) + "}}\n"


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
