"""A browser asks every view of the page, of a real server, and sees the answers."""

import itertools
import json
import os
import select
import shutil
import subprocess
import time

import pytest

from tests.albert_keras.serving.local.running import running
from tests.albert_keras.serving.small_exports import make_model, write_export
from tests.albert_keras.tasks.small_tasks import SETTINGS, make_task

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium on the PATH"),
]

#: Signatures that views ask, of each kind of task.
SIGNATURES = {
    "classification": ("text_pair", "explain_tokens", "attention"),
    "regression": ("serving_default",),
    "choice": ("multiple_choice",),
    "tagging": ("tags",),
    "spans": ("question_answering", "explain_tokens"),
    "spans_or_none": ("question_answering",),
    "multi_label": ("serving_default",),
    "multi_regression": ("serving_default",),
    "similarity": ("text_pair",),
}
PRETRAINED = ["fill-mask", "sentence-order", "tokens", "attention", "similarity"]
VIEWS = {
    "classification": ["classify", "tokens", "attention"],
    "regression": ["classify"],
    "choice": ["multiple-choice"],
    "tagging": ["tags"],
    "spans": ["question-answering", "tokens"],
    "spans-or-none": ["question-answering"],
    "multi-label": ["classify"],
    "multi-regression": ["classify"],
    "similarity": ["classify"],
}


class Browser:
    """A headless Chromium with one page, driven by its DevTools protocol through pipes."""

    def __init__(self, profile):
        reads, self._commands = os.pipe()
        self._answers, writes = os.pipe()
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
        flags += ["--disable-background-networking", "--disable-component-update"]
        flags += ["--disable-sync", f"--user-data-dir={profile}", "--remote-debugging-pipe"]
        # The protocol wants 3 and 4; in between they have numbers that are none of these.
        wiring = f'exec 18<&{reads} 19>&{writes}; exec 3<&18 4>&19; exec chromium "$@"'
        self._process = subprocess.Popen(
            ["bash", "-c", wiring, "bash", *flags, "about:blank"],
            pass_fds=(reads, writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(reads)
        os.close(writes)
        self._buffer, self._numbers, self._session = b"", itertools.count(1), {}
        self.problems = []
        target = self.send("Target.createTarget", url="about:blank")["targetId"]
        answer = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self._session = {"sessionId": answer["sessionId"]}
        for domain in ("Page", "Runtime", "Log"):
            self.send(f"{domain}.enable")

    def send(self, method, **params):
        number = next(self._numbers)
        command = {"id": number, "method": method, "params": params, **self._session}
        os.write(self._commands, json.dumps(command).encode() + b"\0")
        while True:
            while b"\0" not in self._buffer:
                assert select.select([self._answers], [], [], 60)[0], f"no answer to {method}"
                received = os.read(self._answers, 1 << 20)
                assert received, "the browser ended"
                self._buffer += received
            message, self._buffer = self._buffer.split(b"\0", 1)
            message = json.loads(message)
            if message.get("method") in ("Runtime.exceptionThrown", "Log.entryAdded"):
                self.problems.append(message["params"])
            if message.get("id") == number:
                return message["result"]

    def value(self, script):
        result = self.send("Runtime.evaluate", expression=script, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def wait_for(self, script, seconds=60):
        end = time.monotonic() + seconds
        while not (value := self.value(script)):
            assert time.monotonic() < end, script
            time.sleep(0.05)
        return value

    def close(self):
        self._process.terminate()
        self._process.wait(20)
        os.close(self._commands)
        os.close(self._answers)


@pytest.fixture(scope="module")
def url(tiny_export, tiny_tokenizer, tmp_path_factory):
    """Returns the address of a server with a model of each kind, named as the kind, and `tiny`."""
    folders = [tiny_export]
    for kind in SETTINGS:
        task = make_task(kind)
        folder = tmp_path_factory.mktemp("models") / kind.replace("_", "-")
        write_export(
            folder / "1", task, make_model(task, tiny_tokenizer), tiny_tokenizer, SIGNATURES[kind]
        )
        folders.append(folder)
    with running(folders) as server:
        yield server.url


@pytest.fixture
def browser(tmp_path):
    browser = Browser(tmp_path)
    yield browser
    browser.close()


def show(browser, url, name, view):
    browser.send("Page.navigate", url="about:blank")
    browser.send("Page.navigate", url=f"{url}#{name}/{view}")
    browser.wait_for(f"document.querySelector('#{view} .ask')?.checkVisibility()")


def ask(browser, view, **texts):
    """Types texts, presses Ctrl+Enter, and returns what the answer says."""
    for field, text in texts.items():
        id = f"{view}-{field}"
        browser.value(f"document.getElementById('{id}').value = {json.dumps(text)}")
    browser.value(f"document.querySelector('#{view} textarea').focus()")
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": 2}
    browser.send("Input.dispatchKeyEvent", type="keyDown", **key)
    browser.send("Input.dispatchKeyEvent", type="keyUp", **key)
    browser.wait_for(f"document.querySelector('#{view} .ask').textContent === 'Run'")
    return browser.value(f"document.querySelector('#{view} .headline').textContent")


def text_of(browser, selector):
    return browser.value(f"document.querySelector('{selector}').innerText")


@pytest.mark.parametrize("name", ["tiny", *VIEWS])
def test_each_view_answers_its_example(browser, url, name):
    for view in VIEWS.get(name, PRETRAINED):
        show(browser, url, name, view)
        assert ask(browser, view), text_of(browser, f"#{view}")
        assert "ms" in text_of(browser, f"#{view} .time")
    links = browser.value("[...document.querySelectorAll('nav a')].map((a) => a.hash)")
    assert links == [f"#{name}/{view}" for view in VIEWS.get(name, PRETRAINED)]
    # What the security policy forbids is told, too.
    assert not browser.problems


def test_a_candidate_goes_into_the_text(browser, url):
    show(browser, url, "tiny", "fill-mask")
    ask(browser, "fill-mask", text="<b>The</b> [MASK] \U0001f600 [MASK].")
    assert browser.value("document.querySelectorAll('#fill-mask .bars li').length") == 20
    buttons = "document.querySelectorAll('#fill-mask .bars')[1].querySelectorAll('button')"
    browser.value(f"{buttons}[3].click()")
    word = browser.value(f"{buttons}[3].textContent").replace("\u2423", "")
    typed = browser.value("document.getElementById('fill-mask-text').value")
    assert typed == f"<b>The</b> [MASK] \U0001f600 {word}."
    assert text_of(browser, "#fill-mask .headline").endswith(f"\U0001f600 {word}.")
    ask(browser, "fill-mask", text="word " * 90 + "[MASK]")
    assert "did not fit" in text_of(browser, "#fill-mask .truncated")
    assert not ask(browser, "fill-mask", text="no mask")
    assert "[MASK]" in text_of(browser, "#fill-mask .error")


def test_an_answer_is_marked_where_it_stands(browser, url):
    show(browser, url, "spans", "question-answering")
    context = "\U0001f600\U0001f3dd The \U0001d518 ferry left \U0001f600 the harbour \U0001f3dd."
    said = ask(browser, "question-answering", question="What left?", context=context)
    passage = "#question-answering .passage"
    assert said and text_of(browser, f"{passage} mark") == said
    assert text_of(browser, passage) == context
    assert not ask(browser, "question-answering", context="")
    assert "is blank" in text_of(browser, "#question-answering .error")
