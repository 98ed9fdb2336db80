import pytest

import albert_keras
from albert_keras.models.text_model import AlbertForTexts
from albert_keras.tasks.kinds import OFFICIAL_TASKS, OWN_TASKS, task_class
from albert_keras.tasks.task import Task
from tests.albert_keras.tasks.small_tasks import SETTINGS, make_task


@pytest.mark.parametrize("kind", SETTINGS)
def test_a_kind_has_classes_inputs_and_tasks(kind):
    found = task_class(kind)
    assert issubclass(found, Task) and found.kind == kind
    assert issubclass(getattr(albert_keras, found.model_name), AlbertForTexts)
    task = make_task(kind)
    assert type(task) is found and task.fields[: len(found.inputs)] == found.inputs
    # Kinds with several labels share the names of tasks with the kinds with one.
    assert found.has_several_labels or kind in {*OFFICIAL_TASKS.values(), *OWN_TASKS.values()}
