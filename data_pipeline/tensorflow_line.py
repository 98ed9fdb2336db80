"""Which line of TensorFlow is installed, the choice of Keras 2 on both, and a quiet start.

The project runs on Keras 2. TensorFlow 2.15 contains it; since TensorFlow 2.16, `tensorflow.keras`
is Keras 3 unless an environment variable selects the package tf-keras, which is Keras 2. This is
the only module that distinguishes the lines.

While TensorFlow starts, it prints lines to stderr that concern its build (oneDNN, cuDNN factories,
TensorRT, instruction sets) and the first program that XLA compiles, never the program of a user.
They are kept out; TensorFlow raises its errors in Python as well.

The module imports no TensorFlow when it is imported.
"""

import contextlib
import functools
import importlib.abc
import importlib.machinery
import os
import sys
import tempfile
import warnings
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType
from typing import NamedTuple

from data_pipeline.errors import InputError


class Line(NamedTuple):
    """The versions that the project requires on some versions of Python, as in pyproject.toml."""

    pythons: tuple[tuple[int, int], ...]
    tensorflow: str
    keras_package: str  # the package that is Keras 2
    keras: str

    @property
    def series(self) -> str:
        """The minor version of TensorFlow, such as "2.15"."""
        return self.tensorflow.rpartition(".")[0]


#: All lines, the default one first.
LINES = (
    Line(((3, 10), (3, 11)), "2.15.1", "keras", "2.15.0"),
    Line(((3, 12), (3, 13)), "2.21.0", "tf-keras", "2.21.0"),
)

