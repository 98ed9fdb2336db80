import pytest

from albert_keras.models.text_model import AlbertForTexts
from albert_keras.serving.graph.string_tasks import TaskModel
from albert_keras.tasks.kinds import KINDS, load_class
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import TASK_NAMES
from tests.albert_keras.tasks.small_tasks import make_task


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_has_classes_fields_and_tasks(kind):
    assert issubclass(load_class(kind.task_class), Task)
    assert issubclass(load_class(kind.model_class), AlbertForTexts)
    assert issubclass(load_class(kind.graph_class), TaskModel)
    task = make_task(kind.name)
    assert task.kind is kind and task.fields[: len(kind.fields)] == kind.fields
    # Kinds with several labels share the names of tasks with the kinds with one.
    assert kind.official_tasks or kind.own_tasks or kind.has_several_labels
    assert set(kind.official_tasks + kind.own_tasks) <= set(TASK_NAMES)
