"""The models that Keras must know before it loads a `.keras` file."""

import importlib

#: By name, as these modules are above the readers of files.
_MODULES = (
    "albert_keras.models.encoder",
    "albert_keras.models.preprocessor",
    "albert_keras.models.pretraining",
    "albert_keras.optimization.lamb",
    "albert_keras.optimization.muon",
    "albert_keras.optimization.schedules",
    "albert_keras.tasks.models",
)


def register_classes() -> None:
    """Registers all models and optimizers with Keras, so that `load_model` finds them."""
    for module in _MODULES:
        importlib.import_module(module)
