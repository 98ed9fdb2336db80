"""Pre-train, fine-tune and serve ALBERT with TensorFlow."""

import importlib

#: Public name -> module that holds it. Loaded at first use, so that `import albert_keras` and
#: `albert-keras --help` do not wait for TensorFlow.
_HOMES = {
    "AlbertConfig": "albert_keras.config",
    "AlbertEncoder": "albert_keras.models.encoder",
    "AlbertForPretraining": "albert_keras.models.pretraining",
    "Lamb": "albert_keras.optimization.lamb",
    "OptimizerConfig": "albert_keras.optimization.config",
    "Predictor": "albert_keras.serving.predictor",
    "PretrainingConfig": "albert_keras.training.config",
    "TrainingConfig": "albert_keras.training.config",
    "evaluate": "albert_keras.training.evaluate",
    "export": "albert_keras.serving.publish",
    "layer_plan": "albert_keras.models.sharing",
    "predict": "albert_keras.serving.predictor",
    "pretrain": "albert_keras.training.pretrain",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module `albert_keras` has no attribute `{name}`")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__():
    return [*globals(), *__all__]
