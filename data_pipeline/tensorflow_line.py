"""Which line of TensorFlow is installed, and the choice of Keras 2 on both.

The project runs on Keras 2. TensorFlow 2.15 contains it; since TensorFlow 2.16, `tensorflow.keras`
is Keras 3 unless an environment variable selects the package tf-keras, which is Keras 2. This is
the only module that tells the lines apart. It imports no TensorFlow, unless the program already
has.
"""

import functools
import os
import sys
from importlib import metadata
from typing import NamedTuple


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


def use_keras_2() -> None:
    """Makes `tensorflow.keras` Keras 2; call it before TensorFlow's Keras is used.

    Processes that this one starts inherit the setting. Another value of the variable is replaced,
    as nothing here works with Keras 3.

    Raises:
        ImportError: If `tensorflow.keras` is Keras 3 already, or tf-keras is not installed.
    """
    if not needs_tf_keras():
        return
    try:
        metadata.version("tf-keras")
    except metadata.PackageNotFoundError:
        line = required_line()
        raise ImportError(
            f"`tensorflow.keras` must be Keras 2. Received: Keras {metadata.version('keras')}, "
            "without the package tf-keras. Install the Keras 2 of TensorFlow "
            f"{line.tensorflow}: `pip install {line.keras_package}=={line.keras}`."
        ) from None
    os.environ[VARIABLE] = "1"
    tensorflow = sys.modules.get("tensorflow")
    if tensorflow is None:
        return
    if not tensorflow.keras.Model.__module__.startswith("tf_keras."):
        raise ImportError(
            "`tensorflow.keras` must be Keras 2, which is the package tf-keras. "
            f"Received: Keras {metadata.version('keras')}, which this program used first. Import "
            "albert_keras or data_pipeline before `tensorflow.keras` is used, or set "
            f"{VARIABLE}=1 in the environment."
        )
