"""Models named `hf://OWNER/NAME`: the client of the hub, and a hub on this computer."""

import hashlib
import http.server
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import threading
from types import SimpleNamespace

import pytest

from albert_keras.formats import hugging_face
from albert_keras.hub import FILES, _check, is_hub_name, shared_name
from data_pipeline.errors import InputError
from tests.albert_keras.formats.random_weights import pretraining_weights

NAME = "hf://someone/small"
DETECT = """
import sys
from albert_keras.formats.detection import detect
from data_pipeline.errors import InputError
for name in sys.argv[1:]:
    try:
        place = detect(name)
        print(place, place.path)
    except InputError as error:
        print("error:", error)
"""
#: All ways from a name to weights and tokenizers, and what is recorded of them.
USE = """
import sys
import numpy as np
from pathlib import Path
from albert_keras import AlbertEncoder, AlbertPreprocessor, convert, load_tokenizer, open_weights
name, folder, target = sys.argv[1:]
opened, same = open_weights(name), open_weights(folder)
assert opened.digest == same.digest and opened.tokenizer.digest == same.tokenizer.digest
assert load_tokenizer(Path(name)).digest == same.tokenizer.digest
assert AlbertPreprocessor.from_preset(name).tokenizer.digest == same.tokenizer.digest
encoders = [AlbertEncoder.from_preset(one).get_weights() for one in (name, folder)]
assert all(map(np.array_equal, *encoders))
print(opened.describe()["origin"], convert(name, target).source)
"""


@pytest.fixture
def models(shared_data, tmp_path, word_pieces):
    """Returns a folder of models, which the hub has, with one small BERT."""
    folder = tmp_path / "hub" / "someone" / "small"
    folder.mkdir(parents=True)
    sizes = {"vocab_size": len(word_pieces.splitlines()), "embedding_size": 8, "sharing": "none"}
    settings = b'{"tokenizer_class": "BertTokenizer", "do_lower_case": true}'
    hugging_face.write(pretraining_weights(**sizes), folder)
    (folder / "vocab.txt").write_bytes(word_pieces)
    (folder / "tokenizer_config.json").write_bytes(settings)
    (folder / "modeling.py").write_text("raise SystemExit('code of strangers runs')")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    return tmp_path / "hub"


