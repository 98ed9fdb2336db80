"""Answers of an exported folder, from Python."""

import shutil

import pytest
import tensorflow as tf

from albert_keras.cli import main
from albert_keras.serving.predictor import Predictor, fill_mask
from data_pipeline.errors import InputError


@pytest.fixture(scope="module")
def predictor(tiny_export):
    return Predictor(tiny_export)


def test_the_newest_version_answers(tiny_export, predictor):
    assert predictor.path == tiny_export / "1"
    assert Predictor(tiny_export / "1").path == tiny_export / "1"


def test_each_mask_has_its_candidates_best_first(predictor):
    first, second = predictor.fill_mask(["A [MASK] and a [MASK].", "[MASK]"], top_k=3)
    assert [len(mask) for mask in first.masks] == [3, 3] and len(second.masks) == 1
    scores = [candidate.score for candidate in first.masks[0]]
    assert scores == sorted(scores, reverse=True) and 0 < sum(scores) <= 1
    assert "[MASK]" not in first.filled_text


def test_order_is_a_probability(predictor):
    answers = predictor.sentence_order(["It began.", "It ended."], ["It ended.", "It began."])
    assert all(0 < answer.in_order < 1 for answer in answers)


def test_vectors_have_the_model_size(predictor):
    assert predictor.encode(["one", "two"]).shape == (2, 32)


def test_a_text_without_a_mask_is_refused(tiny_export):
    with pytest.raises(InputError, match=r"contains no \[MASK\]"):
        fill_mask(tiny_export, ["nothing to fill"])


def test_masks_that_are_never_read_have_no_candidates(predictor):
    (answer, short) = predictor.fill_mask(["[MASK] " * 5000, "A [MASK]."])
    assert len(answer.masks) == 5000 and answer.masks[0] and answer.masks[-1] == ()
    assert answer.filled_text.count("[MASK]") > 10 and len(answer.filled_text) < 5000
    assert len(short.masks) == 1 and short.masks[0]


def test_a_pre_trained_model_answers_no_task(predictor):
    assert predictor.task is None
    with pytest.raises(InputError, match="must be an export of a fine-tuned model"):
        predictor.answer("a")


def test_an_export_needs_nothing_but_its_graph(tiny_export, predictor, tmp_path):
    shutil.copytree(tiny_export / "1" / "variables", tmp_path / "variables")
    shutil.copy(tiny_export / "1" / "saved_model.pb", tmp_path)
    bare = Predictor(tmp_path)
    assert bare.task is None
    assert bare.fill_mask(["A [MASK]."]) == predictor.fill_mask(["A [MASK]."])


def test_a_signature_is_asked_with_what_it_takes(predictor):
    pieces = predictor.ask("explain_tokens", text=["a", "\udcff"])["pieces"]
    assert pieces.shape[0] == 2 and pieces[0, 0] == b"[CLS]"
    with pytest.raises(InputError, match="takes the inputs text. Received: texts"):
        predictor.ask("encode", texts=["a"])
    with pytest.raises(InputError, match="has no signature `tags`"):
        predictor.ask("tags", text=["a"])
    with pytest.raises(InputError, match="half a surrogate pair"):
        predictor.fill_mask(["\ud800 [MASK]"])


def test_a_run_fills_masks_as_its_export(tiny_run, predictor, capsys):
    texts = ["A [MASK] and a [MASK].", "[MASK]"]
    of_run = Predictor(tiny_run)
    for one, other in zip(of_run.fill_mask(texts), predictor.fill_mask(texts), strict=True):
        assert one.filled_text == other.filled_text
        for mine, theirs in zip(one.masks, other.masks, strict=True):
            scores = [candidate.score for candidate in theirs]
            assert [candidate.score for candidate in mine] == pytest.approx(scores, abs=1e-5)
    pair = (["It began."], ["It ended."])
    (one,), (other,) = of_run.sentence_order(*pair), predictor.sentence_order(*pair)
    assert one.in_order == pytest.approx(other.in_order, abs=1e-5)
    assert main(["predict", str(tiny_run), "A [MASK]."]) == 0
    assert capsys.readouterr().out.count("%") >= 5


class Trap(tf.saved_model.experimental.TrackableResource):
    """Writes a file when it is loaded."""

    def __init__(self, target):
        super().__init__()
        self._target = target

    def _create_resource(self):
        return tf.raw_ops.VarHandleOp(dtype=tf.int32, shape=[])

    def _initialize(self):
        tf.io.write_file(self._target, "loaded")


def test_a_model_that_writes_files_is_refused_before_it_can(tmp_path):
    target = tmp_path / "target"
    module = tf.Module()
    module.trap = Trap(str(target))

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def fill_mask(text):
        tf.io.write_file(str(target), "asked")
        return {"filled_text": text}

    tf.saved_model.save(module, str(tmp_path / "1"), signatures={"fill_mask": fill_mask})
    target.unlink(missing_ok=True)
    loaded = tf.saved_model.load(str(tmp_path / "1"))
    assert target.read_text() == "loaded"
    loaded.signatures["fill_mask"](tf.constant(["a"]))
    assert target.read_text() == "asked"

    target.unlink()
    with pytest.raises(InputError, match="`WriteFile` in function .* may access files, Python"):
        Predictor(tmp_path)
    assert not target.exists()
