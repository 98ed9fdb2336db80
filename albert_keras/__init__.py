"""Pre-train, fine-tune and serve ALBERT with TensorFlow."""

import importlib

#: Public name -> module that holds it. Loaded at first use, so that `import albert_keras` and
#: `albert-keras --help` do not wait for TensorFlow.
_HOMES = {
    "AlbertConfig": "albert_keras.config",
    "AlbertEncoder": "albert_keras.models.encoder",
    "AlbertForPretraining": "albert_keras.models.pretraining",
    "AlbertForTask": "albert_keras.models.finetuning",
    "FinetuneConfig": "albert_keras.finetuning.config",
    "FinetunedModels": "albert_keras.finetuning.finetuned",
    "Lamb": "albert_keras.optimization.lamb",
    "OptimizerConfig": "albert_keras.optimization.config",
    "Predictor": "albert_keras.serving.predictor",
    "PretrainingConfig": "albert_keras.training.config",
    "TaskConfig": "albert_keras.tasks.task_config",
    "TrainingConfig": "albert_keras.training.config",
    "convert": "albert_keras.conversion.convert",
    "evaluate": "albert_keras.training.evaluate",
    "evaluate_task": "albert_keras.finetuning.evaluate",
    "export": "albert_keras.serving.publish",
    "fill_mask": "albert_keras.serving.predictor",
    "finetune": "albert_keras.finetuning.finetune",
    "layer_plan": "albert_keras.models.sharing",
    "predict": "albert_keras.serving.predictor",
    "predict_task": "albert_keras.finetuning.predict",
    "pretrain": "albert_keras.training.pretrain",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module `albert_keras` has no attribute `{name}`")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__():
    return [*globals(), *__all__]
