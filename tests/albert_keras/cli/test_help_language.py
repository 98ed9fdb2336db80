"""The help of every command is plain English and loads quickly."""

import re
import subprocess
import sys

import pytest
import typer

from albert_keras.cli import app

#: Words and phrases that a reader must guess at; each is matched as whole words.
STRUCK = (
    "anew|told|tell|tells|goes on|go on|going on|of which|that of|those of|in little|at hand|"
    "looks of|so many|begun|places|wants|draw|drawn|besides|came along|stay|lies|by itself|"
    "in turn|decides|say more|whoever|which it is|beside"
)
#: Where a word of the field is one of them.
FIELD_WORDS = ("--draw",)


def commands(command=None, path=()):
    """Yields the names and the command of each command and group."""
    command = command or typer.main.get_command(app)
    yield path, command
    for name, inner in getattr(command, "commands", {}).items():
        yield from commands(inner, (*path, name))


COMMANDS = dict(commands())
IDS = [" ".join(path) or "albert-keras" for path in COMMANDS]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=IDS)
def test_help_has_no_struck_words(command):
    texts = [command.help or "", command.epilog or ""]
    texts += [getattr(parameter, "help", None) or "" for parameter in command.params]
    found = [re.findall(rf"\b(?:{STRUCK})\b", text, re.IGNORECASE) for text in texts]
    assert not any(found), [pair for pair in zip(found, texts, strict=True) if pair[0]]


@pytest.mark.parametrize("command", COMMANDS.values(), ids=IDS)
def test_every_option_is_explained_by_a_sentence(command):
    assert re.match(r"[A-Z].*\.$", command.help.split("\n\n")[0], re.DOTALL)
    for parameter in command.params:
        text = getattr(parameter, "help", None)
        assert text and text.endswith("."), parameter.name


def test_no_help_imports_what_takes_long():
    check = (
        "import sys; from albert_keras.cli import main\n"
        "for words in sys.argv[1].split(','): assert main([*words.split(), '--help']) == 0\n"
        "heavy = {'tensorflow', 'numpy', 'scipy', 'sklearn', 'apache_beam'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    words = ",".join(" ".join(path) for path in COMMANDS)
    subprocess.run([sys.executable, "-c", check, words], check=True, capture_output=True)
