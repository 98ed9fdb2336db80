"""One export for all tests of the folder."""

import pytest

from albert_keras.serving.publish import export


@pytest.fixture(scope="session")
def tiny_export(tiny_run, tmp_path_factory):
    """Returns the folder of a name with one version."""
    out = tmp_path_factory.mktemp("saved_models") / "tiny"
    export(tiny_run, out)
    return out
