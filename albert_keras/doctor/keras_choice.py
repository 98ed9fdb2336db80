"""Checks which Keras TensorFlow will load; it needs Keras 2.

TensorFlow 2.15 came with it, as the package keras. Later ones load the package tf-keras, which
`data_pipeline.tensorflow_line` selects, and are free to have Keras 3 installed and imported.
"""

import functools
import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType

from albert_keras.doctor.findings import FAULT, OK, WARNING, Finding
from albert_keras.doctor.packages import installed_version
from data_pipeline.tensorflow_line import VARIABLE, Line, required_line, uses_keras_3

_TOPIC = "Keras"
#: The values with which TensorFlow loads the package `tf_keras` in place of `keras`.
_LEGACY = ("true", "True", "1")


def is_keras_of(line: Line, version: str) -> bool:
    """Returns whether a version of Keras is the one that a line of TensorFlow needs."""
    return version.startswith(f"{line.series}.")


def keras_command(line: Line) -> str:
    """Returns the command that installs the Keras that a line of TensorFlow needs."""
    return f"pip install '{line.keras_package}=={line.keras}'"


def keras_findings(
    environ: Mapping[str, str] = os.environ,
    modules: Mapping[str, ModuleType] = sys.modules,
    version: Callable[[str], str] = metadata.version,
    origin: Callable[[], str | None] | None = None,
    line: Line | None = None,
) -> list[Finding]:
    """Checks environment variables, imported modules and the installed Keras.

    The arguments are the environment, the imported modules, the version of a distribution (raises
    PackageNotFoundError), the file that importing Keras 2 would load, and the required versions.
    The defaults are taken from this process.
    """
    line = line or required_line()
    package, pin = line.keras_package, keras_command(line)
    installed = installed_version(package, version)
    found = []
    if (backend := environ.get("KERAS_BACKEND", "tensorflow")) != "tensorflow":
        text = f"KERAS_BACKEND={backend} must be tensorflow or not set"
        found.append(Finding(_TOPIC, WARNING, text, "unset KERAS_BACKEND"))
    if package == "keras":
        found += _keras_3_findings(environ, modules, version, line)
    elif installed is None:
        text = f"{package} is not installed; TensorFlow {line.series} needs it as its Keras 2"
        found.append(Finding(_TOPIC, FAULT, text, pin))
    elif uses_keras_3(modules):
        text = f"TensorFlow's Keras 3 was used before albert_keras, which needs {package}"
        fix = f"export {VARIABLE}=1, or import albert_keras first"
        found.append(Finding(_TOPIC, FAULT, text, fix))
    if any(one.state == FAULT and one.fix.startswith(pin) for one in found):
        return found
    if installed is not None and not is_keras_of(line, installed):
        text = f"{_name(line)} {installed} is installed; "
        text += f"TensorFlow {line.series} needs {_name(line)} {line.series}"
        found.append(Finding(_TOPIC, FAULT, text, pin))
    elif (hiding := _hiding(package, origin, version)) is not None:
        text = f"`{hiding}` hides the installed {_name(line)}: Python finds it first"
        fix = f"mv '{hiding}' '{hiding}.renamed', or start the program in another folder"
        found.append(Finding(_TOPIC, FAULT, text, fix))
    if not found and installed is not None:
        found.append(Finding(_TOPIC, OK, f"TensorFlow uses {_name(line)} {installed}"))
    return found


def _name(line):
    return "Keras" if line.keras_package == "keras" else line.keras_package


def _keras_3_findings(environ, modules, version, line):
    """Checks that nothing makes a TensorFlow that came with Keras 2 use another Keras."""
    found = []
    if (value := environ.get(VARIABLE)) in _LEGACY:
        text = f"{VARIABLE}={value} makes TensorFlow load `tf_keras` in place of `keras`"
        if installed_version("tf_keras", version) is None:
            text += ", and `tf_keras` is not installed"
        found.append(Finding(_TOPIC, FAULT, text, f"unset {VARIABLE}"))
    imported = getattr(modules.get("keras"), "__version__", "")
    if imported.startswith("3."):
        text = f"Keras {imported} was imported before TensorFlow, which then uses it"
        fix = f"{keras_command(line)}, then start Python again and import albert_keras before keras"
        found.append(Finding(_TOPIC, FAULT, text, fix))
    return found


def _hiding(package, origin, version):
    """Returns the module or package that Python imports in place of a distribution, or None."""
    file = (origin or functools.partial(_origin, package.replace("-", "_")))()
    if file is None or installed_version(package, version) is None:
        return None
    path = Path(file).parent if Path(file).name == "__init__.py" else Path(file)
    return None if path.parent.name in ("site-packages", "dist-packages") else path


def _origin(module):
    spec = None if module in sys.modules else importlib.util.find_spec(module)
    return spec and spec.origin
