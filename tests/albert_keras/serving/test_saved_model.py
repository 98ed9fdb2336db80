"""SavedModels: signatures with the method of their name, warm-up requests that servers answer, and
no operation that a server lacks or that reaches out of the model."""

import hashlib

import numpy as np
import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow.python.framework import op_def_registry

from albert_keras.serving.predictor import Predictor
from albert_keras.serving.saved_model.server_ops import (
    TEXT_OPS,
    check_ops,
    core_ops,
    newer_attributes,
    read_saved_model,
)
from albert_keras.serving.saved_model.signatures import (
    WARM_UP_FILE,
    Signature,
    _prediction_log,
    read_signatures,
    sample_inputs,
    sample_requests,
    write_warm_up,
)
from data_pipeline.errors import InputError

STRINGS = tf.TensorSpec([None], tf.string, name="text")
#: Each for one way out.
REACHING_OUT = """
    ReadFile WriteFile MatchingFiles WholeFileReaderV2 TFRecordReader ReaderReadV2 SaveV2 Restore
    ShardedFilename MergeV2Checkpoints InitializeTableFromTextFileV2 DecodeProtoV2 ImmutableConst
    FixedUnigramCandidateSampler LoadAndRemapMatrix PrintV2 CreateSummaryFileWriter WriteSummary
    TextLineDataset IteratorGetNext PyFunc PyFuncStateless EagerPyFunc RemoteCall Send Recv Abort
    CollectiveReduceV2 DebugIdentityV2 CopyHost TPUPartitionedCall DistributedSave
""".split()


def save(folder, function):
    function = tf.function(function, input_signature=[STRINGS])
    module = tf.Module()
    tf.saved_model.save(module, str(folder), signatures={"serving_default": function})
    return folder


# Operations


class Lengths(tf.Module):
    """Has a variable, so that there is a saver."""

    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(2)

    @tf.function(input_signature=[STRINGS])
    def lengths(self, text):
        return {"lengths": self.factor * tf.strings.length(text)}


@pytest.fixture(scope="module")
def lengths_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lengths")
    module = Lengths()
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.lengths})
    return folder


def saver_calls(graph):
    return [node for node in graph.graph_def.node if "traced" in node.attr["f"].func.name]


def lengths_call(graph):
    return next(node for node in graph.graph_def.node if "lengths" in node.attr["f"].func.name)


def test_what_is_allowed_is_counted_so_that_a_new_tensorflow_is_looked_at():
    assert len(core_ops()) == 1078 and len(TEXT_OPS) == 35
    assert core_ops().isdisjoint(REACHING_OUT)
    assert {"MatMul", "StatefulPartitionedCall", "ParseExampleV2", "While"} <= core_ops()
    assert all(op_def_registry.get(name) for name in TEXT_OPS)
    later = {"TFText>RoundRobinTrim", "TFText>RoundRobinGenerateMasks", "TFText>Utf8Binarize"}
    assert all(op_def_registry.get(name) for name in later) and later.isdisjoint(TEXT_OPS)


def test_servers_of_both_lines_know_the_same_arguments_and_attributes():
    """TensorFlow 2.15.1 and 2.21.0 have the same digest; servers of 2.20 lie in between."""
    known = []
    for name in sorted(core_ops()):
        op = op_def_registry.get(name)
        inputs, outputs = ([one.name for one in args] for args in (op.input_arg, op.output_arg))
        older = [one for one in op.attr if one.name not in newer_attributes(name)]
        attributes = sorted(f"{one.name}:{one.type}" for one in older)
        known.append(" ".join([name, *inputs, "->", *outputs, *attributes]))
    digest = hashlib.sha256("\n".join(known).encode()).hexdigest()
    assert digest == "4a413fd66b3f4953654b0760969ff5dcc57d5b39b7b1891ae255092cf84fa8bb"


def test_an_operation_that_servers_lack_is_refused_with_its_function(tmp_path):
    def trim_pairs(text):
        words = tf_text.WhitespaceTokenizer().tokenize(text)
        first, _ = tf_text.RoundRobinTrimmer(4).trim([words, words])
        return {"words": first.to_tensor("")}

    rule = r"`TFText>RoundRobinTrim` in function `__inference_trim_pairs_\d+` is not an operation"
    with pytest.raises(InputError, match=rule):
        check_ops(save(tmp_path, trim_pairs))


def test_a_model_to_be_compiled_is_refused(tmp_path):
    compiled = tf.function(lambda text: tf.shape(text) * 2, jit_compile=True)
    with pytest.raises(InputError, match="requires compilation by XLA"):
        check_ops(save(tmp_path, lambda text: {"shape": compiled(text)}))


def newer_attribute(graph):
    node = graph.graph_def.library.function[0].node_def.add(name="product", op="MatMul")
    node.attr["transpose_a"].b = True
    node.attr["grad_a"].b = True


def output_of_the_saver(graph):
    output = graph.signature_def["serving_default"].outputs["lengths"]
    output.name = graph.saver_def.save_tensor_name


