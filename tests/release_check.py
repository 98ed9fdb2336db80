"""python -m tests.release_check: the check of `make release-check`.

sources → wheel and source archive → contents and metadata → a new environment of each Python here,
with the newest packages that the requirements allow and without the repository: a version, an
answer, a fine-tuning of a table, its export, and in the first of them the demo.

Exit code 0: the release can be published. 1: there is a fault.
"""

import argparse
import contextlib
import email
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.repository import PROJECT, ROOT

#: The Pythons of both lines of TensorFlow, each in the order in which the `Makefile` prefers them.
LINES = (("3.11", "3.10"), ("3.13", "3.12"))
PYTHONS = tuple(version for line in LINES for version in line)
_PACKAGES = ("albert_keras", "data_pipeline")
#: PyPI accepts no larger file, unless one asks.
_MOST_BYTES = 100 * 10**6
#: Commands, and what their output must contain.
_QUICK = (
    ("--version", re.escape(PROJECT["project"]["version"])),
    ("fill-mask albert-mini-en 'He was so tired that he fell [MASK].'", "fell asleep"),
)
_WHOLE = (
    (
        "finetune --task classification --train mail.csv --text body --label folder "
        "--from albert-mini-en --epochs 10 --out runs/mail",
        "next: ",
    ),
    ("predict runs/mail 'The invoice is attached.'", "bills"),
    ("export --run runs/mail --out saved_models/mail", "answers agree with the Python code"),
    ("predict saved_models/mail 'The invoice is attached.'", "bills"),
)
_DEMO = ("demo --out runs/demo", "Try next:")
#: Texts for both labels of the table, with a word of each kind.
_MAIL = {
    "bills": "The invoice for the {} is attached, please pay the sum.",
    "travel": "The train to the {} leaves at nine, please pack your bag.",
}
_WORDS = "garden office kitchen school market harbour museum bridge castle river".split()


class Fault(Exception):
    """What a release must not have."""


def main(arguments: list[str] | None = None) -> int:
    """Builds and checks; prints each step with its seconds, and the faults."""
    options = _parser().parse_args(arguments)
    faults: list[str] = []
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as stack:
        stack.callback(lambda: [print(f"fault: {fault}", file=sys.stderr) for fault in faults])
        try:
            wheel = _build(Path(name), options.out.absolute(), faults)
        except Fault as fault:
            faults.append(str(fault))
            return 1
        if options.only_build:
            return 1 if faults else 0
        pythons = dict(_found(options.pythons, options.quick))
        if not pythons:
            faults.append(f"none of the Pythons {', '.join(options.pythons)} is here")
        demo = not (options.quick or options.no_demo)
        for version, program in pythons.items():
            folder = Path(name) / version
            folder.mkdir()
            try:
                commands = (*_QUICK, *(() if options.quick else _WHOLE), *((_DEMO,) * demo))
                _use(version, program, wheel, folder, commands)
            except Fault as fault:
                faults.append(f"Python {version}: {fault}")
            shutil.rmtree(folder)
            demo = False
    return 1 if faults else 0


def _parser():
    parser = argparse.ArgumentParser(prog="python -m tests.release_check", description=__doc__)
    add = parser.add_argument
    add("--out", type=Path, default=Path("build/release"), help="folder for both archives")
    add("--only-build", action="store_true", help="build and check the archives, install nothing")
    add("--pythons", nargs="+", default=PYTHONS, choices=PYTHONS, metavar="VERSION")
    add("--quick", action="store_true", help="one Python of each line, version and answer")
    add("--no-demo", action="store_true", help="omit the demo, which takes minutes")
    return parser


def _build(folder, out, faults):
    """Builds both archives in `out`, and adds their faults to a list; returns the wheel."""
    copy_sources(folder / "sources")
    tools = folder / "tools"
    with _step("making an environment that builds"):
        python = _environment(sys.executable, tools)
        _call(folder, *_pip(python), "install", "build", "twine")
    shutil.rmtree(out, ignore_errors=True)
    with _step("building the wheel from the source archive"):
        _call(folder, python, "-m", "build", "--outdir", out, folder / "sources")
    (wheel,), (sdist,) = out.glob("*.whl"), out.glob("*.tar.gz")
    for archive in (wheel, sdist):
        print(f"{archive.name}: {archive.stat().st_size / 1e6:.1f} MB")
    with _step("checking the archives"):
        faults += wheel_faults(wheel)
        _call(folder, python, "-m", "twine", "check", "--strict", wheel, sdist)
    return wheel


