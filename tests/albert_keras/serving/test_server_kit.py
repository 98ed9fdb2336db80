"""The kit holds settings that the server reads, and no bad paths."""

import os
import shutil

import pytest
import yaml
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from albert_keras.cli import main
from albert_keras.serving.kit.server_kit import SERVER_IMAGE, write_kit
from data_pipeline.errors import InputError
from tests.albert_keras.serving.contract_model import save_contract_model

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

    def written(path=export_folder):
        assert write_kit(tmp_path / "kit", path) == "books"
        return tmp_path / "kit"

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


def test_the_command_prints_what_comes_next(export_folder, tmp_path, capsys):
    kit = tmp_path / "kit"
    assert main(["server-kit", str(export_folder), "--out", str(kit)]) == 0
    files, following, last = capsys.readouterr().out.splitlines()
    assert files.startswith(f"{kit}: .env, README.md, ") and model_of(kit).name == "books"
    assert following == f"next: docker compose --project-directory {kit} up"
    assert last == "then: albert-keras serve-check --rest http://127.0.0.1:8501 --model books"


def test_batches_have_start_values_for_cores(written):
    kit = written()
    lines = (kit / "batching.config").read_text().splitlines()
    assert f"num_batch_threads {{ value: {os.cpu_count()} }}" in lines
    assert "max_batch_size { value: 32 }" in lines
    sizes = [line.split()[1] for line in lines if line.startswith("allowed")]
    assert sizes == ["1", "2", "4", "8", "16", "32"]
    assert '--rest_api_num_threads=64"' in (kit / "compose.yaml").read_text()


def test_compose_publishes_on_loopback_only_and_runs_without_profiler(written):
    kit = written()
    (server,) = yaml.safe_load((kit / "compose.yaml").read_text())["services"].values()
    assert server["ports"] == ["127.0.0.1:8501:8501"]
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


@pytest.mark.parametrize("name", ['a"b', "a,b", "a:b", "a\nb", "a`b", "a%b"])
def test_a_path_that_settings_could_not_hold_is_refused(export_folder, written, tmp_path, name):
    shutil.copytree(export_folder / "1", tmp_path / name / "1")
    with pytest.raises(InputError, match="path of an export"):
        written(tmp_path / name)
