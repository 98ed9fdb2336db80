"""OpenVINO on the ONNX file made of transformers' model, on ids."""

from albert_keras.benchmarks.contest import Prepared
from albert_keras.benchmarks.inferrers.questions import difference

_HINTS = {"float32": "f32", "bfloat16": "bf16"}


def prepare(path, question, dtype, threads):
    """Compiles the file for exactly this shape, for short latency: a Prepared.

    Args:
        path: str or Path. As `transformers.write_onnx` makes it.
        question: Question.
        dtype: str. "float32" or "bfloat16".
        threads: int.
    """
    import openvino

    core = openvino.Core()
    model = core.read_model(str(path))
    inputs = question.inputs()
    model.reshape({name: list(values.shape) for name, values in inputs.items()})
    settings = {
        "INFERENCE_PRECISION_HINT": _HINTS[dtype],
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": threads,
    }
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()

    def run():
        return request.infer(inputs)[0]

    facts = {
        "input": "ids",
        "difference": difference(run(), question, dtype),
        "computes_in": str(compiled.get_property("INFERENCE_PRECISION_HINT")),
        "versions": {"openvino": openvino.__version__},
    }
    return Prepared(run, facts)
