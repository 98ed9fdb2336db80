"""Configuration of a distillation: what a student learns from its teacher, and how much."""

from typing import Any, ClassVar

from pydantic import field_validator

from albert_keras.training.config import PretrainingConfig
from data_pipeline.settings import Rule, Settings, option

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
    """All settings of a distillation except its data; they extend PretrainingConfig.

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
