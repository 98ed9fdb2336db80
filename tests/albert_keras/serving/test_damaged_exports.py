"""A damaged export is reported with the file and what to do, whatever is wrong with it."""

import shutil

import pytest

from albert_keras.cli import main
from albert_keras.serving.predictor import Predictor
from data_pipeline.errors import InputError

ADVICE = "Copy the version again from where it was exported, or export the model again."
DATA = "variables/variables.data-00000-of-00001"


@pytest.fixture
def version(tiny_export, tmp_path):
    """Returns the folder of a version that a test may damage."""
    return shutil.copytree(tiny_export / "1", tmp_path / "tiny" / "1")


def flip(path, position, bit=3):
    content = bytearray(path.read_bytes())
    content[position] ^= 1 << bit
    path.write_bytes(content)


def halve(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


def message_of(version):
    with pytest.raises(InputError) as raised:
        Predictor(version).fill_mask(["A [MASK]."])
    return str(raised.value)


@pytest.mark.parametrize(
    "file, damage, named",
    [
        ("saved_model.pb", halve, "`saved_model.pb` has"),
        ("export.json", halve, "export.json"),
        (
            "variables/variables.index",
            lambda path: flip(path, 40),
            "`variables/variables.index` has",
        ),
        (DATA, lambda path: flip(path, path.stat().st_size // 2), "variables"),
        (DATA, lambda path: path.unlink(), "variables"),
    ],
)
def test_predict_names_the_damaged_file_and_says_what_to_do(version, capsys, file, damage, named):
    damage(version / file)
    assert main(["predict", str(version), "A [MASK]."]) == 2
    lines = capsys.readouterr().err.splitlines()
    (shown,) = [line for line in lines if line.startswith("error: ")]
    assert shown.startswith(f"error: `{version}") and named in shown and shown.endswith(ADVICE)
    assert "None" not in shown


def test_damage_without_digests_is_found_when_it_is_loaded(version):
    (version / "digests.json").unlink()
    shutil.rmtree(version / "variables")
    assert message_of(version).startswith(f"`{version}` is damaged: ")


def test_a_model_that_fails_is_reported(version):
    predictor = Predictor(version)

    def fail(**_):
        raise predictor._tf.errors.InvalidArgumentError(None, None, "indices[0] = 9")

    signature = predictor._model.signatures["encode"]
    fail.structured_input_signature = signature.structured_input_signature
    predictor._signatures = {"encode": fail}
    with pytest.raises(InputError, match=r"`encode` of `.*` failed: indices\[0\] = 9. The model"):
        predictor.encode(["a"])


def test_an_export_without_digests_is_loaded(version):
    (version / "digests.json").unlink()
    assert Predictor(version).fill_mask(["A [MASK]."])
