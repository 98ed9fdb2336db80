"""A distillation of the small run, and its settings."""

import pytest

from albert_keras.distillation.config import DistillationConfig
from albert_keras.distillation.distill import distill


@pytest.fixture(scope="session")
def distillation(tiny_training):
    """Returns settings for a student of one layer, trained as `tiny_run`, its teacher."""
    values = tiny_training.model_dump(exclude_unset=True)
    values["model"] |= {"num_hidden_layers": 1}
    return DistillationConfig(**values)


@pytest.fixture(scope="session")
def tiny_student(tiny_run, tiny_records, distillation, made_once):
    """Returns the folder of a finished distillation; tests that change it copy it first."""
    return made_once(
        "tiny-student", lambda folder: distill(tiny_run, tiny_records, folder, distillation)
    )
