"""The kit holds settings that the server reads, lines that its model answers, and no bad names."""

import json
import os
import shutil

import numpy as np
import pytest
import yaml
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from albert_keras.cli import main
from albert_keras.serving.kit.server_kit import SERVER_IMAGE, write_kit
from albert_keras.serving.predictor import Predictor
from data_pipeline.errors import InputError
from tests.albert_keras.serving.contract_model import save_contract_model
from tests.benchmarks.measure import in_new_process

FILES = {
    "models.config",
    "batching.config",
    "monitoring.config",
    "compose.yaml",
    "ready.sh",
    ".env",
}


@pytest.fixture(scope="module")
def export_folder(tmp_path_factory):
    """Returns a folder with versions 1, 2 and 5."""
    base = tmp_path_factory.mktemp("kit exports") / "books"
    base.mkdir()
    save_contract_model(base / "1")
    for version in ("2", "5"):
        shutil.copytree(base / "1", base / version)
    return base


@pytest.fixture
def written(export_folder, tmp_path):
    """Returns a function that writes a kit and returns its folder."""

    def written(path=export_folder, name="books", **options):
        return write_kit(tmp_path / "kit", name, path, **options)

    return written


def model_of(kit):
    """Returns the ModelConfig of a kit."""
    text = (kit / "models.config").read_text()
    config = text_format.Parse(text, model_server_config_pb2.ModelServerConfig())
    (model,) = config.model_config_list.config
    return model


def test_a_kit_is_complete_and_serves_the_newest_version(written):
    kit = written()
    assert {path.name for path in kit.iterdir()} == FILES | {"README.md"}
    for path in kit.iterdir():
        assert "%{" not in path.read_text(), path
    described = (kit / "README.md").read_text()
    assert {name for name in FILES if name not in described} == set()
    model = model_of(kit)
    assert (model.name, model.base_path) == ("books", "/models/books")
    assert model.model_platform == "tensorflow"
    assert model.model_version_policy.latest.num_versions == 1


def test_the_folder_of_a_version_serves_that_version(export_folder, written):
    model = model_of(written(export_folder / "2"))
    assert list(model.model_version_policy.specific.versions) == [2]
    assert model.base_path == "/models/books"


def test_the_command_takes_all_settings_and_prints_what_comes_next(export_folder, tmp_path, capsys):
    kit = tmp_path / "kit"
    assert main(["server-kit", str(export_folder), "--out", str(kit)]) == 0
    files, following, last = capsys.readouterr().out.splitlines()
    assert files.startswith(f"{kit}: .env, README.md, ") and model_of(kit).name == "books"
    assert following == f"next: docker compose --project-directory {kit} up"
    assert last == "then: albert-keras serve-check --rest http://127.0.0.1:8501 --model books"
    kit = tmp_path / "other"
    words = ["--name", "shelf", "--max-batch-size", "48", "--rest-port", "9001", "--json"]
    assert main(["server-kit", str(export_folder), "--out", str(kit), *words]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["path"], result["model"]) == (str(kit), "shelf") and model_of(
        kit
    ).name == "shelf"
    assert result["files"] == sorted(path.name for path in kit.iterdir())
    assert "127.0.0.1:9001:8501" in (kit / "compose.yaml").read_text()
    assert "max_batch_size { value: 48 }" in (kit / "batching.config").read_text()


@pytest.mark.parametrize("largest, sizes", [(8, [1, 2, 4, 8]), (24, [1, 2, 4, 8, 16, 24])])
def test_batches_have_start_values_for_cores(written, largest, sizes):
    kit = written(max_batch_size=largest)
    lines = (kit / "batching.config").read_text().splitlines()
    assert f"num_batch_threads {{ value: {os.cpu_count()} }}" in lines
    assert f"max_batch_size {{ value: {largest} }}" in lines
    assert [line for line in lines if line.startswith("allowed")] == [
        f"allowed_batch_sizes: {size}" for size in sizes
    ]
    assert f'--rest_api_num_threads={2 * largest}"' in (kit / "compose.yaml").read_text()


def test_compose_publishes_on_loopback_only_and_runs_without_profiler(written):
    kit = written(rest_port=9001)
    (server,) = yaml.safe_load((kit / "compose.yaml").read_text())["services"].values()
    assert server["ports"] == ["127.0.0.1:9001:8501"]
    assert "--enable_profiler=false" in server["command"]
    given = {flag.partition("=")[2] for flag in server["command"] if "/kit/" in flag}
    assert given == {f"/kit/{name}" for name in FILES if name.endswith(".config")}
    # Of a model of a few kB: two versions.
    assert (server["image"], server["mem_limit"]) == (SERVER_IMAGE, "3g")
    assert server["cpus"] == os.cpu_count()
    assert server["healthcheck"]["test"] == ["CMD", "bash", "/kit/ready.sh"]
    model, kit_volume = server["volumes"]
    assert (model["source"], model["target"]) == ("${MODEL_FOLDER}", "/models/books")
    assert model["read_only"] and kit_volume["read_only"] and server["cap_drop"] == ["ALL"]


def pooled_outputs():
    """Returns the pooled outputs of a long text, of another one, and of both at once."""
    predictor = Predictor("albert-mini-en")
    texts = ["A short text.", "the whale was seen from the ship " * 10]
    return [predictor.encode(given) for given in (texts[1:], texts[:1], texts)]


@pytest.mark.slow
def test_prepared_kernels_answer_each_text_as_others_do(written, monkeypatch):
    """Products must not keep what depends on the text: TensorFlow does not check it."""
    (server,) = yaml.safe_load((written() / "compose.yaml").read_text())["services"].values()
    (setting,) = (name for name, value in server["environment"].items() if value.startswith("$"))
    monkeypatch.setenv(setting, "1")
    for found, expected in zip(in_new_process(pooled_outputs), pooled_outputs(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_settings_that_cannot_be_are_refused(export_folder, written, tmp_path, capsys):
    with pytest.raises(InputError, match="name of a model"):
        written(name="../books")
    for option, value in (("--max-batch-size", 7), ("--rest-port", 65536)):
        words = ["server-kit", str(export_folder), "--out", str(tmp_path / "kit")]
        assert main([*words, option, str(value)]) == 2
        assert f"Invalid value for '{option}'" in capsys.readouterr().err
    assert not (tmp_path / "kit").exists()


@pytest.mark.parametrize("name", ['a"b', "a,b", "a:b", "a\nb", "a`b", "a%b"])
def test_a_path_that_settings_could_not_hold_is_refused(export_folder, written, tmp_path, name):
    shutil.copytree(export_folder / "1", tmp_path / name / "1")
    with pytest.raises(InputError, match="path of an export"):
        written(tmp_path / name)
