"""`albert-keras predict` with fine-tuned models: arguments, stdin, files, and mistakes."""

import io
import json
import os
import re
import sys

import pytest

from albert_keras.cli import main
from albert_keras.cli.predict import describe_answer
from albert_keras.config import AlbertConfig
from albert_keras.tasks.examples import (
    ChoiceExample,
    QuestionExample,
    TaggedExample,
    TextExample,
)
from albert_keras.tasks.race.choice_task import ChoiceAnswer
from albert_keras.tasks.squad.span_task import SpanAnswer
from albert_keras.tasks.tagging.tag_task import TagAnswer
from albert_keras.tasks.text_task import ClassAnswer, ScoreAnswer


@pytest.fixture(autouse=True)
def quiet_again(monkeypatch):
    """Commands set up logging and TensorFlow's log level for a process of their own."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))


@pytest.fixture(scope="module")
def tuned(tiny_corpus, tiny_tokenizer, tmp_path_factory):
    """Returns the folder of a fine-tuning on pairs, one step of it."""
    from albert_keras.finetuning.config import FinetuneConfig
    from albert_keras.finetuning.finetune import finetune

    folder = tmp_path_factory.mktemp("asked")
    rows = [
        f"{first}\t{second}\t{'yes' if number % 2 else 'no'}"
        for number, (first, second) in enumerate(
            zip(tiny_corpus[:30], tiny_corpus[30:60], strict=True)
        )
    ]
    (folder / "train.tsv").write_text("\n".join(["one\tother\tsame", *rows]) + "\n")
    shape = AlbertConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        embedding_size=16,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    task = {"name": "pair", "train": str(folder / "train.tsv"), "max_seq_length": 24}
    config = FinetuneConfig(
        task=task | {"text": "one", "pair": "other", "label": "same"},
        training={"steps": 1, "batch_size": 4, "precision": "float32", "peak_tflops": 1.0},
    )
    out = folder / "out"
    finetune("random", out, config, albert_config=shape, tokenizer=tiny_tokenizer)
    return out


@pytest.fixture
def ask(tuned, monkeypatch, capsys):
    """Returns a function that asks by command and returns what is printed."""

    def ask(*words, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        capsys.readouterr()
        assert main(["predict", str(tuned), *map(str, words)]) == 0
        return capsys.readouterr().out

    return ask


def test_a_pair_is_answered_in_a_line(ask):
    shown = ask("Rain.", "Snow.", "--pair", "Wind.").splitlines()
    assert len(shown) == 2
    assert re.fullmatch(r"(yes|no)  \d\d\.\d %  Rain\. \| Wind\.", shown[0])
    assert shown[1].endswith("  Snow. | Wind.")


def test_json_holds_all_probabilities(ask):
    (answer,) = json.loads(ask("Rain.", "--pair", "Wind.", "--json"))
    assert answer["id"] == "0" and set(answer["probabilities"]) == {"no", "yes"}
    assert answer["probability"] == max(answer["probabilities"].values())


def test_lines_of_stdin_are_texts_or_objects(ask):
    lines = b'\xef\xbb\xbfRain.\r\n\n{"text": "Rain.", "pair": "Fog.", "id": "k7"}\n{"text": "A"}\n'
    answers = json.loads(ask("--pair", "Wind.", "--json", stdin=lines))
    assert [answer["id"] for answer in answers] == ["0", "k7", "2"]
    for answer, pair in zip(answers, ("Wind.", "Fog."), strict=False):
        (alone,) = json.loads(ask("Rain.", "--pair", pair, "--json"))
        assert answer["probabilities"] == pytest.approx(alone["probabilities"], abs=1e-6)


def test_a_text_is_taken_as_it_stands(ask):
    assert ask("{braces}", "--pair", "{").endswith("{braces} | {\n")


def test_a_file_is_answered_and_written(ask, tmp_path):
    (tmp_path / "new.tsv").write_text("body\treply\nRain.\tWind.\n")
    columns = ["--text-column", "body", "--pair-column", "reply"]
    shown = ask("--file", tmp_path / "new.tsv", *columns)
    assert shown == ask("Rain.", "--pair", "Wind.")
    shown = ask("--file", tmp_path / "new.tsv", *columns, "--out", tmp_path / "out")
    assert shown == f"1 answer: {tmp_path}/out/predictions-new.jsonl\n"


def test_a_split_is_answered_by_several_models(ask, tuned):
    alone, together = ask("--split", "dev"), ask("--split", "dev", "--with", tuned, "--all-seeds")
    assert alone == together and alone.count("|") > 0


MISTAKES = {
    "no pair": (["Rain."], b"", "`pair`"),
    "blank": ([" ", "--pair", "Wind."], b"", "`text` must be a text. It is blank"),
    "nothing": ([], b"\n \n", "There is nothing to process"),
    "broken object": (
        [],
        b'{"text": "a", "pair": "b"}\n\n{"text": "a"\n',
        "Line 3 of stdin starts with { but is not a valid JSON object",
    ),
    "other bytes": ([], b"Rain.\ncaf\xe9\n", "Line 2 of stdin is not UTF-8. Received: 0xe9"),
    "half a pair": ([], b'{"text": "\\ud800", "pair": "b"}\n', "half a surrogate pair"),
    "wrong object": ([], b'{"text": "a", "pair": "b"}\n{"text": 3}\n', "Input 2 of 2"),
    "id twice": (
        [],
        b'{"text": "a", "pair": "b", "id": 1}\n' * 2,
        "Inputs must have different ids. Received twice: '1'",
    ),
    "question": (
        ["Rain.", "--question", "Who?"],
        b"",
        r"An example of pair must have `text` and `pair` \(--pair\). Received: context, question",
    ),
    "export's": (["Rain.", "--then", "Wind."], b"", "`--then` requires an export"),
    "export's number": (["Rain.", "--top-k", "3"], b"", "`--top-k` requires an export"),
    "text and file": (["Rain.", "--file", "a.tsv"], b"", "`TEXT` must not be given with"),
    "pair and file": (["--pair", "b", "--file", "a.tsv"], b"", "`--pair` must not be given"),
    "file and split": (["--split", "dev", "--file", "a.tsv"], b"", "Received: file and split"),
    "no file": (["--file", "nowhere.tsv"], b"", "`nowhere.tsv` cannot be read"),
    "spreadsheet": (["--file", "a.xlsx"], b"", "must end in .tsv, .csv or .jsonl"),
    "unknown split": (["--split", "test"], b"", "`test` of pair is unknown"),
    "column of nothing": (["a", "--pair", "b", "--text-column", "c"], b"", "require `file`"),
    "folder of nothing": (["a", "--pair", "b", "--data-dir", "c"], b"", "requires `split`"),
    "unwritable": (["a", "--pair", "b", "--out", "/proc/x"], b"", "cannot be written"),
    "no other": (["a", "--pair", "b", "--with", "nowhere"], b"", "`nowhere` must be the folder"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_gets_one_short_message(mistake, tuned, monkeypatch, capsys):
    words, stdin, message = MISTAKES[mistake]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
    assert main(["predict", str(tuned), *words]) == 2
    shown = capsys.readouterr().err
    assert re.search(message, shown) and len(shown.splitlines()) <= 5


@pytest.mark.parametrize("option", ["--pair", "--file", "--text-column", "--data-dir", "--with"])
def test_an_export_takes_no_options_of_tasks(option, tmp_path, capsys):
    (tmp_path / "1").mkdir()
    assert main(["predict", str(tmp_path), "a [MASK]", option, "b"]) == 2
    shown = capsys.readouterr().err
    reason = f"requires a fine-tuned model: `{tmp_path}` is a pre-trained export."
    assert shown == f"error: `{option}` {reason}\n"


def test_neither_export_nor_fine_tuning(tmp_path, tiny_run, capsys):
    assert main(["predict", str(tmp_path), "a"]) == 2
    assert "contains no exported model and no fine-tuning" in capsys.readouterr().err
    assert main(["predict", f"{tmp_path}/nowhere", "a"]) == 2
    assert f"The folder `{tmp_path}/nowhere` does not exist" in capsys.readouterr().err
    assert main(["predict", str(tiny_run), "a"]) == 2
    assert "must be a fine-tuned run. Received: a run of pretraining" in capsys.readouterr().err


SHOWN = [
    (TextExample("0", "a\nb", None), ClassAnswer("0", "no", 0.75, {}), "no  75.0 %  a b"),
    (TextExample("0", "a", "b"), ScoreAnswer("0", 2.5), "  2.500  a | b"),
    (
        TaggedExample("0", ("Ada", "slept")),
        TagAnswer("0", ("Ada", "slept"), ("B-PER", "O"), (0.9, 0.9)),
        "Ada/B-PER slept",
    ),
    (
        ChoiceExample("0", "c", "Who?", ("Ada", "Bob")),
        ChoiceAnswer("0", 1, "Bob", 0.5, (0.5, 0.5)),
        "Bob  50.0 %  Who?",
    ),
    (
        QuestionExample("0", "Who?", "Ada slept."),
        SpanAnswer("0", "Ada", 0.25, 0, 3, None, []),
        "Ada  25.0 %  Who?",
    ),
    (
        QuestionExample("0", "Who?", "It slept."),
        SpanAnswer("0", "", 0.25, None, None, 1.0, []),
        "(no answer)  25.0 %  Who?",
    ),
]


@pytest.mark.parametrize("example, answer, line", SHOWN)
def test_an_answer_is_a_line(example, answer, line):
    assert describe_answer(example, answer) == line
