"""A model that is made in a second, and a server of it."""

import contextlib
import threading
import time

import pytest
import tensorflow as tf

from albert_keras.serving.local.limits import Limits
from albert_keras.serving.local.local_server import LocalServer
from tests.albert_keras.serving.contract.model import ContractModel

#: No test is to wait for a token.
MANY = {"requests_per_second": 1e6, "burst": 10**6}


@contextlib.contextmanager
def running(models, **limits):
    """Yields a LocalServer that answers, on a port that was free."""
    with LocalServer(models, port=0, limits=Limits(**{**MANY, **limits})) as server:
        thread = threading.Thread(target=server.run, daemon=True)
        thread.start()
        while not server.is_ready:
            time.sleep(0.01)
        try:
            yield server
        finally:
            server.stop()
            thread.join(60)
            assert not thread.is_alive(), "the server does not stop"


@pytest.fixture(scope="session")
def books(tmp_path_factory):
    """Returns the folder of a model with the versions 2 and 3: a ContractModel without `raw`, whose
    output `*_bytes` is refused."""
    module = ContractModel(3.0)
    signatures = {name: one for name, one in module.signatures().items() if name != "raw"}
    folder = tmp_path_factory.mktemp("exports") / "books"
    tf.saved_model.save(module, str(folder / "3"), signatures=signatures)
    updater = tf.compat.v1.saved_model.signature_def_utils.MethodNameUpdater(str(folder / "3"))
    for name in ("classify", "regress"):
        updater.replace_method_name(name, f"tensorflow/serving/{name}", tags="serve")
    updater.save()
    (folder / "2").mkdir()
    return folder


@pytest.fixture(scope="session")
def server(books):
    """Returns a LocalServer of `books` that waits half a second for a request."""
    with running([books], receiving_seconds=0.5, rows=64, answer_values=1000) as server:
        yield server
