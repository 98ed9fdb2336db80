"""The lines of TensorFlow, the environment in which it is started, and how XLA is prepared.

What differs between their Keras is in `albert_keras/keras_versions.py`.

The module imports no TensorFlow when it is imported.
"""

import contextlib
import functools
import os
import sys
import tempfile
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple


class Line(NamedTuple):
    """The versions that the project requires on some versions of Python, as in pyproject.toml."""

    pythons: tuple[tuple[int, int], ...]
    tensorflow: str
    keras: str  # the versions that it has, or the first numbers of them

    @property
    def series(self) -> str:
        """The minor version of TensorFlow, such as "2.15"."""
        return self.tensorflow.rpartition(".")[0]


#: All lines, the default one first.
LINES = (
    Line(((3, 10), (3, 11)), "2.15.1", "2.15"),
    Line(((3, 12), (3, 13)), "2.21.0", "3"),
)

#: "0" prints everything, "1" hides information, "2" warnings as well, "3" errors as well.
LOG_VARIABLE = "TF_CPP_MIN_LOG_LEVEL"
#: TensorFlow keeps the memory of the tensors of a CPU for the next step. The C library, which it
#: asks otherwise, returns that of large tensors to the system, which clears each page that it hands
#: out again: a quarter of the time of a step of a small model. The limit would be 64 GiB.
#: On a GPU, TensorFlow would take all memory at once, so that a second process finds none.
ENVIRONMENT = {
    LOG_VARIABLE: "3",
    "TF_CPU_ALLOCATOR_USE_BFC": "true",
    "TF_CPU_BFC_MEM_LIMIT_IN_MB": str(2**30),
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}
#: XLA reads it when it compiles for the first time.
XLA_VARIABLE = "XLA_FLAGS"
#: The flag that names the folder of CUDA, with the assembler and the functions of a GPU.
CUDA_FLAG = "--xla_gpu_cuda_data_dir"
#: How XLA compiles products for a GPU: by cuBLAS, which chooses the algorithm. Products of XLA's
#: own must be tried out first, which takes minutes; without that they are several times slower.
_GPU_PRODUCTS = {"--xla_gpu_enable_triton_gemm": "false", "--xla_gpu_autotune_level": "0"}
#: What XLA prints once in a process, whatever the variable is, between the lines of a run.
_NOISE = (b"before absl::InitializeLog()", b"Compiled cluster using XLA!")


def required_line(python: tuple[int, ...] = tuple(sys.version_info[:2])) -> Line:
    """Returns the line for a version of Python; the default one if none is released for it."""
    return next((line for line in LINES if python[:2] in line.pythons), LINES[0])


def prepare_tensorflow() -> None:
    """Sets the environment variables that TensorFlow reads, unless the user has set them.

    Both packages call it when they are imported.
    """
    for name, value in ENVIRONMENT.items():
        os.environ.setdefault(name, value)
    # tensorflow_hub, which tensorflow-text and keras-nlp import.
    warnings.filterwarnings("ignore", "pkg_resources is deprecated", UserWarning)


def trace_as_written() -> None:
    """Keeps AutoGraph from converting the functions of the project when they are traced.

    None of them needs it, and the conversion takes a quarter of the processor time of a short
    training: three steps of `pretrain` 22.6 s instead of 17.9. Functions of users, such as their
    layers and objectives, are converted as in Keras, wherever they are called from.
    """
    # There is no public setting by package. Without this one, only the start is slower.
    with contextlib.suppress(ImportError):
        from tensorflow.python.autograph.core import config

        rules = map(config.DoNotConvert, ("albert_keras", "data_pipeline"))
        config.CONVERSION_RULES = (*config.CONVERSION_RULES, *rules)


def cuda_tools(path: Iterable[str] | None = None) -> Path | None:
    """Returns the folder of NVIDIA's packages that XLA needs on a GPU, or None.

    It contains `bin/ptxas`, the assembler, and `nvvm/libdevice`, the functions of a GPU. TensorFlow
    2.15 looks for them in the folders of a CUDA installation alone.

    Args:
        path: Where packages are looked for; None is `sys.path`.
    """
    for folder in sys.path if path is None else path:
        for tools in Path(folder or ".", "nvidia").glob("c*"):  # cuda_nvcc, or cu13 and so on
            if (tools / "nvvm" / "libdevice").is_dir():
                return tools
    return None


def xla_flags(given: str, tools: Path | None) -> str:
    """Returns the flags of XLA for a GPU: those given, and ours for what they leave open."""
    flags = dict(_GPU_PRODUCTS)
    if tools is not None:
        flags[CUDA_FLAG] = str(tools)
    named = {flag.partition("=")[0] for flag in given.split()}
    return " ".join(
        [given, *(f"{name}={value}" for name, value in flags.items() if name not in named)]
    ).strip()


@functools.cache
def prepare_compiler() -> None:
    """Prepares XLA; call it before the first function is compiled.

    With a GPU, it sets the flags of XLA. It makes XLA print its first lines now, and drops them,
    unless the variable of the log asks for them. Only a trivial function is compiled here.
    """
    import tensorflow as tf

    if tf.config.list_physical_devices("GPU"):
        tools = cuda_tools()
        os.environ[XLA_VARIABLE] = xla_flags(os.environ.get(XLA_VARIABLE, ""), tools)
        if tools is not None:  # XLA starts the assembler as a program
            os.environ["PATH"] = os.pathsep.join([str(tools / "bin"), os.environ.get("PATH", "")])
    if os.environ.get(LOG_VARIABLE) == "0":
        return

    with stderr_without(_NOISE), tf.init_scope(), tf.device("CPU:0"):
        tf.function(tf.identity, jit_compile=True, autograph=False)(tf.constant(0.0))


@contextlib.contextmanager
def stderr_without(noise: Iterable[bytes]):
    """Context in which nothing is written to stderr; at its end all lines without `noise` are."""
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
            lines = [line for line in file if not any(part in line for part in noise)]
            with contextlib.suppress(OSError):
                os.write(2, b"".join(lines))


def _flush():
    if sys.stderr is not None:
        sys.stderr.flush()
