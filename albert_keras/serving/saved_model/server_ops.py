"""Loads SavedModels, and decides which operations they may use.

`tensorflow_model_server` 2.12 to 2.19 has the operations of TensorFlow and of tensorflow-text
2.12.1; a model with any other, or with newer attributes, does not load there. And since a
SavedModel is a program, it must not use operations that access files, Python or other processes.
"""

import functools
import re
from pathlib import Path
from typing import Any

import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from albert_keras.formats.detection import AFTER_DAMAGE
from data_pipeline.errors import InputError
from data_pipeline.files import DIGESTS, find_damage
from data_pipeline.limits import check_regular_file

_GRAPH = "saved_model.pb"
#: Files without checksums of their own, which the other files of variables have.
_DIGESTED = (_GRAPH, "variables/variables.index")

#: Operations of tensorflow-text 2.12.1. Later versions add `TFText>RoundRobinTrim`,
#: `TFText>RoundRobinGenerateMasks` and `TFText>Utf8Binarize`.
TEXT_OPS = frozenset(
    """
    CaseFoldUTF8 ConstrainedSequence FastBertNormalize FastWordpieceTokenizeWithOffsets
    FindSourceOffsets MaxSpanningTree NormalizeUTF8 NormalizeUTF8WithOffsetsMap PhraseTokenize
    RegexSplitWithOffsets RougeL SentenceFragments SentenceFragmentsV2 SentencepieceDetokenizeOp
    SentencepieceIdToStringOp SentencepieceOp SentencepieceStringToIdOp SentencepieceTokenizeOp
    SentencepieceTokenizeWithOffsetsOp SentencepieceVocabSizeOp SplitMergeTokenizeWithOffsets
    TFText>BoiseTagsToOffsets TFText>ByteSplitByOffsets TFText>ByteSplitWithOffsets
    TFText>FastSentencepieceDetokenize TFText>FastSentencepieceTokenize
    TFText>FastWordpieceDetokenize TFText>NgramsStringJoin TFText>OffsetsToBoiseTags
    TFText>PhraseDetokenize TFText>WhitespaceTokenizeWithOffsetsV2 TokenizerFromLogits
    UnicodeScriptTokenizeWithOffsets WhitespaceTokenizeWithOffsets WordpieceTokenizeWithOffsets
    """.split()
)

#: Operations of TensorFlow that a served model may not use, as regular expressions of whole names:
#: those with access outside of the model, and newer ones.
DENIED_OPS = (
    # Files. A vocabulary file, a region of memory, the source of a descriptor and the target of
    # printing may each be a path.
    r"(Read|Write)File|MatchingFiles|FileSystemSetConfiguration|RecordInput|PrintV2",
    r"\w*Reader(V2)?|Reader\w+",
    r"(Save|Restore)(Slices?|V2)?|DistributedSave|Sharded(Filename|Filespec)|MergeV2Checkpoints",
    r"LoadAndRemapMatrix|GenerateVocabRemapping|InitializeTableFromTextFile(V2)?",
    r"FixedUnigramCandidateSampler|ImmutableConst|(Decode|Encode)Proto(V2)?",
    r"(Create|Flush|Close|)Summary(File|Db|)Writer|Write\w*Summary|ImportEvent|\w*StatsAggregator\w*",
    # Input pipelines, which read files and call services.
    r"\w*Dataset\w*|\w*Iterator\w*|\w*ThreadPoolHandle",
    # Python, and termination of the process.
    r"PyFunc(Stateless)?|EagerPyFunc|Abort",
    # Other devices and processes; debug operations and their copies have an address.
    r"RemoteCall|Send|Recv|(Collective|Nccl|Infeed|Outfeed|Debug)\w+|\w*TPU\w*|WorkerHeartbeat",
    r"Copy(Host)?",
    # Operations of TensorFlow 2.16 to 2.21, which servers of 2.15 lack.
    r"CheckPinned|Decode(Jxl|WebP)|GlobalIterId|XlaSparse(CoreA|CoreF|CoreS|DenseMatmul)\w*",
    r"ConvertTo\w*CooTensors?|GetMinibatch\w+Replica|StoreMinibatchStatisticsInFdo",
    r"(GetStatsFrom|Sort)ListOfSparseCoreCooTensors",
)

