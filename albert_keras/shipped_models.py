"""Models by name: those that come with this package, and those of the hub.

A shipped model is an export in `saved_models/` of the repository; a wheel has a copy of that folder
inside the package. No TensorFlow, so that commands can check names first.
"""

from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.hub import download, is_hub_name
from data_pipeline.errors import InputError, Mistake
from data_pipeline.settings import did_you_mean

#: Name -> what it is.
SHIPPED_MODELS = {"albert-mini-en": "a small English model, pre-trained on books and Wikipedia"}

_PACKAGE = Path(__file__).parent
#: Where the models are: in an installed package, or beside it in the repository.
FOLDERS = (_PACKAGE / "saved_models", _PACKAGE.parent / "saved_models")


def find_model(path: str | Path) -> Path:
    """Returns the path of a model, which may be the name of a shipped model or of one of the hub.

    A file or folder of that name in the working directory is preferred. A path that is neither a
    name nor close to one is returned unchanged.

    Raises:
        InputError: If there is no such path and the name is close to the name of a shipped
            model; if the shipped model is missing; or as `hub.download`.
    """
    if is_hub_name(path):
        return download(path).folder
    path = Path(path)
    is_name = len(path.parts) == 1 and not path.is_absolute()
    if not is_name or path.exists() or Path(f"{path}.index").is_file():
        return path
    if path.name in SHIPPED_MODELS:
        return _installed(path.name)
    hint = did_you_mean(path.name, SHIPPED_MODELS)
    if not hint.endswith("?"):
        return path
    is_size = path.name in AlbertConfig.names()
    size = ", which is the name of a size (`size`) and not of a trained model" if is_size else ""
    raise InputError(
        "A model must be given as a path that exists or as the name of a shipped model. Received: "
        f"`{path}`{size}{hint}",
        Mistake.NO_MODEL_OF_THIS_NAME,
    )


def _installed(name):
    """Returns the folder of a shipped model."""
    for folder in FOLDERS:
        if any((folder / name).glob("*/export.json")):
            return folder / name
    places = " or ".join(f"`{folder / name}`" for folder in FOLDERS)
    raise InputError(
        f"The shipped model `{name}` is not part of this installation. It must be at {places}; "
        "neither exists. Install the package from a complete copy of its repository with "
        "`pip install .`, or copy that folder from there."
    )
