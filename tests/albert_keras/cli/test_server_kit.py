"""`albert-keras server-kit` as a user runs it."""

import json
import shutil

import pytest
from google.protobuf import text_format
from tensorflow_serving.config import model_server_config_pb2

from albert_keras.cli import main
from tests.albert_keras.serving.contract_model import save_contract_model


@pytest.fixture(scope="module")
def export_folder(tmp_path_factory):
    """Returns a folder with versions 41 and 42."""
    base = tmp_path_factory.mktemp("kit exports") / "books"
    base.mkdir()
    save_contract_model(base / "41")
    shutil.copytree(base / "41", base / "42")
    return base


def config_of(kit):
    text = (kit / "models.config").read_text()
    (config,) = text_format.Parse(
        text, model_server_config_pb2.ModelServerConfig()
    ).model_config_list.config
    return config


def test_a_kit_has_the_name_of_its_folder_and_the_next_commands_are_printed(
    export_folder, tmp_path, capsys
):
    assert main(["server-kit", str(export_folder), "--out", f"{tmp_path / 'kit'}"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{tmp_path / 'kit'}: .env, README.md, ")
    assert lines[1] == f"next: docker compose --project-directory {tmp_path / 'kit'} up"
    assert lines[2] == ("then: albert-keras serve-check --rest http://127.0.0.1:8501 --model books")
    config = config_of(tmp_path / "kit")
    assert config.name == "books" and config.model_version_policy.latest.num_versions == 1


def test_all_settings_reach_the_kit(export_folder, tmp_path, capsys):
    kit = tmp_path / "kit"
    words = ["--name", "shelf", "--cores", "3", "--memory-gib", "7", "--max-batch-size", "48"]
    words += ["--rest-port", "9001", "--json"]
    assert main(["server-kit", str(export_folder), "--out", str(kit), *words]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["path"] == str(kit) and result["model"] == "shelf"
    assert result["files"] == sorted(path.name for path in kit.iterdir())
    compose = (kit / "compose.yaml").read_text()
    assert config_of(kit).name == "shelf"
    for part in ("mem_limit: 7g", "cpus: 3", "127.0.0.1:9001:8501"):
        assert part in compose
    assert "max_batch_size { value: 48 }" in (kit / "batching.config").read_text()


def test_the_folder_of_a_version_makes_a_kit_of_that_version(export_folder, tmp_path, capsys):
    assert main(["server-kit", str(export_folder / "41"), "--out", f"{tmp_path / 'kit'}"]) == 0
    assert "--model books" in capsys.readouterr().out
    config = config_of(tmp_path / "kit")
    assert config.name == "books" and list(config.model_version_policy.specific.versions) == [41]
