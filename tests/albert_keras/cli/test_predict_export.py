"""`albert-keras predict` with exports of fine-tuned models: as with the runs they were made of."""

import io
import json
import re
import shutil
import sys

import pytest

from albert_keras.cli import main
from albert_keras.serving.predictor import Predictor
from tests.albert_keras.serving.small_exports import make_model, write_export, write_run
from tests.albert_keras.tasks.small_tasks import make_task

QUESTION = ["--question", "Who left?"]


@pytest.fixture(scope="module")
def folders(tiny_tokenizer, tiny_corpus, tmp_path_factory):
    """Returns a function of a kind that gives the folders of run and export, made once."""
    made, out = {}, tmp_path_factory.mktemp("asked")

    def folders(kind):
        if kind not in made:
            task = make_task(kind)
            model = make_model(task, tiny_tokenizer)
            run = write_run(out / f"run {kind}", task, model, tiny_tokenizer, tiny_corpus)
            write_export(out / kind / "2", task, model, tiny_tokenizer)
            made[kind] = run, out / kind
        return made[kind]

    return folders


@pytest.fixture
def ask(monkeypatch, capsys):
    """Returns a function that asks by command and returns exit code, stdout and stderr."""

    def ask(*words, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        code = main(["predict", *map(str, words)])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return ask


def test_lines_and_json_are_those_of_the_run(folders, ask):
    run, export = folders("classification")
    lines = b'Rain.\n\n{"text": "Rain.", "pair": "Fog.", "id": "k7"}\n'
    words = ["--pair", "Wind."]
    code, shown, _ = ask(export, *words, stdin=lines)
    assert code == 0 and len(shown.splitlines()) == 2
    assert re.fullmatch(r"(no|yes|maybe)  \d\d\.\d %  Rain\. \| Wind\.", shown.splitlines()[0])
    found, expected = (
        [json.loads(line) for line in ask(path, *words, "--json", stdin=lines)[1].splitlines()]
        for path in (export, run)
    )
    assert [list(answer) for answer in found] == [list(answer) for answer in expected]
    assert [answer["id"] for answer in found] == ["0", "k7"]
    for one, other in zip(found, expected, strict=True):
        assert one["probabilities"] == pytest.approx(other["probabilities"], abs=1e-5)


@pytest.mark.slow
def test_a_question_is_answered_from_a_passage(folders, ask, tiny_corpus):
    export = folders("spans_or_none")[1]
    code, shown, _ = ask(export / "2", tiny_corpus[0], *QUESTION)
    (answer,) = Predictor(export).answer({"context": tiny_corpus[0], "question": "Who left?"})
    assert code == 0
    assert shown == f"{answer.text or '(no answer)'}  {100 * answer.probability:.1f} %  Who left?\n"


def test_neither_run_nor_training_file_is_needed(folders, ask, tmp_path):
    moved = shutil.copytree(folders("classification")[1], tmp_path / "elsewhere")
    record = json.loads((moved / "2" / "export.json").read_text())
    record["task"]["config"]["train"] = "/nowhere/train.tsv"
    (moved / "2" / "export.json").write_text(json.dumps(record))
    code, shown, _ = ask(moved, "Rain.", "--pair", "Wind.", "--json")
    (answer,) = json.loads(shown)
    assert code == 0
    assert answer == Predictor(moved).answer({"text": "Rain.", "pair": "Wind."})[0]._asdict()


def test_an_older_export_without_kind_is_taken_for_what_its_run_was(tmp_path, ask):
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "export.json").write_text('{"step": 1, "run": {"kind": "pretraining"}}')
    code, _, shown = ask(tmp_path, "a [MASK]", "--pair", "b")
    assert code == 2 and "`--pair` must not be given for a pre-trained model" in shown
