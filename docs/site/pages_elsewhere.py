"""Adds pages that are not in `docs/` to the site: the README and others, and the notebook.

MkDocs calls `on_files` and `on_page_markdown`. Links between all of these files are written for
the repository, so that they work there, and are changed to links of the site here.
"""

import json
import posixpath
import re
from pathlib import Path

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[2]
#: Page of the site -> file in the repository.
PAGES = {
    "index.md": "README.md",
    "benchmarks.md": "tests/benchmarks/README.md",
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "saved-models.md": "saved_models/README.md",
    "tutorials/first-model.md": "docs/tutorials/first-model.ipynb",
}
#: Files that the pages need, in this folder.
ASSETS = {"assets/iframe-worker.js": "iframe-worker.js"}
_LINK = re.compile(r"(?<=\]\()(?!https?:|#)([^)#\s]+)")


def on_files(files, config):
    """Adds `PAGES` and `ASSETS` to the files of the site."""
    for uri, name in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        text = notebook_page(json.loads(text)) if name.endswith(".ipynb") else text
        files.append(File.generated(config, uri, content=text))
    for uri, name in ASSETS.items():
        files.append(File.generated(config, uri, abs_src_path=str(Path(__file__).with_name(name))))
    return files


def on_page_markdown(markdown, page, **_):
    """Changes links between files of the repository to links between pages of the site."""
    uri = page.file.src_uri
    source = PAGES.get(uri, f"docs/{uri}")
    pages = {name: page for page, name in PAGES.items()}

    def changed(link):
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), link[1]))
        target = pages.get(target, target.removeprefix("docs/"))
        return posixpath.relpath(target, posixpath.dirname(uri) or ".")

    # Code is left as it is.
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.MULTILINE | re.DOTALL)
    return "".join(part if part.startswith("```") else _LINK.sub(changed, part) for part in parts)


def notebook_page(notebook):
    """Returns the cells of a notebook as Markdown."""
    cells = []
    for cell in notebook["cells"]:
        text = "".join(cell["source"])
        cells.append(text if cell["cell_type"] == "markdown" else f"```python\n{text}\n```")
    return "\n\n".join(cells) + "\n"
