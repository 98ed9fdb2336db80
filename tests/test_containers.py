"""The recipes of containers are pinned, checked by hashes, and do not run as root."""

import json
import re

import pytest

from albert_keras.serving.kit.server_kit import SERVER_IMAGE
from tests.repository import ROOT, needs_repository

pytestmark = needs_repository

FOLDER = ROOT / "docs" / "containers"
RECIPES = ("training.Dockerfile", "serving.Dockerfile")


def instructions(text):
    """Returns the instructions of a Dockerfile: list of (name, arguments)."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = "\n".join(lines).replace("\\\n", " ")
    return [tuple(line.split(maxsplit=1)) for line in joined.splitlines()]


def faults(text):
    """Returns what is wrong with a Dockerfile, list of str."""
    found, steps = [], instructions(text)
    last = max(at for at, (name, _) in enumerate(steps) if name == "FROM")
    for name, words in steps:
        if name == "FROM" and not re.match(r"\S+:\d+\.\d+\.\d+\S*( AS \w+)?$", words):
            found.append(f"not pinned: {words}")
        if name == "ADD" or "curl" in words or "wget" in words:
            found.append(f"downloads: {words}")
        if "pip install" in words:
            if not ("--require-hashes" in words or "--no-deps" in words):
                found.append(f"no hashes: {words}")
        if name in ("CMD", "ENTRYPOINT"):
            json.loads(words)  # the form without a shell, which would keep signals
    final = dict(steps[last:])
    if not re.fullmatch(r"[1-9]\d*:[1-9]\d*", final.get("USER", "root")):
        found.append("runs as root")
    if "HEALTHCHECK" not in final:
        found.append("no health check")
    return found


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_follows_the_rules(name):
    assert not faults((FOLDER / name).read_text(encoding="utf-8"))


def test_copied_files_exist_and_are_not_ignored():
    text = (FOLDER / "training.Dockerfile").read_text(encoding="utf-8")
    copied = [
        source
        for name, words in instructions(text)
        if name == "COPY" and not words.startswith("--from")
        for source in words.split()[:-1]
    ]
    kept = (FOLDER / "training.Dockerfile.dockerignore").read_text().splitlines()
    assert len(copied) == 7 and all((ROOT / source).exists() for source in copied)
    assert {line[1:] for line in kept if line.startswith("!")} == set(copied)


def test_the_server_is_that_of_the_server_kit():
    steps = instructions((FOLDER / "serving.Dockerfile").read_text(encoding="utf-8"))
    assert steps[0] == ("FROM", SERVER_IMAGE)
