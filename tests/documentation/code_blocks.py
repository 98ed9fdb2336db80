"""The code blocks of README.md, CONTRIBUTING.md and docs/, and the commands in them."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
#: Languages of blocks, and what the tests do with them.
LANGUAGES = {
    "bash": "commands, each in a line of its own",
    "console": "commands after `$ `, followed by their output, which is not compared",
    "python": "a program",
    "yaml": "settings",
    "text": "anything else; it is neither checked nor executed",
}
#: Reasons of `<!-- not run: REASON -->` above a block that cannot be executed on any machine.
REASONS = {
    "continues your own program",
    "depends on the machine",
    "downloads packages",
    "has a test of its own",
    "needs a cluster",
    "needs a GPU",
    "needs a released checkpoint",
    "needs a TPU",
    "needs apache-beam",
    "needs Docker",
    "needs FastAPI",
    "needs PyTorch",
    "needs official files",
    "needs several GPUs",
    "needs several machines",
    "needs tensorflow_model_server",
    "needs tf2onnx",
    "needs the shipped model",
    "needs torch",
    "runs the tests",
    "shows a mistake",
    "takes long",
}
#: A word with its quotes, what ends a command or names a file to read or write, or a comment.
_WORD = re.compile(r"""(?:'[^']*'|"[^"]*"|[^\s|&;<>'"#]|(?<=\S)\#)+|[|&;<>]+|\#.*""")


class Block(NamedTuple):
    """A code block of a page.

    Attributes:
        page: Path. The page.
        line: int. Number of the line above its first one, from 1.
        language: str. One of `LANGUAGES`.
        text: str. The code.
        reason: str. Why it is not executed; empty if it is.
    """

    page: Path
    line: int
    language: str
    text: str
    reason: str

    def __str__(self):
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks_of(page: Path) -> list[Block]:
    """Returns the fenced code blocks of a page."""
    found = []
    lines = page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        if lines[number].startswith("```"):
            end = lines.index("```", number + 1)
            text = "\n".join(lines[number + 1 : end]) + "\n"
            reason = re.fullmatch(r"<!-- not run: (.*) -->", lines[number - 1])
            language = lines[number].removeprefix("```").strip()
            found.append(Block(page, number + 1, language, text, reason[1] if reason else ""))
            number = end
        number += 1
    return found


def command_lines(block: Block) -> list[str]:
    """Returns the command lines of a block, with continued lines joined by a newline."""
    if block.language not in ("bash", "console"):
        return []
    commands, continued = [], False
    for line in block.text.splitlines():
        if continued:
            commands[-1] += "\n" + line
        elif block.language == "bash" and line.strip() and not line.startswith("#"):
            commands.append(line)
        elif line.startswith("$ "):
            commands.append(line.removeprefix("$ "))
        else:
            continue
        continued = line.endswith("\\")
    return commands


def albert_keras_commands(line: str) -> list[list[str]]:
    """Returns the arguments of each call of `albert-keras` in a command line."""
    calls, call = [], None
    for word in _WORD.findall(line.replace("\\\n", " ")):
        if word[0] in "|&;<>#":
            call = None
        elif word.rpartition("/")[2] == "albert-keras":
            call = []
            calls.append(call)
        elif call is not None:
            call += shlex.split(word)
    return calls


ALL_BLOCKS = [block for page in PAGES for block in blocks_of(page)]