def call_of_the_saver(graph):
    lengths_call(graph).attr["f"].func.name = saver_calls(graph)[0].attr["f"].func.name


def dependence_on_the_saver(graph):
    lengths_call(graph).input.append(f"^{saver_calls(graph)[0].name}")


def writing_while_restoring(graph):
    saved, restored = (call.attr["f"].func.name for call in saver_calls(graph))
    functions = {part.signature.name: part for part in graph.graph_def.library.function}
    save_node = next(node for node in functions[saved].node_def if node.op == "SaveV2")
    functions[restored].node_def.add().CopyFrom(save_node)


@pytest.mark.parametrize(
    "change, rule",
    [
        (
            newer_attribute,
            "`MatMul` in function `.*` has the attribute `grad_a`, which servers of 2.15 do not",
        ),
        (output_of_the_saver, "`serving_default` runs the saver"),
        (call_of_the_saver, "in the main graph calls function `.*traced_save"),
        (dependence_on_the_saver, "depends on the saver's node"),
        (writing_while_restoring, "`SaveV2` in function `.*traced_restore.*` may access files"),
    ],
)
def test_a_graph_that_was_changed_is_refused(lengths_model, tmp_path, change, rule):
    saved_model = read_saved_model(lengths_model)
    change(saved_model.meta_graphs[0])
    (tmp_path / "saved_model.pb").write_bytes(saved_model.SerializeToString())
    with pytest.raises(InputError, match=rule):
        check_ops(tmp_path)


# Warm-up requests

TEXT = Signature("fill_mask", {"text": STRINGS}, {})
PAIR = Signature("sentence_order", {"first": STRINGS, "second": STRINGS}, {})
TOKENS = Signature("tokens", {"ids": tf.TensorSpec([None, None], tf.int64)}, {})


@pytest.fixture
def model(tmp_path):
    def lengths(text):
        tf.debugging.assert_less(tf.size(text), 9, "more than 8 texts")
        return {"lengths": tf.strings.length(text)}

    return save(tmp_path, lengths)


def test_there_is_a_request_for_each_signature_and_length_and_for_a_batch():
    requests = list(sample_requests([TEXT, TOKENS], [16, 64, 512]))
    names = [signature.name for signature, _ in requests]
    assert names == ["fill_mask"] * 4 + ["tokens"] * 4
    shapes = [value.shape for _, inputs in requests for value in inputs.values()]
    assert shapes[:4] == [(1,), (1,), (1,), (8,)]
    assert shapes[4:8] == [(1, 16), (1, 64), (1, 512), (8, 16)]


@pytest.mark.parametrize("length", [16, 512])
def test_texts_fill_a_length_with_the_special_pieces(tiny_tokenizer, length):
    (_, alone), *_ = sample_requests([TEXT], [length])
    assert len(tiny_tokenizer.encode(alone["text"][0].decode())) + 2 == length
    (_, pair), *_ = sample_requests([PAIR], [length])
    pieces = [len(tiny_tokenizer.encode(text[0].decode())) for text in pair.values()]
    assert pieces[0] == pieces[1] and length - 2 < sum(pieces) + 3 <= length


def test_inputs_are_texts_and_ones():
    specs = {
        "ids": tf.TensorSpec([None, 3], tf.int32),
        "choices": tf.TensorSpec([None] * 2, "string"),
    }
    inputs = sample_inputs(Signature("n", specs, {}), [b"a", b"b"], 16)
    assert inputs["ids"].dtype == np.int32 and inputs["ids"].tolist() == [[1] * 3] * 2
    assert inputs["choices"].tolist() == [[b"a", b"a"], [b"b", b"b"]]


@pytest.mark.parametrize("shape", [[], [4], None])
def test_an_input_without_a_free_batch_is_refused(shape):
    signature = TEXT._replace(inputs={"text": tf.TensorSpec(shape, tf.string)})
    with pytest.raises(InputError, match="`text` of signature `fill_mask` must have a free batch"):
        sample_inputs(signature, [b"a"], 16)


def test_the_file_lies_where_servers_look_with_one_record_for_each_request_answered(
    model, monkeypatch
):
    signatures = read_signatures(model)
    write_warm_up(model, signatures, [16, 32], Predictor(model).ask)
    path = model / "assets.extra" / "tf_serving_warmup_requests"
    records = list(tf.data.TFRecordDataset(str(path)).as_numpy_iterator())
    assert records == [
        _prediction_log(*request).SerializeToString(deterministic=True)
        for request in sample_requests(signatures, [16, 32])
    ]
    assert len(records) == 3
    path.unlink()
    monkeypatch.setattr("albert_keras.serving.saved_model.signatures._BATCH_SIZE", 9)
    with pytest.raises(InputError, match="`serving_default` of .* failed: .*more than 8"):
        write_warm_up(model, signatures, [8], Predictor(model).ask)
    assert not list((model / WARM_UP_FILE).parent.iterdir())
