"""Checks which Keras TensorFlow will load. TensorFlow 2.15 needs the Keras 2.15 it came with."""

import importlib.util
import os
import sys
from collections.abc import Callable, Mapping
from importlib import metadata
from pathlib import Path
from types import ModuleType

from albert_keras.doctor.findings import FAULT, OK, WARNING, Finding
from albert_keras.doctor.packages import installed_version

_TOPIC = "Keras"
_PIN = "pip install 'keras==2.15.0'"
#: The values with which TensorFlow loads the package `tf_keras` in place of `keras`.
_LEGACY = ("true", "True", "1")


def keras_findings(
    environ: Mapping[str, str] = os.environ,
    modules: Mapping[str, ModuleType] = sys.modules,
    version: Callable[[str], str] = metadata.version,
    origin: Callable[[], str | None] | None = None,
) -> list[Finding]:
    """Checks environment variables, imported modules and the installed Keras.

    The arguments are the environment, the imported modules, the version of a distribution (raises
    PackageNotFoundError), and the file that `import keras` would load; by default those of this
    process.
    """
    installed = installed_version("keras", version)
    found = []
    if (value := environ.get("TF_USE_LEGACY_KERAS")) in _LEGACY:
        text = f"TF_USE_LEGACY_KERAS={value} makes TensorFlow load `tf_keras` in place of `keras`"
        if installed_version("tf_keras", version) is None:
            text += ", and `tf_keras` is not installed"
        found.append(Finding(_TOPIC, FAULT, text, "unset TF_USE_LEGACY_KERAS"))
    if (backend := environ.get("KERAS_BACKEND", "tensorflow")) != "tensorflow":
        text = f"KERAS_BACKEND={backend} must be tensorflow or not set"
        found.append(Finding(_TOPIC, WARNING, text, "unset KERAS_BACKEND"))
    imported = getattr(modules.get("keras"), "__version__", "")
    if imported.startswith("3."):
        text = f"Keras {imported} was imported before TensorFlow, which then uses it"
        fix = f"{_PIN}, then start Python again and import albert_keras before keras"
        found.append(Finding(_TOPIC, FAULT, text, fix))
    elif installed is not None and not installed.startswith("2.15."):
        text = f"Keras {installed} is installed; TensorFlow 2.15 needs Keras 2.15"
        found.append(Finding(_TOPIC, FAULT, text, _PIN))
    elif (hiding := _hiding(origin or _origin, version)) is not None:
        text = f"`{hiding}` hides the installed Keras: Python finds it first"
        fix = f"mv '{hiding}' '{hiding}.renamed', or start the program in another folder"
        found.append(Finding(_TOPIC, FAULT, text, fix))
    if not found and installed is not None:
        found.append(Finding(_TOPIC, OK, f"TensorFlow uses Keras {installed}"))
    return found


def _origin():
    spec = None if "keras" in sys.modules else importlib.util.find_spec("keras")
    return spec and spec.origin


def _hiding(origin, version):
    """Returns the module or package `keras` that is not in a folder of packages, or None."""
    file = origin()
    if file is None or installed_version("keras", version) is None:
        return None
    path = Path(file).parent if Path(file).name == "__init__.py" else Path(file)
    return None if path.parent.name in ("site-packages", "dist-packages") else path
