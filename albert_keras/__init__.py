"""Pre-train, fine-tune and serve ALBERT with TensorFlow."""

import importlib
import importlib.metadata
from typing import TYPE_CHECKING, Any

from data_pipeline.tensorflow_line import silence_startup, use_keras_2

if TYPE_CHECKING:  # for type checkers and editors, which do not see names loaded at first use
    from albert_keras.config import AlbertConfig as AlbertConfig
    from albert_keras.conversion.convert import convert as convert
    from albert_keras.distillation.distill import distill as distill
    from albert_keras.distillation.task import distill_task as distill_task
    from albert_keras.formats.open_model import (
        load_tokenizer as load_tokenizer,
        open_model as open_model,
    )
    from albert_keras.models.encoder import AlbertEncoder as AlbertEncoder
    from albert_keras.models.objective_model import Objective as Objective
    from albert_keras.models.preprocessor import AlbertPreprocessor as AlbertPreprocessor
    from albert_keras.models.pretraining import AlbertForPretraining as AlbertForPretraining
    from albert_keras.models.task_model import AlbertForTask as AlbertForTask
    from albert_keras.optimization.config import OptimizerConfig as OptimizerConfig
    from albert_keras.optimization.lamb import AdamW as AdamW, Lamb as Lamb
    from albert_keras.optimization.muon import Muon as Muon
    from albert_keras.optimization.schedules import WarmupPolynomialDecay as WarmupPolynomialDecay
    from albert_keras.serving.predictor import (
        Predictor as Predictor,
        fill_mask as fill_mask,
    )
    from albert_keras.serving.publish import export as export
    from albert_keras.tasks.choice.model import AlbertForMultipleChoice as AlbertForMultipleChoice
    from albert_keras.tasks.classification.model import (
        AlbertForClassification as AlbertForClassification,
        AlbertForMultiLabel as AlbertForMultiLabel,
        AlbertForRegression as AlbertForRegression,
    )
    from albert_keras.tasks.evaluate import evaluate_task as evaluate_task
    from albert_keras.tasks.finetune import finetune as finetune
    from albert_keras.tasks.finetune_config import FinetuneConfig as FinetuneConfig
    from albert_keras.tasks.finetuned import open_finetuned as open_finetuned
    from albert_keras.tasks.predict import predict_task as predict_task
    from albert_keras.tasks.similarity.model import AlbertForSimilarity as AlbertForSimilarity
    from albert_keras.tasks.spans.model import AlbertForSpans as AlbertForSpans
    from albert_keras.tasks.tagging.model import AlbertForTagging as AlbertForTagging
    from albert_keras.tasks.task_config import TaskConfig as TaskConfig
    from albert_keras.texts.embed import embed as embed
    from albert_keras.texts.pair_accuracy import (
        evaluate_minimal_pairs as evaluate_minimal_pairs,
    )
    from albert_keras.texts.sentence_scores import score_sentences as score_sentences
    from albert_keras.texts.similar import similar as similar
    from albert_keras.training.config import (
        PretrainingConfig as PretrainingConfig,
        TrainingConfig as TrainingConfig,
    )
    from albert_keras.training.evaluate import evaluate as evaluate
    from albert_keras.training.pretrain import pretrain as pretrain

silence_startup()
use_keras_2()

#: Public name -> module that holds it. Loaded at first use, so that `import albert_keras` and
#: `albert-keras --help` do not wait for TensorFlow.
_HOMES = {
    "AdamW": "albert_keras.optimization.lamb",
    "AlbertConfig": "albert_keras.config",
    "AlbertEncoder": "albert_keras.models.encoder",
    "AlbertForPretraining": "albert_keras.models.pretraining",
    "AlbertForClassification": "albert_keras.tasks.classification.model",
    "AlbertForMultiLabel": "albert_keras.tasks.classification.model",
    "AlbertForRegression": "albert_keras.tasks.classification.model",
    "AlbertForMultipleChoice": "albert_keras.tasks.choice.model",
    "AlbertForTagging": "albert_keras.tasks.tagging.model",
    "AlbertForSpans": "albert_keras.tasks.spans.model",
    "AlbertForSimilarity": "albert_keras.tasks.similarity.model",
    "AlbertForTask": "albert_keras.models.task_model",
    "AlbertPreprocessor": "albert_keras.models.preprocessor",
    "FinetuneConfig": "albert_keras.tasks.finetune_config",
    "Lamb": "albert_keras.optimization.lamb",
    "Muon": "albert_keras.optimization.muon",
    "Objective": "albert_keras.models.objective_model",
    "OptimizerConfig": "albert_keras.optimization.config",
    "Predictor": "albert_keras.serving.predictor",
    "PretrainingConfig": "albert_keras.training.config",
    "TaskConfig": "albert_keras.tasks.task_config",
    "TrainingConfig": "albert_keras.training.config",
    "WarmupPolynomialDecay": "albert_keras.optimization.schedules",
    "convert": "albert_keras.conversion.convert",
    "distill": "albert_keras.distillation.distill",
    "distill_task": "albert_keras.distillation.task",
    "embed": "albert_keras.texts.embed",
    "evaluate": "albert_keras.training.evaluate",
    "evaluate_minimal_pairs": "albert_keras.texts.pair_accuracy",
    "evaluate_task": "albert_keras.tasks.evaluate",
    "export": "albert_keras.serving.publish",
    "fill_mask": "albert_keras.serving.predictor",
    "finetune": "albert_keras.tasks.finetune",
    "load_tokenizer": "albert_keras.formats.open_model",
    "open_finetuned": "albert_keras.tasks.finetuned",
    "open_model": "albert_keras.formats.open_model",
    "predict_task": "albert_keras.tasks.predict",
    "pretrain": "albert_keras.training.pretrain",
    "score_sentences": "albert_keras.texts.sentence_scores",
    "similar": "albert_keras.texts.similar",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return importlib.metadata.version("albert-keras")
    if name not in _HOMES:
        raise AttributeError(f"module `albert_keras` has no attribute `{name}`")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
