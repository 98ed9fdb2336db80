import ast
import subprocess
import sys

import pytest

from albert_keras.serving.graph.task_models import TaskModel
from albert_keras.tasks.kind import load_class
from albert_keras.tasks.kinds import KINDS, build_task
from albert_keras.tasks.model import AlbertTaskModel
from albert_keras.tasks.task import Task
from albert_keras.tasks.task_config import TASK_NAMES, TaskConfig
from tests.repository import PACKAGES

PACKAGE = PACKAGES / "albert_keras"
#: Files that may spell names of kinds, and why.
SPELLED = {
    # Heads of checkpoints; two of the heads have the name of a kind.
    "formats/model_weights.py",
    "formats/hugging_face_tables.py",
    "tasks/given.py",  # names of tasks on tables
    "serving/graph/task_models.py",  # an output of the signature `multiple_choice`
}


def decisions(tree):
    """Yields the string constants that a file decides by: compared, keys, cases, beginnings."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.Dict):
            parts = [key for key in node.keys if key is not None]
        elif isinstance(node, ast.MatchValue):
            parts = [node.value]
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("startswith", "get"):
            parts = node.args[:1]
        else:
            continue
        for part in parts:
            for inner in ast.walk(part):
                if isinstance(inner, ast.Constant) and isinstance(inner.value, str):
                    yield inner.value


def test_nothing_else_compares_with_the_name_of_a_kind():
    users = {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if KINDS.keys() & set(decisions(ast.parse(path.read_text(encoding="utf-8"))))
    }
    assert users == SPELLED


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_classes_of_a_kind_exist(kind):
    assert issubclass(load_class(kind.task_class), Task)
    assert issubclass(load_class(kind.model_class), AlbertTaskModel)
    assert issubclass(load_class(kind.graph_class), TaskModel)


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_a_kind_has_a_sample_of_each_field_and_tasks(kind):
    assert set(kind.sample) == set(kind.fields)
    task = build_task(TaskConfig(**kind.check_task))
    assert task.kind is kind and task.fields[: len(kind.fields)] == kind.fields
    # Kinds with several labels share the names of tasks with the kinds with one.
    assert kind.official_tasks or kind.own_tasks or kind.has_several_labels
    assert set(kind.official_tasks + kind.own_tasks) <= set(TASK_NAMES)


def test_the_kinds_load_no_tensorflow():
    code = "import sys, albert_keras.tasks.kinds; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
