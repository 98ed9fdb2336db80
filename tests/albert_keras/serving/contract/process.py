"""The contract server in a process of its own, with the operations that servers have.

As a program (`python -m` with the name of this module, and a base path for each model) this prints
one line of JSON, `{"url": ..., "grpc_target": ...}`, when all models have been tried, and serves
until its stdin is closed. A model has the name of its folder.
"""

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

_MODULE = "tests.albert_keras.serving.contract.process"
_ROOT = Path(__file__).parents[4]


class ServerProcess(NamedTuple):
    """Where a server in another process listens, as the attributes of ContractServer."""

    url: str
    grpc_target: str


@contextlib.contextmanager
def contract_process(*base_paths):
    """Serves models in another process.

    Args:
        *base_paths: str or Path. Folders with versions, each by the name of its model.

    Yields:
        ServerProcess.
    """
    command = [sys.executable, "-m", _MODULE, *map(os.path.abspath, base_paths)]
    environment = os.environ | {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen(command, cwd=_ROOT, env=environment, text=True, **pipes) as process:
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"the server did not start, exit code {process.wait(20)}")
            yield ServerProcess(**json.loads(line))
        finally:
            process.stdin.close()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()


def main(base_paths):
    """Serves until stdin is closed.

    Raises:
        RuntimeError: If tensorflow-text is imported, which has operations that servers lack.
    """
    import tensorflow as tf

    from albert_keras.serving.saved_model.restricted_loader import _libraries
    from tests.albert_keras.serving.contract_server import ContractServer

    for library in _libraries():
        tf.load_op_library(str(library))
    with ContractServer({Path(base).name: base for base in base_paths}, with_grpc=True) as server:
        if "tensorflow_text" in sys.modules:
            raise RuntimeError("tensorflow_text was imported, so that more loads than at a server")
        print(json.dumps({"url": server.url, "grpc_target": server.grpc_target}), flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main(sys.argv[1:])
