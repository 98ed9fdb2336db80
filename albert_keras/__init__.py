"""Pre-train, fine-tune and serve ALBERT with TensorFlow."""

from typing import TYPE_CHECKING

from data_pipeline.lazy_names import attach
from data_pipeline.tensorflow_line import prepare_tensorflow

if TYPE_CHECKING:  # for type checkers and editors, which do not see names loaded at first use
    from albert_keras.config import AlbertConfig as AlbertConfig
    from albert_keras.conversion.convert import convert as convert
    from albert_keras.distillation.distill import distill as distill
    from albert_keras.formats.open_weights import open_weights as open_weights
    from albert_keras.formats.vocabulary import load_tokenizer as load_tokenizer
    from albert_keras.models.encoder import AlbertEncoder as AlbertEncoder
    from albert_keras.models.encoder_with_head import AlbertForTask as AlbertForTask
    from albert_keras.models.multiple_choice import (
        AlbertForMultipleChoice as AlbertForMultipleChoice,
        AlbertMultipleChoicePreprocessor as AlbertMultipleChoicePreprocessor,
    )
    from albert_keras.models.objective import Objective as Objective
    from albert_keras.models.preprocessor import AlbertPreprocessor as AlbertPreprocessor
    from albert_keras.models.pretraining import AlbertForPretraining as AlbertForPretraining
    from albert_keras.models.question_answering import (
        AlbertForQuestionAnswering as AlbertForQuestionAnswering,
        AlbertQuestionAnsweringPreprocessor as AlbertQuestionAnsweringPreprocessor,
    )
    from albert_keras.models.similarity import (
        AlbertForSimilarity as AlbertForSimilarity,
        AlbertSimilarityPreprocessor as AlbertSimilarityPreprocessor,
    )
    from albert_keras.models.text_classifiers import (
        AlbertForClassification as AlbertForClassification,
        AlbertForMultiLabel as AlbertForMultiLabel,
        AlbertForRegression as AlbertForRegression,
    )
    from albert_keras.models.text_model import AlbertForTexts as AlbertForTexts
    from albert_keras.models.token_classification import (
        AlbertForTokenClassification as AlbertForTokenClassification,
        AlbertTokenClassificationPreprocessor as AlbertTokenClassificationPreprocessor,
    )
    from albert_keras.optimization.config import OptimizerConfig as OptimizerConfig
    from albert_keras.optimization.lamb import AdamW as AdamW, Lamb as Lamb
    from albert_keras.optimization.muon import Muon as Muon
    from albert_keras.optimization.schedules import WarmupPolynomialDecay as WarmupPolynomialDecay
    from albert_keras.serving.predictor import (
        Predictor as Predictor,
        fill_mask as fill_mask,
    )
    from albert_keras.serving.publish import export as export
    from albert_keras.tasks.evaluate import evaluate_task as evaluate_task
    from albert_keras.tasks.finetune import finetune as finetune
    from albert_keras.tasks.finetune_config import FinetuneConfig as FinetuneConfig
    from albert_keras.tasks.finetuned import open_finetuned as open_finetuned
    from albert_keras.tasks.predict import predict_task as predict_task
    from albert_keras.tasks.task_config import TaskConfig as TaskConfig
    from albert_keras.texts.embed import embed as embed
    from albert_keras.texts.similar import similar as similar
    from albert_keras.training.config import (
        PretrainingConfig as PretrainingConfig,
        TrainingConfig as TrainingConfig,
    )
    from albert_keras.training.evaluate import evaluate as evaluate
    from albert_keras.training.pretrain import pretrain as pretrain

prepare_tensorflow()

# The names above are loaded at first use, so that the import does not wait for TensorFlow.
__getattr__, __dir__, __all__ = attach(__name__, __file__)
