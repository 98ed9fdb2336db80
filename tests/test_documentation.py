"""The documents name files that exist."""

import re

import pytest

from tests.repository import ROOT, needs_repository

pytestmark = needs_repository

PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page):
    links = re.findall(r"\]\((?!https?:)([^)#]+)", page.read_text(encoding="utf-8"))
    missing = [link for link in links if not (page.parent / link).exists()]
    assert not missing


def test_the_tour_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tour = text[text.index("## A tour") : text.index("## How the code is written")]
    stems = {path.name for path in ROOT.glob("*_*/**/*.py")}
    for name in re.findall(r"`([\w/]+\.py)`", tour):
        folders = [ROOT, ROOT / "albert_keras", ROOT / "data_pipeline"]
        assert any((folder / name).is_file() for folder in folders) or name in stems, name


def test_the_tree_names_folders_that_exist():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    tree = text[text.index("## The tree") :].split("```")[1]
    parents = {}
    for line in tree.splitlines():
        for name in re.findall(r"^ *((?:[\w./]+/ ?)+)(?:  |$)", line):
            depth = (len(line) - len(line.lstrip())) // 4
            for part in name.split():
                folder = (ROOT if depth == 0 else parents[depth - 1]) / part
                assert folder.is_dir(), folder
            parents[depth] = folder
