"""The site of `make docs`: every page is in its navigation, and it needs no network."""

import ast
import os
import re
import subprocess
from pathlib import Path

import pytest
import yaml

import albert_keras
import data_pipeline
from tests.documentation.code_blocks import ROOT

SITE = ROOT / "docs" / "site"


def settings():
    return yaml.safe_load((SITE / "mkdocs.yml").read_text(encoding="utf-8"))


def pages_elsewhere():
    """Returns page -> file, from the source of the hook, which imports MkDocs."""
    tree = ast.parse((SITE / "pages_elsewhere.py").read_text(encoding="utf-8"))
    (pages,) = [
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "PAGES"
    ]
    return ast.literal_eval(pages)


def pages_of(navigation):
    for entry in navigation:
        (value,) = entry.values()
        yield from [value] if isinstance(value, str) else pages_of(value)


def test_every_page_is_in_the_navigation_once():
    docs = ROOT / "docs"
    pages = [str(path.relative_to(docs)) for path in docs.rglob("*.md")]
    named = sorted(pages_of(settings()["nav"]))
    assert named == sorted([*pages, *pages_elsewhere()])
    assert all((ROOT / name).is_file() for name in pages_elsewhere().values())


@pytest.mark.parametrize("package", [albert_keras, data_pipeline])
def test_every_public_name_is_in_the_reference(package):
    text = "\n".join(path.read_text() for path in (ROOT / "docs" / "reference").glob("*.md"))
    documented = re.findall(rf"^::: {package.__name__}\.(\w+)$", text, re.MULTILINE)
    assert sorted(documented) == package.__all__


@pytest.mark.slow
def test_the_site_is_built_without_a_warning_and_needs_no_network(tmp_path):
    python = os.environ.get("ALBERT_KERAS_DOCS_PYTHON", ROOT / ".venv-docs" / "bin" / "python")
    if not Path(python).is_file():
        pytest.skip(f"no MkDocs at {python}: run `make docs`, or set ALBERT_KERAS_DOCS_PYTHON")
    command = [python, "-m", "mkdocs", "build", "--strict", "-f", SITE / "mkdocs.yml"]
    environment = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(
        [*command, "--site-dir", tmp_path / "site"],
        capture_output=True,
        text=True,
        env=environment,
        timeout=900,
    )
    assert done.returncode == 0, done.stderr
    # Only a server shows 404.html, so its links start at the root.
    pages = [page for page in (tmp_path / "site").rglob("*.html") if page.name != "404.html"]
    assert len(pages) > 30
    for page in pages:
        html = page.read_text(encoding="utf-8")
        loaded = re.findall(r"<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=\"([^\"]*)", html)
        assert not [url for url in loaded if url.startswith(("http:", "https:", "//"))], page
        for link in re.findall(r"<a\b[^>]*? href=\"([^\"#]+)", html):
            if ":" not in link:
                assert (page.parent / link).exists(), f"{page}: {link}"