def copy_sources(folder: Path) -> list[str]:
    """Copies the files that git knows, and returns their names; Fault without git.

    An archive that is built beside them must not contain what earlier builds left.
    """
    words = ["git", "-c", "safe.directory=*", "ls-files", "-z"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise Fault("this copy of the repository has no git")
    names = [name for name in done.stdout.split("\0") if (ROOT / name).is_file()]
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, folder / name)
    return names


def wheel_faults(wheel: Path) -> list[str]:
    """Returns what is wrong with the contents, the size and the metadata of a wheel."""
    with zipfile.ZipFile(wheel) as opened:
        names = opened.namelist()
        (place,) = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        known = email.message_from_bytes(opened.read(f"{place}/METADATA"))
    tops = tuple(f"{top}/" for top in (*_PACKAGES, place))
    others = [name for name in names if not name.startswith(tops) or "/tests/" in name]
    rules = {
        "it contains no tests, pages or other files": not others,
        "both packages have py.typed": {f"{one}/py.typed" for one in _PACKAGES} <= {*names},
        "it has at most 100 MB": wheel.stat().st_size <= _MOST_BYTES,
        "it has the version of the project": known["Version"] == PROJECT["project"]["version"],
        "it names a licence and has its text": known["License-Expression"]
        and f"{place}/licenses/LICENSE" in names,
    }
    found = [f"{wheel.name}: not true: {rule}" for rule, holds in rules.items() if not holds]
    return found + [f"{wheel.name} contains {name}" for name in others[:9]]


def _found(versions: Sequence[str], one_of_each: bool) -> Iterator[tuple[str, str]]:
    """Yields the Pythons that are here, by their versions; of each line only one if asked to."""
    for line in LINES:
        for version in filter(versions.__contains__, line):
            program = find_python(version)
            if program is None:
                print(f"no Python {version} here, so it is not checked")
                continue
            yield version, program
            if one_of_each:
                break


def find_python(version: str) -> str | None:
    """Returns a Python of a version that can make environments, also one of pyenv; or None."""
    name = f"python{version}"
    programs = [name, sys.executable]
    if shutil.which("pyenv"):
        words = ["pyenv", "whence", "--path", name]
        programs += subprocess.run(words, capture_output=True, text=True).stdout.split()
    check = f"import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != {_numbers(version)})"
    for program in programs:
        with contextlib.suppress(OSError):
            if subprocess.run([program, "-c", check], capture_output=True).returncode == 0:
                return program
    return None


def _numbers(version):
    return tuple(map(int, version.split(".")))


def _use(version, program, wheel, folder, commands):
    """Installs the wheel in a new environment, and runs commands there; a failure is a Fault."""
    with _step(f"Python {version}: installing the wheel"):
        python = _environment(program, folder / "venv")
        _call(folder, *_pip(python), "install", wheel)
        _call(folder, *_pip(python), "check")
    rows = [f"{label},{text.format(word)!r}" for label, text in _MAIL.items() for word in _WORDS]
    table = "\n".join(["folder,body", *(row.replace("'", '"') for row in rows), ""])
    (folder / "mail.csv").write_text(table, encoding="utf-8")
    for words, expected in commands:
        with _step(f"Python {version}: albert-keras {words}"):
            output = _call(folder, python.with_name("albert-keras"), *shlex.split(words))
            if not re.search(expected, output):
                raise Fault(
                    f"`albert-keras {words}` must print {expected!r}. It printed:\n{output}"
                )


def _environment(program, folder):
    """Makes a virtual environment; returns its Python."""
    _call(folder.parent, program, "-m", "venv", folder)
    return folder / "bin" / "python"


def _pip(python):
    return python, "-m", "pip", "--quiet", "--disable-pip-version-check"


def _call(folder, *words):
    """Runs a program in a folder, where Python finds no module; returns its output.

    A failure is a Fault.
    """
    hidden = ("PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV")
    known = {name: value for name, value in os.environ.items() if name not in hidden}
    words = [str(word) for word in words]
    done = subprocess.run(words, cwd=folder, env=known, capture_output=True, text=True)
    if done.returncode:
        shown = (done.stdout + done.stderr)[-4000:]
        raise Fault(f"`{shlex.join(words)}` ended with {done.returncode}:\n{shown}")
    return done.stdout


@contextlib.contextmanager
def _step(what):
    print(what, end="", flush=True)
    begun = time.monotonic()
    try:
        yield
    finally:
        print(f": {time.monotonic() - begun:.0f} s", flush=True)


if __name__ == "__main__":
    sys.exit(main())
