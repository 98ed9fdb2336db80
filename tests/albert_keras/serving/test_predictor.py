"""Answers of an exported folder, from Python; a damaged one is reported with file and way out."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.cli import main
from albert_keras.models.answers import ClassAnswer
from albert_keras.serving.calls import call_by_rows
from albert_keras.serving.predictor import Predictor
from data_pipeline.errors import InputError
from tests.albert_keras.serving.small_exports import assert_alike
from tests.albert_keras.serving.test_string_tasks import DIRTY

ADVICE = "Copy the version again from where it was exported, or export the model again."


def test_masks_orders_and_texts_are_answered(tiny_export, predictor):
    assert predictor.path == tiny_export / "1" and predictor.task is None
    first, second = predictor.fill_mask(["A [MASK] and a [MASK].", "[MASK]"], top_k=3)
    assert [len(mask) for mask in first.masks] == [3, 3] and len(second.masks) == 1
    scores = [candidate.score for candidate in first.masks[0]]
    assert scores == sorted(scores, reverse=True) and 0 < sum(scores) <= 1
    assert "[MASK]" not in first.filled_text
    answers = predictor.sentence_order(["It began.", "It ended."], ["It ended.", "It began."])
    assert all(0 < answer.in_order < 1 for answer in answers)
    assert predictor.ask("embed", text=["one", "two"])["embedding"].shape == (2, 32)


def test_what_a_model_cannot_answer_is_refused(predictor):
    with pytest.raises(InputError, match=r"contains no \[MASK\]"):
        predictor.fill_mask(["nothing to fill"])
    assert predictor.fill_mask("A [MASK].") == predictor.fill_mask(["A [MASK]."])
    with pytest.raises(InputError, match="must be an export of a fine-tuned model"):
        predictor.answer("a")
    with pytest.raises(InputError, match="takes the inputs text. Received: texts"):
        predictor.ask("embed", texts=["a"])
    with pytest.raises(InputError, match="has no signature `tags`"):
        predictor.ask("tags", text=["a"])
    with pytest.raises(InputError, match="half a surrogate pair"):
        predictor.fill_mask(["\ud800 [MASK]"])
    assert len(predictor.ask("embed", text=["a", "\udcff"])["embedding"]) == 2


def test_masks_that_are_never_read_have_no_candidates(predictor):
    (answer, short) = predictor.fill_mask(["[MASK] " * 5000, "A [MASK]."])
    assert len(answer.masks) == 5000 and answer.masks[0] and answer.masks[-1] == ()
    assert answer.filled_text.count("[MASK]") > 10 and len(answer.filled_text) < 5000
    assert len(short.masks) == 1 and short.masks[0]


def test_an_export_needs_nothing_but_its_graph(tiny_export, predictor, tmp_path):
    shutil.copytree(tiny_export / "1" / "variables", tmp_path / "variables")
    shutil.copy(tiny_export / "1" / "saved_model.pb", tmp_path)
    bare = Predictor(tmp_path)
    assert bare.task is None
    assert bare.fill_mask(["A [MASK]."]) == predictor.fill_mask(["A [MASK]."])


def test_a_run_fills_masks_as_its_export(tiny_run, predictor):
    texts, of_run = ["A [MASK] and a [MASK].", "[MASK]"], Predictor(tiny_run)
    for one, other in zip(of_run.fill_mask(texts), predictor.fill_mask(texts), strict=True):
        assert_alike(one, other)
    pair = (["It began."], ["It ended."])
    assert_alike(of_run.sentence_order(*pair), predictor.sentence_order(*pair))


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


# Fine-tuned models


def test_pairs_are_classified_and_keep_their_ids(pairs_predictor):
    inputs = [{"text": a, "pair": b} for a in DIRTY for b in ("It left.", *DIRTY) if a and b]
    inputs.append({"text": "Rain.", "pair": "", "id": "k7"})
    found = pairs_predictor.answer(inputs)
    assert type(found[0]) is ClassAnswer and found[-1].id == "k7" and found[3].id == "3"
    assert len({answer.label for answer in found}) > 1


def test_neither_a_task_nor_a_class_is_made_up(changed_export):
    with pytest.raises(InputError, match="with its export.json"):
        Predictor(changed_export).answer({"text": "a", "pair": "b"})
    record = {"kind": "finetuning", "task": {"config": {"name": "squad2"}}, "model": "of>Others"}
    (changed_export / "export.json").write_text(json.dumps(record))
    predictor = Predictor(changed_export)
    with pytest.raises(InputError, match="class is known. Received: of>Others. Import the module"):
        predictor.answer({"context": "It left.", "question": "Who?"})


def test_strings_are_sent_some_at_a_time_short_ones_first():
    sent = []

    def ask(signature, text):
        sent.append(text)
        return {"length": np.array([len(one) for one in text])}

    texts = ["x" * (number * 37 % 70) for number in range(70)]
    assert [row["length"] for row in call_by_rows(ask, "any", text=texts)] == list(map(len, texts))
    assert [len(batch) for batch in sent] == [32, 32, 6] and sum(sent, []) == sorted(texts)
    assert call_by_rows(ask, "any", text=[]) == []
    with pytest.raises(InputError, match="1 of 1 `score` of the model are not finite"):
        call_by_rows(lambda signature, text: {"score": np.array([np.nan])}, "any", text=["a"])


# Damage


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 8
    path.write_bytes(content)


def halve(path):
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])


@pytest.mark.parametrize(
    "file, damage, named",
    [
        ("saved_model.pb", halve, "`saved_model.pb` has"),
        ("export.json", halve, "export.json"),
        ("fingerprint.pb", halve, "fingerprint.pb"),
        ("export.json", flip, "`export.json` has SHA-256"),
        ("variables/variables.index", flip, "`variables/variables.index` has"),
    ],
)
def test_predict_names_the_damaged_file_and_says_what_to_do(
    tiny_export, tmp_path, capsys, file, damage, named
):
    version = shutil.copytree(tiny_export / "1", tmp_path / "tiny" / "1")
    damage(version / file)
    assert main(["fill-mask", str(version), "A [MASK]."]) == 2
    lines = capsys.readouterr().err.splitlines()
    (shown,) = [line for line in lines if line.startswith("error: ")]
    assert shown.startswith(f"error: `{version}") and named in shown
    assert shown.endswith(ADVICE) and "None" not in shown