@pytest.fixture
def hub(models, shared_data, monkeypatch):
    """Runs a hub with the models; returns its class, whose `cuts` ends answers in the middle."""
    path = shared_data.parent / "reference" / "hub" / "server.py"
    if not path.is_file():
        pytest.skip(f"no hub at {path}")
    monkeypatch.setattr(sys, "argv", [str(path), str(models), "0"])
    spec = importlib.util.spec_from_file_location("hub_server", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    class Hub(module.Hub):
        cuts = False
        asked = []

        def _send(self, status, body, with_body, headers):
            self.asked.append(self.path)
            if self.cuts and with_body and self.path.endswith(".safetensors"):
                headers = {"Content-Length": str(len(body))} | headers
                body, self.close_connection = body[: len(body) // 2], True
            super()._send(status, body, with_body, headers)

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    Hub.address = f"http://127.0.0.1:{server.server_address[1]}"
    yield Hub
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def start(hub, tmp_path):
    """Returns a function that starts Python with a cache of its own, as a user would."""
    variables = {"HF_HOME": str(tmp_path / "home"), "HF_ENDPOINT": hub.address}

    def start(script, *arguments, **more):
        env = os.environ | variables | {"HF_HUB_DISABLE_PROGRESS_BARS": "1"} | more
        command = [sys.executable, "-c", script, *map(str, arguments)]
        return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True)

    return start


@pytest.fixture
def detect(start):
    """Returns a function that returns a line for each name: the place, or the error."""
    return lambda *names, **more: start(DETECT, *names, **more).communicate()[0].splitlines()


def test_names_of_the_hub_are_told_from_paths():
    assert is_hub_name(NAME) and not is_hub_name("albert-mini-en") and not is_hub_name("a/hf:/b")
    assert shared_name(NAME) == NAME and shared_name("/home/me/runs/books") == "books"


def test_a_model_is_downloaded_once_without_code_or_pickles(detect, hub, models):
    (found,) = detect(NAME)
    name, folder = found.split()
    commit = name.removeprefix(f"{NAME}@")
    assert len(commit) == 40 and folder.endswith(commit)
    names = {"config.json", "model.safetensors", "tokenizer_config.json", "vocab.txt"}
    assert set(os.listdir(folder)) == names
    hub.asked.clear()
    assert detect(name, f"{NAME}@main") == [found, found]
    assert not any("/resolve/" in path for path in hub.asked)
    assert detect(NAME, HF_HUB_OFFLINE="1") == detect(NAME, HF_ENDPOINT="http://127.0.0.1:1")
    (models / "someone" / "small" / "added.json").write_text("{}")  # another commit
    other, same = detect(NAME, name)
    assert same == found and other.split()[0] != name


def test_models_of_the_hub_are_those_of_a_folder(start, models, tmp_path):
    folder = models / "someone" / "small"
    origin, source = start(USE, NAME, folder, tmp_path / "ours").communicate()[0].split()
    assert origin == source and origin.startswith(f"{NAME}@")
    record = json.loads((tmp_path / "ours" / "conversion.json").read_text())
    assert record["source"] == origin


def test_an_interrupted_download_is_never_half_a_model(detect, hub):
    hub.cuts = True
    (error,) = detect(NAME, HF_HUB_DOWNLOAD_TIMEOUT="2")
    assert error.startswith("error:") and "Repeat the command" in error
    (error,) = detect(NAME, HF_HUB_OFFLINE="1")
    assert "cannot be reached, and the cache of huggingface_hub does not have all" in error
    hub.cuts = False
    assert detect(NAME)[0].startswith(f"{NAME}@")


def test_a_file_that_was_changed_in_the_cache_is_named(detect, tmp_path):
    folder = detect(NAME)[0].split()[1]
    with open(f"{folder}/vocab.txt", "ab") as file:
        file.write(b"more\n")
    (error,) = detect(NAME)
    assert f"`{folder}/vocab.txt` is damaged" in error and "Remove" in error
    os.remove(os.path.realpath(f"{folder}/vocab.txt"))
    assert detect(NAME)[0].split()[1] == folder


def test_digests_are_those_of_git_and_of_large_files(tmp_path):
    content = b"{}"
    large = SimpleNamespace(sha256=hashlib.sha256(content).hexdigest())
    by_git = hashlib.sha1(b"blob 2\0{}").hexdigest()
    digests = [(None, by_git), (large, "another"), (SimpleNamespace(sha256=by_git), by_git)]
    files = [
        SimpleNamespace(path=f"{number}.json", lfs=lfs, blob_id=blob_id)
        for number, (lfs, blob_id) in enumerate(digests)
    ]
    for file in files:
        (tmp_path / file.path).write_bytes(content)
    (tmp_path / "onnx.bin").write_bytes(b"of another program")
    other = SimpleNamespace(path="onnx.bin", lfs=None, blob_id="another")
    _check(tmp_path, [*files[:2], other], NAME)
    with pytest.raises(InputError, match="2.json` is damaged"):
        _check(tmp_path, files, NAME)


def test_what_cannot_be_used_is_one_error(detect, models, tmp_path):
    for name, files in {
        "pickle": ["config.json", "pytorch_model.bin"],
        "text": ["README.md"],
    }.items():
        (models / "someone" / name).mkdir()
        for file in files:
            (models / "someone" / name / file).write_text("{}")
    names = (
        "hf://someone/none",
        f"{NAME}@v9",
        "hf://small",
        "hf://someone/pickle",
        "hf://someone/text",
    )
    parts = (
        "There is no model `hf://someone/none`, or it is private",
        f"There is no revision `v9` of `{NAME}`",
        "must be given as hf://OWNER/NAME",
        "Weights that are pickles (pytorch_model.bin) are not",
        f"none of the files that are read here: {FILES[0]}",
    )
    errors = detect(*names)
    assert len(errors) == len(parts)
    for error, part in zip(errors, parts, strict=True):
        assert error.startswith("error: ") and part in error
    (error,) = detect(NAME, HF_ENDPOINT="http://127.0.0.1:1")
    assert f"`{NAME}` cannot be reached" in error
    shutil.rmtree(tmp_path / "home")
    assert detect("albert-mini-en")[0].startswith("albert-mini-en")
    assert not (tmp_path / "home").exists()
