"""Configuration of a distillation: what a student learns from its teacher, and how much."""

from typing import Any, ClassVar

from pydantic import field_validator

from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.training.config import PretrainingConfig
from data_pipeline.settings import Rule, Settings, option, setting

#: Default of `model.size`.
_SIZE = "distilbert-mini"


class TeachingConfig(Settings):
    """Losses between student and teacher, and the student's first weights.

    Source:
        Sanh et al. 2019 (https://arxiv.org/abs/1910.01108) and the settings that they published in
        huggingface/transformers-research-projects, `distillation/README.md`; hidden states of each
        layer: TinyBERT, section 3.1 (Jiao et al. 2020, https://arxiv.org/abs/1909.10351).
    """

    temperature: float = option(
        2.0, "Temperature of the soft targets: higher values make them more even.", gt=0
    )
    soft_target_weight: float = option(
        5.0, "Weight of the divergence of the student from the teacher's predictions.", ge=0
    )
    masked_lm_weight: float = option(2.0, "Weight of the masked-LM loss.", ge=0)
    cosine_weight: float = option(
        1.0,
        "Weight of the cosine distance between the hidden states of student and teacher after each "
        "layer, which requires equal hidden sizes.",
        ge=0,
    )
    warm_start: bool = option(
        True,
        "Start from weights of the teacher, which requires equal layers, instead of random ones.",
    )

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("soft_target_weight", "cosine_weight"),
            lambda soft, cosine: soft > 0 or cosine > 0,
            "or `cosine_weight` must be above 0, or the student learns nothing from the teacher",
        ),
    )


class DistillationConfig(PretrainingConfig):
    """All settings of a distillation on records except its data; they extend PretrainingConfig.

    Attributes:
        model: dict. The student, as in PretrainingConfig.
        distillation: TeachingConfig.
    """

    model: dict[str, Any] = option(
        {"size": _SIZE},
        "Named model to train, such as distilbert-base.",
        keyword="size",
        flag="--student",
        key="size",
    )
    distillation: TeachingConfig = TeachingConfig()

    @field_validator("model", mode="before")
    @classmethod
    def _has_a_size(cls, model):
        return {"size": _SIZE} | model if isinstance(model, dict) else model


class TaskTeachingConfig(Settings):
    """Losses of a student that learns a task, and its first weights.

    Source:
        The second distillation of Sanh et al., section 3, with the settings that they published,
        `run_squad_w_distillation.py`.
    """

    temperature: float = option(2.0, "Temperature of the teacher's answers.", gt=0)
    soft_target_weight: float = option(
        0.5, "Weight of the divergence of the student from the teacher's answers.", gt=0
    )
    answer_weight: float = setting(0.5, "Weight of the loss of the examples' own answers.", ge=0)


class TaskDistillationConfig(FinetuneConfig):
    """All settings of a distillation on a task; they extend FinetuneConfig."""

    distillation: TaskTeachingConfig = TaskTeachingConfig()
