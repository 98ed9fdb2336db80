"""`albert-keras serve-check` as a user gives it."""

import json
import os
import re
import subprocess
import sys

import pytest
import tensorflow as tf

from albert_keras.cli import main
from albert_keras.config import AlbertConfig
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.serving.check.golden_cases import GOLDEN_CASES, GRPC_CASES, applies, names_of
from albert_keras.serving.client.rest_client import Signature
from albert_keras.serving.graph.task_models import build_task_model
from albert_keras.serving.graph.text_model import TextModel
from albert_keras.serving.saved_model.signature_methods import set_method_names
from tests.albert_keras.serving.contract.model import save_contract_model
from tests.albert_keras.serving.contract.process import contract_process
from tests.albert_keras.serving.real_server import model_server
from tests.albert_keras.tasks.small_tasks import SETTINGS, build_model, make_task

KINDS = ("pretraining", *SETTINGS)


@pytest.fixture(autouse=True)
def quiet_again(monkeypatch):
    """Commands set TensorFlow's log level for a process of their own."""
    monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", os.environ.get("TF_CPP_MIN_LOG_LEVEL", "2"))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    base = tmp_path_factory.mktemp("check") / "books"
    base.mkdir()
    save_contract_model(base / "1")
    models = {"books": {"base_path": base, "labels": {"stable": 1}}}
    with model_server(models) as server:
        yield server


@pytest.fixture(scope="module")
def module_of(tiny_tokenizer):
    """Returns a function of a kind that makes its model over strings."""
    shape = AlbertConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
    )

    def module_of(kind):
        if kind == "pretraining":
            model = AlbertForPretraining(shape, dtype="float32")
            return TextModel(model, tiny_tokenizer, 40)
        task = make_task(kind)
        return build_task_model(build_model(kind, shape, task.num_outputs), tiny_tokenizer, task)

    return module_of


def signature_of(name, function):
    specs = function.input_signature
    inputs = {one.name: (f"DT_{one.dtype.name.upper()}", (-1,) * one.shape.rank) for one in specs}
    method = name if name in ("classify", "regress") else "predict"
    return Signature(method, inputs, {"one": None, "two": None})


@pytest.mark.parametrize("command", ["serve-check", "server-kit"])
def test_help_shows_an_example_of_options_that_exist(command, capsys):
    assert main([command, "--help"]) == 0
    example, options = capsys.readouterr().out.split("Example:")[1].split("Options:")
    assert f"albert-keras {command} " in example
    for option in re.findall(r"--[a-z-]+", example):
        assert f"{option} " in options


def test_the_answers_and_the_speed_of_both_interfaces_are_printed(server, capsys):
    words = ["--rest", server.url, "--grpc", server.grpc_target, "--model", "books"]
    words += ["--requests", "10", "--clients", "2", "--label", "stable"]
    assert main(["serve-check", *words]) == 0
    told = capsys.readouterr().out.splitlines()
    assert told[0] == f"{server.url}, {server.grpc_target}, books version 1"
    asked = len(GOLDEN_CASES + GRPC_CASES) - 2
    assert told[1] == f"golden cases: {asked} of {asked} passed"
    assert told[2] == "skipped: 2, because the model has no lists"
    for line, interface in ((told[3], "REST"), (told[5], "gRPC")):
        assert line.startswith(f"10 requests to serving_default over {interface} from 2 clients: ")
    for line in (told[4], told[6]):
        assert all(mark in line for mark in ("median ", "90 % ", "99 % ", "slowest "))


def test_one_interface_can_be_checked_alone(server, capsys):
    for words, key, other in (
        (["--rest", server.url], "load", "grpc_load"),
        (["--grpc", server.grpc_target], "grpc_load", "load"),
    ):
        words += ["--model", "books", "--requests", "4", "--json"]
        assert main(["serve-check", *words]) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["ok"] and result["version"] == 1 and result[other] is None
        assert result[key]["requests"] == 4 and result[key]["throughput"] > 0
        cases = GOLDEN_CASES if key == "load" else GRPC_CASES
        assert [case["name"] for case in result["cases"]] == [case.name for case in cases]


