"""Keeps the lines that TensorFlow prints while it starts out of stderr.

They concern its build (oneDNN, cuDNN factories, TensorRT, instruction sets) and the first program
that XLA compiles, never the program of a user. TensorFlow raises its errors in Python as well. Set
the variable to "0" to see everything. This module imports no TensorFlow.
"""

import contextlib
import functools
import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
import warnings

from data_pipeline.tensorflow_line import needs_tf_keras

#: "0" prints everything, "1" hides information, "2" warnings as well, "3" errors as well.
VARIABLE = "TF_CPP_MIN_LOG_LEVEL"
#: What XLA prints once in a process, whatever the variable is: its library logs these lines before
#: anything can initialize its log.
_LINES_OF_COMPILER = (b"before absl::InitializeLog()", b"Compiled cluster using XLA!")
#: What TensorFlow 2.16 and later print while they are imported, for the same reason.
_LINES_OF_IMPORT = (_LINES_OF_COMPILER[0], b" port.cc:", b" cudart_stub.cc:")


def silence_startup() -> None:
    """Hides the lines of TensorFlow's start, unless the variable is set; call it before the import.

    Processes that this one starts inherit the setting.
    """
    os.environ.setdefault(VARIABLE, "3")
    if needs_tf_keras() and os.environ[VARIABLE] != "0" and "tensorflow" not in sys.modules:
        silence_import()
    # tensorflow_hub, which tensorflow-text and keras-nlp import.
    warnings.filterwarnings("ignore", "pkg_resources is deprecated", UserWarning)


@functools.cache
def silence_import() -> None:
    """Drops what TensorFlow prints while it is imported, when that happens."""
    sys.meta_path.insert(0, _QuietImport())


class _QuietImport(importlib.abc.MetaPathFinder):
    """Finds TensorFlow as Python does, and lets its import print less."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname != "tensorflow":
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def execute_quietly(module):
                with _stderr_without(_LINES_OF_IMPORT):
                    execute(module)

            spec.loader.exec_module = execute_quietly
        return spec


@functools.cache
def silence_compiler() -> None:
    """Makes XLA print its first lines now, and drops them, unless the variable asks for them.

    Call it before the first function is compiled. Only a trivial one is compiled here.
    """
    if os.environ.get(VARIABLE, "0") == "0":
        return
    import tensorflow as tf

    with _stderr_without(_LINES_OF_COMPILER), tf.init_scope(), tf.device("CPU:0"):
        tf.function(tf.identity, jit_compile=True, autograph=False)(tf.constant(0.0))


@contextlib.contextmanager
def _stderr_without(parts):
    """Context in which nothing is written to stderr; at its end all lines without `parts` are."""
    try:
        stderr = os.dup(2)
    except OSError:  # closed
        yield
        return
    with tempfile.TemporaryFile() as file:
        _flush()
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            _flush()
            os.dup2(stderr, 2)
            os.close(stderr)
            file.seek(0)
            lines = [line for line in file if not any(part in line for part in parts)]
            with contextlib.suppress(OSError):
                os.write(2, b"".join(lines))


def _flush():
    if sys.stderr is not None:
        sys.stderr.flush()
