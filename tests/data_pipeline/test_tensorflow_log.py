import os
import subprocess
import sys

import pytest

_TENSORFLOW = """
import os
for line in (
    "WARNING: All log messages before absl::InitializeLog() is called are written to STDERR",
    "I0000 00:00:1.1 1 port.cc:153] oneDNN custom operations are on.",
    "I0000 00:00:1.1 1 cudart_stub.cc:31] Could not find cuda drivers on your machine.",
    "something that concerns the user",
):
    os.write(2, line.encode() + b"\\n")
value = 3
"""
_PROGRAM = """
from importlib.util import find_spec
from data_pipeline import tensorflow_log
tensorflow_log.silence_import()
find_spec("tensorflow")
import tensorflow
print(tensorflow.value)
"""


@pytest.mark.parametrize("body, status", [("", 0), ("raise ImportError('no AVX')", 1)])
def test_the_import_prints_only_what_concerns_the_user(tmp_path, body, status):
    (tmp_path / "tensorflow.py").write_text(_TENSORFLOW + body, encoding="utf-8")
    places = os.pathsep.join([str(tmp_path), os.getcwd()])
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM],
        env={**os.environ, "PYTHONPATH": places},
        capture_output=True,
        text=True,
    )
    lines = done.stderr.splitlines()
    assert done.returncode == status
    assert lines[0] == "something that concerns the user"
    assert (lines[1:] == []) == (status == 0) and ("no AVX" in lines[-1]) == (status == 1)
