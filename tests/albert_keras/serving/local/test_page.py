"""The page: it keeps to its security policy, and each view shows what a real server answers."""

import json
import re
import shutil
import subprocess
from importlib.resources import files

import pytest

from tests.albert_keras.serving.local.running import running
from tests.albert_keras.serving.small_exports import make_model, write_export
from tests.albert_keras.tasks.small_tasks import SETTINGS, make_task

PAGE = files("albert_keras.serving.local") / "page"
FILES = {file.name: file.read_text(encoding="utf-8") for file in PAGE.iterdir()}
SCRIPTS = {name: text for name, text in FILES.items() if name.endswith(".js")}
needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="no node on the PATH")

#: The view of each signature that views ask, and the signatures of each kind of task.
VIEWS = {"multiple_choice": "multiple-choice", "tags": "tags"}
VIEWS |= {"question_answering": "question-answering", "embed": "similarity"}
SIGNATURES = {
    "classification": ("text_pair", "embed"),
    "regression": ("serving_default",),
    "choice": ("multiple_choice",),
    "tagging": ("tags",),
    "spans": ("question_answering",),
    "spans_or_none": ("question_answering",),
    "multi_label": ("serving_default",),
    "multi_regression": ("serving_default",),
    "similarity": ("text_pair",),
}
PRETRAINED = {"fill-mask", "sentence-order", "similarity"}
#: What scripts need of a browser.
BROWSER = """
class Element {
  children = [];
  style = { setProperty() {} };
  append(...children) { this.children.push(...children); }
  replaceChildren(...children) { this.children = children; }
  get value() { return this.typed ?? this.children[0]?.value; }
  set value(text) { this.typed = text; }
}
globalThis.document = { baseURI: "http://host:1/", createElement: () => new Element() };
"""
ASK_ALL = """
import { bodyOf, listModels, predict } from "./ask.js";
import { VIEWS } from "./views.js";
const fetched = fetch;
const TEXTS = { texts: "one\\ntwo", options: "a\\nb", question: "who?" };
globalThis.fetch = (path, request) => fetched(new URL(path, process.argv[2]), request);
const found = {};
for (const model of await listModels()) {
  for (const view of VIEWS.filter((one) => one.signature(model))) {
    const text = view.id === "fill-mask" ? "A [MASK] left." : "A ferry left.";
    const examples = view.fields(model).map(({ name }) => [name, TEXTS[name] ?? text]);
    const rows = view.rows?.(Object.fromEntries(examples), model) ?? [Object.fromEntries(examples)];
    const signature = view.signature(model);
    const outputs = await predict(model, signature, bodyOf(signature, rows));
    const [answer, field] = [new Element(), new Element()];
    let said = "";
    const say = (text) => { said = text; };
    view.show(outputs, { rows, model, say, answer, field: () => field });
    if (view.id === "fill-mask") answer.children[1].children[3].children[0].onclick();
    (found[model.name] ??= {})[view.id] = { said, typed: field.value };
  }
}
console.log(JSON.stringify(found));
"""
SHOW_SOME = """
import { bodyOf, curlLine } from "./ask.js";
import { percent, shown } from "./elements.js";
import { VIEWS } from "./views.js";
const answer = new Element();
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
"""


def test_nothing_is_inline_or_from_elsewhere():
    assert re.findall(r"<script[^>]*>(.*?)</script>", FILES["index.html"], re.S) == [""]
    assert not re.search(r"<style|\s(style|on\w+)=", FILES["index.html"])
    for name, text in FILES.items():
        assert not re.search(r"https?:|[\"'(]//|url\(|@import", text), name
    unsafe = r"(inner|outer)HTML|insertAdjacentHTML|document\.write|\beval\(|new Function|cssText"
    for name, text in SCRIPTS.items():
        assert not re.search(unsafe + r"|setAttribute\(\"(style|on)", text), name


def test_ids_are_those_of_the_page():
    ids = re.findall(r' id="([^"]+)"', FILES["index.html"])
    assert len(ids) == len(set(ids))
    wanted = set(re.findall(r' (?:for|aria-labelledby)="([^"]+)"', FILES["index.html"]))
    for text in SCRIPTS.values():
        wanted |= set(re.findall(r'element\("([^"]+)"\)', text))
    assert wanted == set(ids)


@pytest.fixture
def run_script(tmp_path):
    """Returns a function that runs a script beside those of the page; what it prints is JSON."""
    for name, text in SCRIPTS.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
        subprocess.run(["node", "--check", tmp_path / name], check=True)
    (tmp_path / "package.json").write_text('{"type": "module"}')

    def run_script(script, *words):
        (tmp_path / "script.js").write_text(BROWSER + script, encoding="utf-8")
        run = ["node", "script.js", *words]
        return json.loads(subprocess.run(run, cwd=tmp_path, capture_output=True, check=True).stdout)

    return run_script


@needs_node
def test_scripts_count_characters_and_quote_for_the_shell(run_script):
    found = run_script(SHOW_SOME)
    assert found["parts"] == ["\U0001f600 ", "\U0001d518b \U0001f3dd", " c"]
    assert found["pieces"] == ["␣a", "b", "␣"]
    assert found["shares"] == ["0.0%", "<0.1%", "12.3%", ">99.9%", "100.0%"]
    inputs = {"text": ["it's \ufffd \U0001f600"], "options": [["\ufffd"]]}
    assert found["body"] == {"signature_name": "s", "inputs": inputs}
    assert found["several"] == {"text": ["a", "b"]}
    line = found["line"].replace("curl", "printf '%s\\n'", 1)
    words = subprocess.run(["sh", "-c", line], capture_output=True, text=True).stdout.splitlines()
    assert words[:2] == ["-s", "http://host:1/v1/models/m:predict"]
    assert json.loads(words[-1])["inputs"] == {"text": ["it's"]}


@needs_node
@pytest.mark.slow
def test_each_view_shows_what_the_server_answers(run_script, tiny_export, tiny_tokenizer, tmp_path):
    folders = [tiny_export]
    for kind, signatures in SIGNATURES.items():
        task, folder = make_task(kind), tmp_path / kind.replace("_", "-")
        model = make_model(task, tiny_tokenizer)
        write_export(folder / "1", task, model, tiny_tokenizer, signatures)
        folders.append(folder)
    with running(folders) as server:
        found = run_script(ASK_ALL, server.url)
    for kind in SETTINGS:
        views = {VIEWS.get(name, "classify") for name in SIGNATURES[kind]}
        assert found[kind.replace("_", "-")].keys() == views
    masks = found[tiny_export.name]
    assert masks.keys() == PRETRAINED and masks["fill-mask"]["typed"] == masks["fill-mask"]["said"]
    assert all(view["said"] for views in found.values() for view in views.values())
