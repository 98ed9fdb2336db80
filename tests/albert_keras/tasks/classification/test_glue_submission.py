import zipfile

import numpy as np
import pytest

from albert_keras.tasks.classification.glue_submission import pack_submission, write_submission
from albert_keras.tasks.classification.glue_tasks import GLUE_TASKS
from albert_keras.tasks.examples import TextExample
from data_pipeline.errors import InputError

TWO = [TextExample("0", "A.", "B."), TextExample("1", "C.", "D.")]


@pytest.mark.parametrize(
    "task, split, predictions, name, values",
    [
        ("cola", "test", [1, 0], "CoLA.tsv", ["1", "0"]),
        ("rte", "test", np.array([1, 0]), "RTE.tsv", ["not_entailment", "entailment"]),
        ("mnli", "test_matched", [0, 2], "MNLI-m.tsv", ["contradiction", "neutral"]),
        ("mnli", "test_mismatched", [0, 1], "MNLI-mm.tsv", ["contradiction", "entailment"]),
        ("ax", "test", [0, 1], "AX.tsv", ["contradiction", "entailment"]),
        ("sts-b", "test", np.float32([5.2, 3.14159265]), "STS-B.tsv", ["5.00000", "3.14159"]),
        ("sts-b", "test", [-0.1, 4], "STS-B.tsv", ["0.00000", "4.00000"]),
    ],
)
def test_a_submission_has_ids_and_names(tmp_path, task, split, predictions, name, values):
    path = write_submission(task, split, TWO, predictions, tmp_path / "new")
    assert path == tmp_path / "new" / name
    expected = f"index\tprediction\n0\t{values[0]}\n1\t{values[1]}\n"
    assert path.read_bytes().decode() == expected


def test_an_id_that_occurs_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match="must be unique. Received: `0` twice."):
        write_submission("cola", "test", TWO[:1] * 2, [0, 1], tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.fixture
def whole_submission(tmp_path):
    """Returns a folder with a file of the right length for each task but QQP, and their names."""
    names = []
    for task in GLUE_TASKS.values():
        for file in task.files.values():
            if file.submission and task.folder != "QQP":
                (tmp_path / file.submission).write_text(
                    "index\tprediction\n" + "0\t0\n" * file.rows
                )
                names.append(file.submission)
    return tmp_path, names


def test_a_whole_submission_is_packed(whole_submission):
    folder, names = whole_submission
    (folder / "QQP.tsv").write_text("index\tprediction\n" + "0\t0\n" * 390965)
    path = pack_submission(folder, folder / "glue.zip")
    with zipfile.ZipFile(path) as packed:
        assert sorted(packed.namelist()) == sorted([*names, "QQP.tsv"])
        assert packed.read("WNLI.tsv") == (folder / "WNLI.tsv").read_bytes()


def test_what_a_submission_lacks_is_told_at_once(whole_submission):
    folder, _ = whole_submission
    (folder / "WNLI.tsv").write_text("index\tprediction\n0\t0\n")
    with pytest.raises(InputError) as error:
        pack_submission(folder, folder / "glue.zip")
    assert "QQP.tsv is missing; WNLI.tsv has 1 rows, not 146." in str(error.value)
    assert not (folder / "glue.zip").exists()
