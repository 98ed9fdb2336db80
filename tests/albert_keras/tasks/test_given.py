"""Examples that a user has in memory."""

import pytest

from albert_keras.tasks.given import read_given, settings_of
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

TEXTS = ["a", "b"]


def read(task, inputs, truths, **settings):
    flags = settings_of({"task": task} | settings, (inputs, truths))
    config = TaskConfig(name=flags.pop("task"), **flags)
    config, examples = read_given(config, (inputs, truths))
    return config.labels, [one.tags if task == "tagging" else one[-1] for one in examples]


@pytest.mark.parametrize(
    "task, labels, settings, expected",
    [
        ("classification", ["x", "y"], {}, (("x", "y"), ["x", "y"])),
        ("classification", [True, False], {}, (("False", "True"), ["True", "False"])),
        ("classification", [[1], [0]], {}, (("0", "1"), ["1", "0"])),
        ("classification", [1, 0], {"labels": ("n", "y")}, (("n", "y"), ["y", "n"])),
        ("classification", [[1, 1], [0, 1]], {"label": ("p", "q")}, (None, [("p", "q"), ("q",)])),
        ("classification", [["x"], ["y", "x"]], {"label_separator": "|"}, None),
        ("regression", ["1", 0.1], {}, (None, [1.0, 0.1])),
        ("regression", [[1, 2], [0.1, 3]], {"label": ("p", "q")}, (None, [(1, 2), (0.1, 3)])),
        ("tagging", [["B-X"], ["O"]], {}, (("B-X", "O"), [("B-X",), ("O",)])),
    ],
)
def test_labels_in_memory_are_those_of_files(task, labels, settings, expected):
    inputs = [[text] for text in TEXTS] if task == "tagging" else TEXTS
    expected = expected or (("x", "y"), [("x",), ("x", "y")])
    assert read(task, inputs, labels, **settings) == expected


def test_a_label_of_no_class_is_named():
    with pytest.raises(InputError, match="Label 2 of 2: unknown label, `z`"):
        read("classification", TEXTS, ["x", "z"], labels=("x", "y"))
    with pytest.raises(InputError, match="Label 1 of 2: must have a number"):
        read("regression", TEXTS, ["x", "z"])
