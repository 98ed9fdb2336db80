"""How new Python processes start: without the current folder among the places of modules.

`python -m` and `python -c` put the current folder first, so that a `typing.py` in a folder of
somebody else's files would be executed. All processes that the two packages start therefore start
here. `-P` does the same from Python 3.11 on only, and `-I` ignores settings such as
`PYTHONHASHSEED` too.
"""

import contextlib
import json
import os
import sys
from collections.abc import Iterator
from multiprocessing import util
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]  # the folder of both packages
#: First line of each program. Only `sys`, which is part of the interpreter, may be imported there.
_DROP_CURRENT_FOLDER = "import sys; sys.path[:] = [entry for entry in sys.path if entry]\n"
#: Runs a module with the places of modules of the parent process.
_RUN_MODULE = """
import json, runpy
paths, module, *arguments = sys.argv[1:]
sys.path[:] = json.loads(paths)
sys.argv = [module, *arguments]
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""


def module_command(module: str, *arguments: str | Path) -> list[str]:
    """Returns the command that runs a module as a program, to be started with `environment()`.

    The new process finds what this process finds in `sys.path`, except in the current folder, and
    both packages.
    """
    paths = [entry for entry in sys.path if not _is_current_folder(entry)]
    return code_command(_RUN_MODULE, json.dumps([*paths, str(_ROOT)]), module, *arguments)


def code_command(code: str, *arguments: str | Path) -> list[str]:
    """Returns the command that runs Python code, to be started with `environment()`."""
    return [sys.executable, "-c", _DROP_CURRENT_FOLDER + code, *map(str, arguments)]


def environment(**changes: str) -> dict[str, str]:
    """Returns the environment variables of this process with `changes`, for a new process.

    The current folder is removed from `PYTHONPATH`, where an empty entry means the same folder.
    """
    variables = os.environ | changes
    if "PYTHONPATH" in variables:
        entries = variables["PYTHONPATH"].split(os.pathsep)
        variables["PYTHONPATH"] = os.pathsep.join(
            entry for entry in entries if not _is_current_folder(entry)
        )
    return variables


@contextlib.contextmanager
def isolated_spawning() -> Iterator[None]:
    """Makes the processes that `multiprocessing` spawns within the block start isolated (`-I`).

    Once started, they have the `sys.path` of this process. `multiprocessing` itself only passes on
    whether this process is isolated.
    """
    flags = util._args_from_interpreter_flags
    util._args_from_interpreter_flags = lambda: ["-I", *flags()]
    try:
        yield
    finally:
        util._args_from_interpreter_flags = flags


def _is_current_folder(entry):
    return os.path.realpath(entry) == os.path.realpath(os.getcwd())  # "" is the current folder
