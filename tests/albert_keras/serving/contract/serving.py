"""A served copy of an export, for the tests of the contract server."""

import contextlib
import shutil
import time

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.rest_client import RestClient
from tests.albert_keras.serving.contract_server import ContractServer


@contextlib.contextmanager
def serving(export, base):
    """Yields (folder, function) for a copy of an export, of the model "model".

    Args:
        export: Path. Folder with versions.
        base: Path. Where the copy goes.

    Yields:
        `base`, and a function that starts a server with options of ContractServer and returns a
        RestClient of it; both are closed at the end.
    """
    shutil.copytree(export, base)
    with contextlib.ExitStack() as stack:

        def serve(**options):
            server = stack.enter_context(ContractServer({"model": base}, **options))
            return stack.enter_context(RestClient(server.url, "model", timeout=20))

        yield base, serve


def wait_for(state, client, version, seconds=20):
    """Waits until a version has a state, and returns its VersionState."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            for one in client.status():
                if (one.version, one.state) == (version, state):
                    return one
        except ServingError:
            pass
        time.sleep(0.01)
    raise AssertionError(f"version {version} is not {state}: {client.status()}")
