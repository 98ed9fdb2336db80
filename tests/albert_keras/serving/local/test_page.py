"""The page: its files fit together and keep to its security policy."""

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from importlib.resources import files

import pytest

PAGE = files("albert_keras.serving.local") / "page"
FILES = {file.name: file.read_text(encoding="utf-8") for file in PAGE.iterdir()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}
STYLES = "\n".join(text for name, text in FILES.items() if name.endswith(".css"))


class Html(HTMLParser):
    """Collects the elements of index.html, as (tag, dict of attributes)."""

    def __init__(self):
        super().__init__()
        self.elements, self.text_of_scripts = [], ""
        self.feed(FILES["index.html"])

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data):
        if self.cdata_elem:  # of <script> and <style>
            self.text_of_scripts += data

    def values(self, attribute):
        return [given[attribute] for _, given in self.elements if attribute in given]


HTML = Html()


def imports_of(name):
    return set(re.findall(r'from "\./([^"]+)"', SCRIPTS[name]))


def test_all_files_are_there_and_used():
    others = ("data:,", "v1/models")
    linked = {path for path in HTML.values("href") + HTML.values("src") if path not in others}
    assert linked and all(path.startswith("page/") for path in linked)
    used, new = {"index.html"}, {path.removeprefix("page/") for path in linked}
    while new:
        used |= new
        new = set().union(*(imports_of(name) for name in new if name in SCRIPTS)) - used
    assert used == set(FILES)
    assert not re.search(r"url\(|@import", STYLES)


def test_nothing_is_inline_or_from_elsewhere():
    assert not HTML.text_of_scripts.strip()
    assert not any(tag == "style" for tag, _ in HTML.elements)
    names = {name for _, given in HTML.elements for name in given}
    assert not [name for name in names if name == "style" or name.startswith("on")]
    for name, text in FILES.items():
        assert not re.search(r"https?:|[\"'(]//", text), name
    unsafe = r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|cssText"
    for name, text in SCRIPTS.items():
        assert not re.search(unsafe + r"|setAttribute\(\"(style|on)", text), name


def test_ids_are_those_of_the_page():
    ids = HTML.values("id")
    assert len(ids) == len(set(ids))
    wanted = set(HTML.values("for")) | set(HTML.values("aria-labelledby"))
    for text in SCRIPTS.values():
        wanted |= set(re.findall(r'element\("([^"]+)"\)', text))
    assert wanted == set(ids)


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on the PATH")
def test_scripts_count_characters_and_quote_for_the_shell(tmp_path):
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "ask_all.js").write_text(
        """
        import { bodyOf, curlLine } from "./ask.js";
        import { percent, shown } from "./elements.js";
        import { VIEWS } from "./views.js";
        globalThis.document = {
          baseURI: "http://host:1/",
          createElement: () => ({
            children: [],
            append(...children) { this.children.push(...children); },
          }),
        };
        const answer = document.createElement();
        const context = "😀 𝔘b 🏝 c";
        const spans = VIEWS.find(({ id }) => id === "question-answering");
        const output = { answer: "", start: 2, end: 6, score: 1 };
        spans.show([output], { rows: [{ context }], say() {}, answer });
        const row = { text: "it's \\ud800 😀", options: ["\\udc00"] };
        console.log(JSON.stringify({
          parts: answer.children[0].children.map((part) => part.textContent ?? part),
          pieces: ["▁a", "b", "▁"].map(shown),
          shares: [0, 0.0001, 0.1234, 0.99999, 1].map(percent),
          body: JSON.parse(bodyOf("s", [row])),
          several: JSON.parse(bodyOf("s", [{ text: "a" }, { text: "b" }])).inputs,
          line: curlLine({ name: "m" }, bodyOf("s", [{ text: "it's" }])),
        }));
        """,
        encoding="utf-8",
    )
    run = ["node", "ask_all.js"]
    found = json.loads(subprocess.run(run, cwd=tmp_path, capture_output=True, check=True).stdout)
    assert found["parts"] == ["\U0001f600 ", "\U0001d518b \U0001f3dd", " c"]
    assert found["pieces"] == ["␣a", "b", "␣"]
    assert found["shares"] == ["0.0%", "<0.1%", "12.3%", ">99.9%", "100.0%"]
    inputs = {"text": ["it's \ufffd \U0001f600"], "options": [["\ufffd"]]}
    assert found["body"] == {"signature_name": "s", "inputs": inputs}
    assert found["several"] == {"text": ["a", "b"]}
    words = subprocess.run(
        ["sh", "-c", found["line"].replace("curl", "printf '%s\\n'", 1)],
        capture_output=True,
        text=True,
    ).stdout.splitlines()
    assert words[:2] == ["-s", "http://host:1/v1/models/m:predict"]
    assert json.loads(words[-1])["inputs"] == {"text": ["it's"]}
    for name in SCRIPTS:
        subprocess.run(["node", "--check", name], cwd=tmp_path, check=True)
