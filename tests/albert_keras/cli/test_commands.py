"""Commands as a user runs them: help, results, mistakes."""

import errno
import json
import logging
import os
import re
import shutil
from pathlib import Path

import pytest

from albert_keras.cli import main
from albert_keras.cli.output import report_error


@pytest.fixture
def corpus(tmp_path, tiny_corpus):
    path = tmp_path / "corpus.txt"
    path.write_text("\n\n".join(" ".join(tiny_corpus[i : i + 6]) for i in range(0, 348, 6)))
    return path


def test_vocab_reports_the_characters_without_a_piece(tmp_path, capsys):
    (tmp_path / "corpus.txt").write_text("many plain words here " * 5000 + "龘 鱻 鱻")
    command = ["vocab", "--corpus", f"{tmp_path}/corpus.txt", "--size", "85"]
    assert main([*command, "--out", f"{tmp_path}/a"]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1] == (
        "coverage: 99.9966 % of 90,003 characters; unknown: '鱻' 2, '龘' 1; "
        "--required-characters gives them pieces"
    )
    required = ["--required-characters", "鱻§"]
    assert main([*command, *required, "--out", f"{tmp_path}/b", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["characters"] == 90_003 and result["uncovered"] == {"龘": 1}
    assert result["coverage"] == pytest.approx(90_002 / 90_003)
    pieces = (tmp_path / "b" / "tokenizer.vocab").read_text(encoding="utf-8")
    assert "\n§\t" in pieces and "\n%\t" in pieces


@pytest.mark.slow
def test_a_run_is_evaluated_exported_and_used(tiny_run, held_out_records, tmp_path, capsys):
    shutil.copytree(tiny_run, tmp_path / "run")
    run, out = f"{tmp_path}/run", f"{tmp_path}/models/tiny"
    assert main(["evaluate", "--run", run, "--data", str(held_out_records)]) == 0
    assert "chance" in capsys.readouterr().out
    assert main(["export", "--run", run, "--out", out]) == 0
    assert f"{out}/1" in capsys.readouterr().out
    assert main(["predict", out, "The [MASK] left.", "--json", "--top-k", "2"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    assert answer["text"] == "The [MASK] left." and len(answer["masks"][0]) == 2
    assert set(answer["masks"][0][0]) == {"piece", "score"}
    assert main(["predict", out, "It began.", "--then", "It ended.", "--json"]) == 0
    assert 0 < json.loads(capsys.readouterr().out)[0]["in_order"] < 1


def test_an_export_reports_the_loss_of_its_variants(monkeypatch, tmp_path, capsys):
    from albert_keras.serving import publish

    loss = publish.AccuracyLoss(256, 0.992, 0.0021, 0.0511)
    losses = {"bfloat16": loss, "lite int8": loss._replace(agreement=0.5)}

    def export(*arguments, **options):
        called.append((*arguments, options))
        return publish.ExportResult(
            tmp_path / "m" / "1",
            1,
            12,
            10**7,
            "bfloat16",
            6_100_000,
            {"int8": 3_300_000},
            losses,
            tmp_path / "m" / "1.keras",
            ("encode", "fill_mask"),
            {"saved_model_checksum": "0123456789abcdef"},
            None,
        )

    called = []
    monkeypatch.setattr(publish, "export", export)
    (tmp_path / "m").mkdir()
    (tmp_path / "m" / "1.keras").write_bytes(bytes(1000))
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "results.json").touch()  # the folder of a fine-tuning, at first sight
    command = ["export", "--run", f"{tmp_path}/r", "--out", "m", "--precision", "bfloat16"]
    command += ["--lite", "int8"]
    assert main(command) == 0
    given = {"precision": "bfloat16", "lite": ["int8"]}
    assert called[0][-1] == given | {"out": Path("m")}
    shown = capsys.readouterr().out
    assert "bfloat16: 6.1 MB, same answer as float32 for 99.2 %" in shown
    assert "differ by 0.0021 on average and 0.051 at most" in shown
    assert "lite int8: 3.3 MB, same answer as float32 for 50.0 %" in shown
    assert main([*command, "--json"]) == 0
    given = json.loads(capsys.readouterr().out)["losses"]
    assert given == {name: loss._asdict() for name, loss in losses.items()}


def test_debug_shows_the_traceback(tmp_path):
    with pytest.raises(ValueError, match="nowhere"):
        main(["vocab", "--corpus", f"{tmp_path}/nowhere", "--out", f"{tmp_path}/o", "--debug"])


def test_an_internal_error_has_its_own_exit_code(monkeypatch, capsys, tmp_path, corpus):
    def fail(*args, **kwargs):
        raise RuntimeError("broken")

    monkeypatch.setattr("data_pipeline.tokenizers.vocabulary.train_vocabulary", fail)
    assert main(["vocab", "--corpus", str(corpus), "--out", f"{tmp_path}/o"]) == 1
    assert "internal error: RuntimeError: broken" in capsys.readouterr().err


def test_version(capsys):
    assert main(["--version"]) == 0
    assert re.fullmatch(r"albert-keras \d+\.\d+\.\d+\n", capsys.readouterr().out)


def test_a_command_leaves_the_loggers_as_they_were(tmp_path):
    main(["vocab", "--corpus", f"{tmp_path}/nowhere", "--out", f"{tmp_path}/o"])
    logger = logging.getLogger("data_pipeline")
    assert logger.propagate and not logger.handlers and logger.level == logging.NOTSET


def test_a_full_disk_is_one_line_with_the_file_and_what_to_do(capsys):
    error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "run/model.ckpt")
    assert report_error(error, debug=False) == 2
    assert capsys.readouterr().err == (
        "error: The disk is full: `run/model.ckpt` could not be written. Free some space or choose "
        "a folder on another disk.\nAK308: see docs/errors.md\n"
    )