#: Attributes that TensorFlow 2.16 to 2.21 added, which servers of 2.15 do not know, by regular
#: expressions of operations. A SavedModel contains them only with other values than the default.
NEWER_ATTRIBUTES = {
    r"MatMul": {"grad_a", "grad_b"},
    r"BatchMatMul(V2|V3)?": {"grad_x", "grad_y"},
    r"GatherNd|(Resource|Tensor)?Scatter\w+": {"bad_indices_policy"},
    r"TensorListGetItem": {"Tshape"},
    r"BatchFunction": {"mixed_priority_policy", "batch_padding_policy"},
}

#: Additional operations of the function that writes the variables, and of the one that reads them,
#: which servers run when they load a model.
_SAVE_OPS = frozenset({"SaveV2", "ShardedFilename", "MergeV2Checkpoints"})
_RESTORE_OPS = frozenset({"RestoreV2"})


def load_saved_model(folder: Path) -> Any:
    """Loads a version, whose operations of tensorflow-text must be registered.

    Raises:
        InputError: If its files are damaged, if they differ from the digests of the export, if one
            is a pipe or a device, or if it has operations that are not allowed, see `check_ops`.
            Then nothing of it is loaded.
    """
    for path in folder.rglob("*"):
        check_regular_file(path)
    damage = None
    if (folder / DIGESTS).is_file():  # exports of early versions and other SavedModels have none
        damage = find_damage(folder, _DIGESTED)
    try:
        if damage is None:
            check_ops(folder)
            if (folder / "fingerprint.pb").exists():  # the loader prints a traceback, and goes on
                tf.saved_model.experimental.read_fingerprint(str(folder))
            return tf.saved_model.load(str(folder))
    except (InputError, MemoryError):
        raise
    except Exception as error:  # of any type, as the loader trusts its files
        message = error.message if isinstance(error, tf.errors.OpError) else str(error)
        message = re.sub(r"\{\{.*?\}\}", "", message)  # names of functions in the graph
        damage = message.strip().split("\n")[0][:200].rstrip(".") or type(error).__name__
    raise InputError(f"`{folder}` is damaged: {damage}. {AFTER_DAMAGE}")


@functools.cache
def core_ops() -> frozenset[str]:
    """Returns the names of the operations of TensorFlow that a served model may use.

    These are the public ones of the installed package, whatever other libraries of operations the
    process has loaded, without `DENIED_OPS`: the same ones with TensorFlow 2.15 and 2.21.
    """
    public = (name for name in dir(tf.raw_ops) if not name.startswith("_"))
    return frozenset(name for name in public if not _is_denied(name))


@functools.cache
def newer_attributes(op: str) -> frozenset[str]:
    """Returns the attributes of an operation that servers of TensorFlow 2.15 do not know."""
    found = (names for pattern, names in NEWER_ATTRIBUTES.items() if re.fullmatch(pattern, op))
    return frozenset().union(*found)


def check_ops(folder: Path) -> None:
    """Raises InputError unless a version uses only operations that servers have and may run.

    All nodes of the graph and of its functions are checked, whether or not a signature calls them.
    None may require compilation by XLA, which the server does not do by default. No output may have
    a name that ends in `_bytes`, which the REST interface of the server takes for binary. Only the
    functions that save and restore the variables may access files, and only the loader may call
    them.
    """
    for graph in read_saved_model(folder).meta_graphs:
        faults = list(_faults(graph))
        if faults:
            more = f" (and {len(faults) - 1} more)" if len(faults) > 1 else ""
            raise InputError(f"`{folder}` cannot be served: {faults[0]}{more}.")


