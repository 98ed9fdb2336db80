"""`albert-keras serve` as a user runs it."""

import json
import signal
import subprocess
import sys
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest

from albert_keras.cli import main
from albert_keras.serving.local import local_server
from tests.albert_keras.serving.contract_model import ContractModel


@pytest.fixture
def served(monkeypatch):
    """Returns a list of what servers were made with; they are ready at once and end."""
    calls = []

    class Server:
        url = "http://127.0.0.1:8501/"
        models = {"books": SimpleNamespace(name="books", version=3)}

        def __init__(self, *arguments):
            calls.append(arguments)
            self.before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]

        def __enter__(self):
            return self

        def __exit__(self, *_):
            for number, handler in zip((signal.SIGINT, signal.SIGTERM), self.before, strict=True):
                assert signal.getsignal(number) != handler
                signal.signal(number, handler)

        def run(self):
            pass

    monkeypatch.setattr(local_server, "LocalServer", Server)
    return calls


def test_the_address_is_printed(served, capsys):
    assert main(["serve", "a", "b", "--port", "0", "--allow-host", "box"]) == 0
    ((models, *others),) = served
    assert [str(model) for model in models] == ["a", "b"]
    assert others == ["127.0.0.1", 0, False, ["box"]]
    first, second = capsys.readouterr().out.splitlines()
    assert first == "serving books (version 3): http://127.0.0.1:8501/"
    assert second == "A version that appears later, and a change of a folder, needs a new start."


#: The command, with a model that takes a second and a half for an answer.
SLOW = """
import time
from albert_keras.cli import main
from albert_keras.serving.local import served_models

answer = served_models.ServedModel.answer

def slow_answer(*arguments):
    print("begun", flush=True)
    time.sleep(1.5)
    return answer(*arguments)

served_models.ServedModel.answer = slow_answer
raise SystemExit(main())
"""


@pytest.mark.slow
def test_a_signal_ends_a_server_after_the_answers_in_progress(tmp_path):
    import tensorflow as tf

    module = ContractModel(1.0)
    signatures = {"serving_default": module.signatures()["single"]}
    tf.saved_model.save(module, str(tmp_path / "books" / "1"), signatures=signatures)
    command = [sys.executable, "-c", SLOW, "serve", str(tmp_path / "books"), "--port", "0"]
    with (
        ThreadPoolExecutor(1) as executor,
        subprocess.Popen(
            [*command, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process,
    ):
        try:
            url = json.loads(process.stdout.readline())["url"]
            request = urllib.request.Request(
                f"{url}v1/models/books:predict",
                b'{"instances": ["ab"]}',
                {"Content-Type": "application/json"},
            )
            answer = executor.submit(lambda: urllib.request.urlopen(request, timeout=20).read())
            assert process.stdout.readline() == "begun\n"
            process.send_signal(signal.SIGTERM)
            assert json.loads(answer.result(60)) == {"predictions": [2]}
            assert process.wait(20) == 143
        finally:
            process.kill()
        assert "Traceback" not in process.stderr.read()
