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
    wanted |= {id for value in HTML.values("aria-describedby") for id in value.split()}
    for text in SCRIPTS.values():
        wanted |= set(re.findall(r'element\("([^"]+)"\)', text))
        wanted |= set(re.findall(r'^  id: "([^"]+)"', text, re.MULTILINE))
        for begin in re.findall(r'JoinedTexts\("([^"]+)"\)', text):
            parts = re.findall(r"element\(`\$\{id\}-([^`]+)`\)", SCRIPTS["joined_texts.js"])
            assert len(parts) == 5
            wanted |= {f"{begin}-{part}" for part in parts}
    assert len(wanted) > 40 and wanted <= set(ids)


def test_each_field_has_a_label():
    fields = {given["id"] for tag, given in HTML.elements if tag in ("input", "textarea", "select")}
    assert fields == set(HTML.values("for"))


@pytest.mark.skipif(shutil.which("node") is None, reason="no node on the PATH")
def test_scripts_count_characters_and_quote_for_the_shell(tmp_path):
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "ask_all.js").write_text(
        """
        import { bodyOf, curlLine } from "./ask.js";
        import { partsOfPiece, percent } from "./elements.js";
        import { truncationNotice } from "./truncation.js";
        import { partAt } from "./unicode.js";
        globalThis.document = { baseURI: "http://host:1/", createElement: () => ({ append() {} }) };
        const row = { text: "it's \\ud800 \U0001f600", options: ["\\udc00"] };
        console.log(JSON.stringify({
          parts: partAt("\U0001f600 \U0001d518b \U0001f3dd c", 2, 6),
          pieces: ["▁a", "b", "▁"].map(partsOfPiece),
          shares: [0, 0.0001, 0.1234, 0.99999, 1].map(percent),
          body: JSON.parse(bodyOf("s", [row])),
          notices: [
            truncationNotice({ dropped_tokens: 1204, dropped_words: 0 }),
            truncationNotice({ dropped_words: 1 }),
            truncationNotice({ dropped_tokens: 0 }),
            truncationNotice({ score: 1.5 }),
          ],
          several: JSON.parse(bodyOf("s", [{ text: "a" }, { text: "b" }])).inputs,
          line: curlLine({ name: "m" }, bodyOf("s", [{ text: "it's" }])),
        }));
        """,
        encoding="utf-8",
    )
    run = ["node", "ask_all.js"]
    found = json.loads(subprocess.run(run, cwd=tmp_path, capture_output=True, check=True).stdout)
    assert found["parts"] == ["\U0001f600 ", "\U0001d518b \U0001f3dd", " c"]
    shown = [[(one["textContent"], one["dir"]) for one in piece] for piece in found["pieces"]]
    assert shown == [[("␣", "auto"), ("a", "auto")], [("b", "auto")], [("␣", "auto")]]
    assert found["shares"] == ["0.0%", "<0.1%", "12.3%", ">99.9%", "100.0%"]
    texts = [notice and notice["textContent"] for notice in found["notices"]]
    assert texts == [
        "The input was truncated: 1,204 tokens did not fit.",
        "The input was truncated: 1 word did not fit.",
        None,
        None,
    ]
    assert "truncationNotice(output)" in SCRIPTS["panel.js"]
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
