"""ONNX Runtime on the file made of transformers' model, on ids, in float32."""

from importlib.metadata import version

from albert_keras.benchmarks.contest import Prepared
from albert_keras.benchmarks.inferrers.questions import difference

#: Best first.
_PROVIDERS = ("CUDAExecutionProvider", "CPUExecutionProvider")


def prepare(path, question, threads):
    """Opens the file with all optimisations, for exactly this shape: a Prepared.

    Args:
        path: str or Path. As `transformers.write_onnx` makes it.
        question: Question.
        threads: int.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    batch_size, length = question.ids.shape
    options.add_free_dimension_override_by_name("batch", batch_size)
    options.add_free_dimension_override_by_name("sequence", length)
    available = onnxruntime.get_available_providers()
    providers = [name for name in _PROVIDERS if name in available]
    session = onnxruntime.InferenceSession(str(path), options, providers=providers)
    inputs = question.inputs()

    def run():
        return session.run(None, inputs)[0]

    facts = {
        "input": "ids",
        "difference": difference(run(), question, "float32"),
        "providers": session.get_providers(),
        "versions": {"onnxruntime": version("onnxruntime")},
    }
    return Prepared(run, facts)