def read_saved_model(folder: Path) -> saved_model_pb2.SavedModel:
    """Reads the graph of a version without running any of it.

    There must not be another form of it, which a server could load instead.
    """
    found = sorted(path.name for path in folder.glob("saved_model.*"))
    if found != [_GRAPH]:
        raise InputError(
            f"`{folder}` must contain saved_model.pb and no other form of it. "
            f"Received: {', '.join(found) or 'none'}."
        )
    saved_model = saved_model_pb2.SavedModel()
    try:
        saved_model.ParseFromString((folder / _GRAPH).read_bytes())
    except DecodeError as error:
        raise InputError(
            f"`{folder}/saved_model.pb` is damaged: {error}. {AFTER_DAMAGE}"
        ) from error
    if not saved_model.meta_graphs:
        raise InputError(f"`{folder}/saved_model.pb` contains no graph. {AFTER_DAMAGE}")
    return saved_model


def _is_denied(name):
    return any(re.fullmatch(pattern, name) for pattern in DENIED_OPS)


def _faults(graph):
    """Yields the faults of a MetaGraphDef, each as the rest of a sentence."""
    functions = {function.signature.name: function for function in graph.graph_def.library.function}
    saver_nodes = {
        _node_of(graph.saver_def.save_tensor_name): _SAVE_OPS,
        _node_of(graph.saver_def.restore_op_name): _RESTORE_OPS,
    }
    saver_nodes.pop("", None)
    savers = {
        node.attr["f"].func.name: saver_nodes[node.name]
        for node in graph.graph_def.node
        if node.name in saver_nodes and "f" in node.attr
    }
    known = core_ops() | TEXT_OPS | {name for name in functions if not _is_denied(name)}
    for node in graph.graph_def.node:
        is_saver = node.name in saver_nodes
        yield from _faults_of_node(node, "the main graph", known, () if is_saver else savers)
        for name in saver_nodes.keys() & {_node_of(tensor) for tensor in node.input}:
            yield f"node `{node.name}` of the main graph depends on the saver's node `{name}`"
    for name, function in functions.items():
        where = f"function `{name}`"
        if _must_compile(function):
            yield f"{where} requires compilation by XLA (`jit_compile=True`)"
        for node in function.node_def:
            yield from _faults_of_node(node, where, known | savers.get(name, set()), savers)
    for name in sorted(savers.keys() & set(graph.object_graph_def.concrete_functions)):
        yield f"it makes function `{name}` of the saver callable"
    for name, signature in graph.signature_def.items():
        for output, tensor in signature.outputs.items():
            if _node_of(tensor.name) in saver_nodes:
                yield f"signature `{name}` runs the saver for output `{output}`"


def _faults_of_node(node, where, known, savers):
    """Yields the faults of a node, which may use `known` operations and not call `savers`."""
    op = node.op
    if op not in known:
        reason = "is not an operation of tensorflow_model_server"
        if _is_denied(op):
            reason = "may access files, Python or other processes"
        yield f"`{op}` in {where} {reason}"
    for name in sorted(newer_attributes(op) & set(node.attr)):
        yield f"`{op}` in {where} has the attribute `{name}`, which servers of 2.15 do not know"
    if _must_compile(node):
        yield f"`{op}` in {where} requires compilation by XLA (`jit_compile=True`)"
    called = {op, *(value.func.name for value in node.attr.values())}
    called.update(one.name for value in node.attr.values() for one in value.list.func)
    for name in sorted(called.intersection(savers)):
        yield f"`{op}` in {where} calls function `{name}` of the saver"


def _must_compile(thing):
    return "_XlaMustCompile" in thing.attr and thing.attr["_XlaMustCompile"].b


def _node_of(tensor):
    """Returns the name of the node in `node:0` or `^node`."""
    return tensor.removeprefix("^").split(":")[0]
