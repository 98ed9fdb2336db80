"""Answers of an export are measured beside peers, on the same question, and told."""

import numpy as np
import pytest

from albert_keras.formats import hugging_face
from albert_keras.models.encoder import AlbertEncoder
from data_pipeline.errors import InputError
from tests.benchmarks.infer import OURS, benchmark_infer, describe, infer_lines
from tests.benchmarks.infer_inputs import Question, difference, exact_texts, write_inputs
from tests.benchmarks.measure import machine, summary
from tests.benchmarks.shapes import make_shape

PEAKS = {"float32": 100e9}


def measured(name, dtype, rounds):
    return {
        "name": name,
        "dtype": dtype,
        "rounds": rounds,
        "times": rounds,
        "seconds": summary(rounds),
        "peak_mb": 500.0,
        "facts": {"difference": 0.0},
    }


def contest():
    results = [
        measured(OURS, "float32", [0.1, 0.2]),
        measured(OURS, "int8", [0.1, 0.1]),
        measured("OpenVINO", "float32", [0.2, 0.3]),
    ]
    found = {f"{result['name']}, {result['dtype']}": result for result in results}
    return found | {"ONNX Runtime, float32": {"name": "x", "dtype": "float32", "failed": "broken"}}


def question(count=2):
    return Question(("a", "b"), np.zeros([count, 4], np.int32), np.zeros([count, 3], np.float32))


def test_texts_fill_a_sequence_exactly(tiny_corpus, tiny_tokenizer):
    texts = exact_texts(tiny_corpus, tiny_tokenizer, 30, 5)
    assert [len(tiny_tokenizer.encode(text)) for text in texts] == [30] * 5
    assert len(set(texts)) == 5


def test_texts_repeat_where_there_are_too_few(tiny_corpus, tiny_tokenizer):
    texts = exact_texts(tiny_corpus[:2], tiny_tokenizer, 7, 40)
    assert len(texts) == 40 and 1 <= len(set(texts)) < 40


def test_a_corpus_without_such_a_text_is_refused(tiny_tokenizer):
    with pytest.raises(InputError, match="a text of 500 tokens"):
        exact_texts(["too short"], tiny_tokenizer, 500, 1)


def test_the_first_texts_of_a_question_are_one_too():
    first = question().first(1)
    assert first.texts == ("a",) and first.ids.shape == (1, 4) and first.expected.shape == (1, 3)


def test_the_difference_of_an_answer_is_the_largest():
    assert difference([[0, 0, 0], [0, -0.5, 0.25]], question(), "bfloat16") == 0.5


@pytest.mark.parametrize(
    "answer, dtype",
    [
        (np.zeros([2, 4]), "bfloat16"),
        (np.full([2, 3], np.nan), "bfloat16"),
        (np.full([2, 3], 0.002), "float32"),
    ],
)
def test_a_wrong_answer_takes_no_part(answer, dtype):
    with pytest.raises(InputError, match="An output"):
        difference(answer, question(), dtype)


def test_a_peer_is_compared_with_ours_of_its_dtype_round_by_round():
    found = describe(contest(), tokens=40, batch_size=2, flops=10e9, peaks=PEAKS)
    peer = found["OpenVINO, float32"]
    assert peer["ratio"] == pytest.approx({"median": 1.75, "low": 1.5, "high": 2.0})
    assert found[f"{OURS}, float32"]["ratio"] is None
    assert found["ONNX Runtime, float32"]["failed"] == "broken"
    assert peer["tokens_per_second"]["high"] == pytest.approx(200)
    assert peer["sequences_per_second"]["high"] == pytest.approx(10)


def test_int8_weights_are_multiplied_in_float32():
    found = describe(contest(), tokens=40, batch_size=2, flops=10e9, peaks=PEAKS)
    ours = found[f"{OURS}, int8"]
    assert ours["flops"]["median"] == pytest.approx(100e9)
    assert ours["share_of_peak"]["median"] == pytest.approx(1.0)


def test_the_closing_lines_have_ratios_and_failures():
    case = {
        "max_seq_length": 128,
        "batch_size": 1,
        "useful_flops": 10e9,
        "contestants": describe(contest(), 128, 1, 10e9, PEAKS),
    }
    result = {
        "machine": machine(),
        "settings": {"model": "m", "vocab_size": 8000, "repeats": 2},
        "peaks": PEAKS,
        "cases": [case],
    }
    lines = list(infer_lines(result))
    assert lines[-4:] == [
        "ours float32, S 128, batch 1: 1.75 × OpenVINO",
        "ours int8, S 128, batch 1: no peer at this precision",
        "fastest square product in float32: 100 GFLOP/s",
        "ONNX Runtime, float32: broken",
    ]


@pytest.mark.parametrize(
    "settings, says",
    [
        ({"precision": ("float23",)}, "precision"),
        ({"peers": ("openvin",)}, "openvino"),
        ({"model": "albert-bas"}, "albert-base"),
    ],
)
def test_a_wrong_setting_is_refused(settings, says):
    with pytest.raises(InputError, match=says):
        benchmark_infer(**settings)


def test_peers_load_a_folder_of_transformers_with_our_weights(tiny_vocabulary, tmp_path):
    config = make_shape("1x64", max_seq_length=8).config
    inputs = write_inputs(tmp_path, config, tiny_vocabulary.path, (), (8,), 2)
    found = hugging_face.read(inputs.weights)
    encoder = AlbertEncoder(inputs.config, seed=0, dtype="float32")
    for weight in encoder.weights:
        np.testing.assert_array_equal(found.tensors[weight.name.removesuffix(":0")], weight)
    assert inputs.questions[8].ids.shape == (2, 8)


@pytest.mark.slow
def test_an_export_answers_as_keras_nlp_does(tiny_vocabulary):
    result = benchmark_infer(
        "2x192", (1, 2), (32,), ("float32", "bfloat16"), ("keras-nlp",), tiny_vocabulary.path, 2, 0
    )
    assert [case["batch_size"] for case in result["cases"]] == [1, 2]
    for case in result["cases"]:
        assert len(case["contestants"]) == 4
        assert not any("failed" in found for found in case["contestants"].values())
        assert case["contestants"]["keras-nlp, float32"]["facts"]["difference"] < 1e-4
    assert any(line.startswith("ours bfloat16, S 32, batch 2:") for line in infer_lines(result))
