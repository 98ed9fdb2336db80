"""Executes the code blocks of a page in the working directory; a program of its own.

    python -m tests.documentation.page_program PAGE

All blocks of a page run in one process, as TensorFlow takes long to start. Lines that are more
than one call of `albert-keras` run in a shell.
"""

import ast
import contextlib
import io
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

from tests.documentation.code_blocks import albert_keras_commands, blocks_of, command_lines

#: Options that make a command small, by command: a value replaces the value on the page.
_SMALL = {
    "vocab": {"--size": "300"},
    "vocab extend": {"--add": "3"},
    "data build": {"--max-seq-length": "48", "--workers": "2"},
    "pretrain": {"--size": "TINY", "--steps": "4", "--batch-size": "4"},
    "finetune": {"--epochs": "1", "--seeds": "1,2", "--max-seq-length": "32"},
}
#: Options that are added to a command that lacks them.
_ADDED = {
    "data build": ("--max-seq-length",),
    "pretrain": ("--steps", "--batch-size"),
    "finetune": ("--epochs", "--max-seq-length"),
}
#: Settings of a page that do not fit so few steps.
_SETTINGS = {"optimizer.warmup_steps": "1"}
_SECONDS = 600


def run_page(page: Path) -> None:
    """Executes the blocks of a page in order; the first that fails ends the program."""
    port = _free_port()
    servers, made = [], set()
    try:
        for block in blocks_of(page):
            if block.reason:
                continue
            for line in command_lines(block):
                print(f"{block}: {line}", flush=True)  # the last one is the one that failed
                _run_line(line.replace("8501", str(port)), port, servers, made)
            if block.language == "python":
                print(f"{block}: program", flush=True)
                for out in _outputs(block.text):
                    _remove_older(["--out", out], made)
                exec(compile(block.text, str(block), "exec"), {"__name__": "__main__"})
    finally:
        for server in servers:
            server.terminate()
            try:
                server.wait(timeout=30)
            except subprocess.TimeoutExpired:
                server.kill()


def _run_line(line, port, servers, made):
    calls = albert_keras_commands(line)
    if any("gs://" in word for call in calls for word in call):
        raise ValueError(f"`{line}` needs a bucket: mark its block as not run")
    for call in calls:
        _remove_older(call, made)
    words = shlex.split(line.replace("\\\n", " "), comments=True)
    if len(calls) == 1 and [word for word in words[1:]] == calls[0]:
        words = small(calls[0])
        if words[0] == "serve":
            servers.append(_serve(words, port))
            return
        _call(words)
        return
    subprocess.run(["bash", "-ec", line], check=True, timeout=_SECONDS, env=_with_command())


def small(words: list[str]) -> list[str]:
    """Returns the arguments of `albert-keras` with small values."""
    name = next((key for key in reversed(_SMALL) if words[: len(key.split())] == key.split()), "")
    values, changed, seen = _SMALL.get(name, {}), [], set()
    rest = iter(words)
    for word in rest:
        changed.append(word)
        if word in values:
            seen.add(word)
            tiny = f"{next(rest).partition('-')[0]}-tiny"
            changed.append(values[word].replace("TINY", tiny))
        elif word == "--set":
            key, _, value = next(rest).partition("=")
            changed.append(f"{key}={_SETTINGS.get(key, value)}")
    if "--steps" in seen or "--dry-run" in changed:
        seen |= {"--epochs"}
    if "--dry-run" in changed and "--out" in changed:  # not the run of an earlier page
        changed[changed.index("--out") + 1] += "-dry"
    if name == "pretrain" and "--config" in words:  # a recipe warms up for longer
        changed += ["--set", "optimizer.warmup_steps=1"]
    added = [word for word in _ADDED.get(name, ()) if word not in seen]
    return changed + [part for word in added for part in (word, values[word])]


def _remove_older(words, made):
    """Removes an output of an earlier page, which the command would resume or refuse."""
    if "--out" not in words or words[0] == "export" or "--dry-run" in words:
        return
    out = Path(words[words.index("--out") + 1])
    if out not in made and out.exists():
        for path in (out, *out.parent.glob(f"{out.name}.*")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    made.add(out)


def _outputs(program):
    """Yields the folders of runs that a program names as outputs."""
    for node in ast.walk(ast.parse(program)):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("finetune", "pretrain"):
            yield node.args[1].value


def _call(words):
    from albert_keras.cli import main

    shown = io.StringIO()
    with contextlib.redirect_stdout(shown), contextlib.redirect_stderr(shown):
        code = main(words)
    if code != 0:
        raise SystemExit(
            f"exit code {code} of: albert-keras {shlex.join(words)}\n{shown.getvalue()}"
        )


def _serve(words, port):
    server = subprocess.Popen([sys.executable, "-m", "albert_keras", *words, "--port", str(port)])
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end and server.poll() is None:
        with contextlib.suppress(OSError):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/", timeout=5).close()
            return server
        time.sleep(0.5)
    server.kill()
    raise SystemExit(f"the server did not start: {shlex.join(words)}")


def _with_command():
    """Returns an environment whose `albert-keras` and `python` run the Python of this process."""
    folder = Path(".bin").absolute()
    folder.mkdir(exist_ok=True)
    for name, command in {"albert-keras": "-m albert_keras", "python": ""}.items():
        path = folder / name
        path.write_text(f'#!/bin/sh\nexec "{sys.executable}" {command} "$@"\n')
        path.chmod(0o755)
    return os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}


def _free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def _refuse_network(event, arguments):
    """Audit hook: refuses connections to other machines."""
    if event == "socket.connect" and isinstance(arguments[1], tuple):
        if not re.match(r"127\.|::1|localhost", str(arguments[1][0])):
            raise ConnectionRefusedError(f"the pages must work offline: {arguments[1]}")


if __name__ == "__main__":
    sys.addaudithook(_refuse_network)
    run_page(Path(sys.argv[1]))