#: TensorFlow reads it when an attribute of `tensorflow.keras` is used for the first time.
VARIABLE = "TF_USE_LEGACY_KERAS"
#: "0" prints everything, "1" hides information, "2" warnings as well, "3" errors as well.
LOG_VARIABLE = "TF_CPP_MIN_LOG_LEVEL"
#: TensorFlow keeps the memory of the tensors of a CPU for the next step. The C library, which it
#: asks otherwise, returns that of large tensors to the system, which clears each page that it hands
#: out again: a quarter of the time of a step of a small model. The limit would be 64 GiB.
#: On a GPU, TensorFlow would take all memory at once, so that a second process finds none.
ALLOCATOR = {
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
#: What XLA prints once in a process, and TensorFlow 2.16 and later while they are imported: their
#: libraries log these lines, whatever the variable is, before anything can initialize their log.
_NOISE = (
    b"before absl::InitializeLog()",
    b"Compiled cluster using XLA!",
    b" port.cc:",
    b" cudart_stub.cc:",
)
#: What modules that need TensorFlow import.
_TENSORFLOW = ("tensorflow", "tensorflow_text")


def required_line(python: tuple[int, ...] = tuple(sys.version_info[:2])) -> Line:
    """Returns the line for a version of Python; the default one if none is released for it."""
    return next((line for line in LINES if python[:2] in line.pythons), LINES[0])


@functools.cache
def needs_tf_keras() -> bool:
    """Returns whether Keras 2 is the package tf-keras, as it is from TensorFlow 2.16 on.

    On this line there is no tensorflow-addons, and KerasHub takes the place of KerasNLP.
    """
    try:
        # Required by every build of TensorFlow, under whichever name the build is distributed.
        return not metadata.version("keras").startswith("2.")
    except metadata.PackageNotFoundError:
        return False


class Keras3Error(InputError, ImportError):
    """TensorFlow would use Keras 3, with which no module that needs TensorFlow can work."""


def prepare_tensorflow() -> None:
    """Makes `tensorflow.keras` Keras 2, and the start of TensorFlow quiet; call it before both.

    The variables that TensorFlow reads are set during its import alone, so that other programs,
    which this process may start, do not inherit them. Only those of `ALLOCATOR` stay, because the
    first operation reads them; values of the user come first. Another choice of Keras does not
    count, as nothing here works with Keras 3. If TensorFlow would use Keras 3 all the same, each
    module of the project that imports TensorFlow raises `Keras3Error`; other modules, such as the
    modules of `albert-keras doctor`, still work.
    """
    for name, value in ALLOCATOR.items():
        os.environ.setdefault(name, value)
    _FINDER.fault = keras_fault()
    if _FINDER not in sys.meta_path:
        sys.meta_path.insert(0, _FINDER)
        if "tensorflow" in sys.modules:
            _trace_as_written()
        # tensorflow_hub, which tensorflow-text and keras-nlp import.
        warnings.filterwarnings("ignore", "pkg_resources is deprecated", UserWarning)


def keras_fault() -> str | None:
    """Returns why `tensorflow.keras` is Keras 3, or None if it is Keras 2, or will be."""
    if not needs_tf_keras():
        return None
    try:
        metadata.version("tf-keras")
    except metadata.PackageNotFoundError:
        line = required_line()
        return (
            f"`tensorflow.keras` must be Keras 2. Received: Keras {metadata.version('keras')}, "
            "without the package tf-keras. Install the Keras 2 of TensorFlow "
            f"{line.tensorflow}: `pip install {line.keras_package}=={line.keras}`."
        )
    with _variables({VARIABLE: "1"}):
        if not uses_keras_3(sys.modules):
            return None
    return (
        "`tensorflow.keras` must be Keras 2, which is the package tf-keras. "
        f"Received: Keras {metadata.version('keras')}, which this program used first. Import "
        "albert_keras or data_pipeline before `tensorflow.keras` is used, or set "
        f"{VARIABLE}=1 in the environment."
    )


def uses_keras_3(modules: Mapping[str, ModuleType]) -> bool:
    """Returns whether TensorFlow is among the imported modules and does not use tf-keras."""
    tensorflow = modules.get("tensorflow")
    return tensorflow is not None and not tensorflow.keras.Model.__module__.startswith("tf_keras.")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds TensorFlow as Python does, and lets it read our variables while it is imported.

    With a `fault`, it also finds the modules of the project, except those that import TensorFlow.
    """

    fault: str | None = None

    def find_spec(self, fullname, path=None, target=None):
        is_refused = self.fault and fullname.startswith(("albert_keras.", "data_pipeline."))
        if fullname != "tensorflow" and not is_refused:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path)
        if spec is None or spec.loader is None:
            return spec
        if fullname == "tensorflow":
            execute = spec.loader.exec_module
            spec.loader.exec_module = functools.partial(_execute_quietly, execute)
        elif code := spec.loader.get_code(fullname):
            if any(name.split(".")[0] in _TENSORFLOW for name in code.co_names):
                raise Keras3Error(self.fault)
        return spec


_FINDER = _Finder()


def _execute_quietly(execute, module):
    level = os.environ.get(LOG_VARIABLE, "3")
    is_newer, values = needs_tf_keras(), {LOG_VARIABLE: level}
    if is_newer:  # with this variable, TensorFlow 2.15 would load both Keras
        values[VARIABLE] = "1"
    hides = is_newer and level != "0"
    with _variables(values), stderr_without(_NOISE) if hides else contextlib.nullcontext():
        execute(module)
        if is_newer:
            uses_keras_3({"tensorflow": module})  # the variable is read now
    _trace_as_written()


def _trace_as_written():
    """Keeps AutoGraph from converting the functions of the project when they are traced.

    None of them needs it, and the conversion takes seconds of processor time in each command that
    trains or exports. Functions of users, such as their layers and objectives, are converted as in
    Keras, wherever they are called from.
    """
    # There is no public setting by package. Without this one, only the start is slower.
    with contextlib.suppress(ImportError):
        from tensorflow.python.autograph.core import config

        rules = map(config.DoNotConvert, ("albert_keras", "data_pipeline"))
        config.CONVERSION_RULES = (*config.CONVERSION_RULES, *rules)


@contextlib.contextmanager
def _variables(values):
    """Context in which environment variables have these values."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


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
