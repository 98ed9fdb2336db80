"""Models that a server could not load, or that reach out of themselves, are refused by name."""

import hashlib

import pytest
import tensorflow as tf
import tensorflow_text as tf_text
from tensorflow.python.framework import op_def_registry

from albert_keras.serving.saved_model.server_ops import (
    TEXT_OPS,
    check_ops,
    core_ops,
    newer_attributes,
    read_saved_model,
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


class Lengths(tf.Module):
    """Has a variable, so that there is a saver."""

    def __init__(self):
        super().__init__()
        self.factor = tf.Variable(2)

    @tf.function(input_signature=[STRINGS])
    def lengths(self, text):
        return {"lengths": self.factor * tf.strings.length(text)}


def save(folder, function):
    function = tf.function(function, input_signature=[STRINGS])
    module = tf.Module()
    tf.saved_model.save(module, str(folder), signatures={"serving_default": function})
    return folder


@pytest.fixture(scope="module")
def lengths_model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lengths")
    module = Lengths()
    tf.saved_model.save(module, str(folder), signatures={"serving_default": module.lengths})
    return folder


@pytest.fixture
def changed(lengths_model, tmp_path):
    """Returns a function that takes a change of the MetaGraphDef and makes a model with it."""

    def changed(change):
        saved_model = read_saved_model(lengths_model)
        change(saved_model.meta_graphs[0])
        (tmp_path / "saved_model.pb").write_bytes(saved_model.SerializeToString())
        return tmp_path

    return changed


def saver_calls(graph):
    return [node for node in graph.graph_def.node if "traced" in node.attr["f"].func.name]


def test_what_is_allowed_is_counted_so_that_a_new_tensorflow_is_looked_at():
    assert len(core_ops()) == 1078 and len(TEXT_OPS) == 35
    assert core_ops().isdisjoint(REACHING_OUT)
    assert {"MatMul", "StatefulPartitionedCall", "ParseExampleV2", "While"} <= core_ops()


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


def test_an_attribute_that_servers_lack_is_refused(changed):
    def change(graph):
        node = graph.graph_def.library.function[0].node_def.add(name="product", op="MatMul")
        node.attr["transpose_a"].b = True
        node.attr["grad_a"].b = True

    rule = "`MatMul` in function `.*` has the attribute `grad_a`, which servers of 2.15 do not know"
    with pytest.raises(InputError, match=rule):
        check_ops(changed(change))


def test_three_operations_of_the_installed_tensorflow_text_are_missing_on_servers():
    assert all(op_def_registry.get(name) for name in TEXT_OPS)
    later = {"TFText>RoundRobinTrim", "TFText>RoundRobinGenerateMasks", "TFText>Utf8Binarize"}
    assert all(op_def_registry.get(name) for name in later) and later.isdisjoint(TEXT_OPS)


def test_the_trimmer_that_servers_lack_is_refused_with_its_function(tmp_path):
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


def test_an_output_that_a_server_would_write_as_base64_is_refused(tmp_path):
    with pytest.raises(InputError, match="`serving_default` has an output named `text_bytes`"):
        check_ops(save(tmp_path, lambda text: {"text_bytes": text}))


def test_a_signature_that_runs_the_saver_is_refused(changed):
    def change(graph):
        output = graph.signature_def["serving_default"].outputs["lengths"]
        output.name = graph.saver_def.save_tensor_name

    with pytest.raises(InputError, match="`serving_default` runs the saver"):
        check_ops(changed(change))


def test_a_call_of_the_saver_by_another_is_refused(changed):
    def change(graph):
        save_call, _ = saver_calls(graph)
        call = next(node for node in graph.graph_def.node if "lengths" in node.attr["f"].func.name)
        call.attr["f"].func.name = save_call.attr["f"].func.name

    with pytest.raises(InputError, match="in the main graph calls function `.*traced_save"):
        check_ops(changed(change))


def test_a_node_that_makes_the_saver_run_is_refused(changed):
    def change(graph):
        call = next(node for node in graph.graph_def.node if "lengths" in node.attr["f"].func.name)
        call.input.append(f"^{saver_calls(graph)[0].name}")

    with pytest.raises(InputError, match="depends on the saver's node"):
        check_ops(changed(change))


def test_the_function_that_restores_writes_nothing(changed):
    def change(graph):
        saved, restored = (call.attr["f"].func.name for call in saver_calls(graph))
        functions = {part.signature.name: part for part in graph.graph_def.library.function}
        save_node = next(node for node in functions[saved].node_def if node.op == "SaveV2")
        functions[restored].node_def.add().CopyFrom(save_node)

    with pytest.raises(
        InputError, match="`SaveV2` in function `.*traced_restore.*` may access files"
    ):
        check_ops(changed(change))