def test_texts_of_a_file_are_sent_and_failures_have_an_exit_code(server, tmp_path, capsys):
    (tmp_path / "texts").write_text("a\nfail\n\n")
    words = ["--rest", server.url, "--grpc", server.grpc_target, "--model", "books", "--json"]
    words += ["--texts", f"{tmp_path / 'texts'}", "--clients", "1", "--requests", "6"]
    assert main(["serve-check", *words]) == 4
    result = json.loads(capsys.readouterr().out)
    assert not result["ok"] and result["load"]["failures"] == result["grpc_load"]["failures"] == 2
    assert "no fail" in result["load"]["first_failure"]


def test_a_wrong_answer_has_an_exit_code_and_is_reported(server, capsys):
    words = ["--rest", server.url, "--model", "books", "--requests", "0", "--label", "no_label"]
    assert main(["serve-check", *words]) == 4
    assert "failed: a label: expected status 200, received 400" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, says",
    [
        ([], "address of the REST interface, of the gRPC interface, or both"),
        (["--rest", "http://127.0.0.1:1", "--timeout", "0"], "`timeout`"),
        (["--rest", "127.0.0.1:1"], "address of a server"),
        (["--grpc", "http://a:1"], "address of a gRPC server"),
        (["--rest", "http://127.0.0.1:1", "--clients", "0"], "clients"),
        (["--rest", "http://127.0.0.1:1", "--texts", "nowhere"], "nowhere"),
        (["--rest", "http://127.0.0.1:1", "--timeout", "0.2"], "gave no answer (UNAVAILABLE)"),
    ],
)
def test_a_mistake_is_one_error(words, says, capsys):
    assert main(["serve-check", "--model", "books", *words]) == 2
    done = capsys.readouterr()
    assert not done.out and done.err.lower().count("error:") == 1 and says in done.err


@pytest.mark.parametrize("content", [b"", b"\n \n", b"a\xff\n"])
def test_a_file_without_texts_is_refused(content, tmp_path, capsys):
    (tmp_path / "texts").write_bytes(content)
    words = ["--rest", "http://127.0.0.1:1", "--model", "books", "--texts", f"{tmp_path}/texts"]
    assert main(["serve-check", *words]) == 2
    assert f"{tmp_path}/texts" in capsys.readouterr().err


def test_rest_alone_loads_no_tensorflow(server):
    program = (
        "import sys; from albert_keras.cli import main; words = ['--rest', sys.argv[1]]; "
        "assert main(['serve-check', '--model', 'books', '--requests', '2', *words]) == 0; "
        "assert 'tensorflow' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, server.url], check=True, capture_output=True)


@pytest.mark.parametrize("kind", KINDS)
def test_an_export_of_every_kind_is_checked_by_forty_cases_or_more(kind, module_of):
    module = module_of(kind)
    functions = {**module.functions, **module.token_functions}
    names = names_of({name: signature_of(name, one) for name, one in functions.items()})
    assert sum(applies(case, names) for case in GOLDEN_CASES) >= 40


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_an_export_of_every_kind_answers_as_it_should(kind, module_of, tmp_path, capsys):
    module = module_of(kind)
    signatures = {**module.functions, **module.token_functions}
    tf.saved_model.save(module, str(tmp_path / "model" / "1"), signatures)
    set_method_names(tmp_path / "model" / "1")
    with contract_process(tmp_path / "model") as server:
        words = ["--rest", server.url, "--grpc", server.grpc_target, "--model", "model"]
        assert main(["serve-check", *words, "--requests", "40", "--timeout", "60"]) == 0
    told = capsys.readouterr()
    print(kind, told.out)
