"""The contestants of `benchmark infer`: our export on texts, and peers on ids.

A function loads its library itself, since each contestant runs in a process of its own.
"""

from importlib.metadata import version
from pathlib import Path

from albert_keras.config import AlbertConfig
from data_pipeline.child_processes import num_processors
from tests.benchmarks.contest import Prepared
from tests.benchmarks.infer_inputs import SEED, Question, difference
from tests.benchmarks.measure import in_new_process

_HINTS = {"float32": "f32", "bfloat16": "bf16"}


def prepare_ours(export: Path, question: Question, precision: str) -> Prepared:
    """Opens an export as users do and encodes texts."""
    from albert_keras.serving.predictor import Predictor

    predictor, texts = Predictor(export), list(question.texts)
    return _prepared(lambda: predictor.encode(texts), question, precision)


def prepare_keras_nlp(config: AlbertConfig, question: Question, dtype: str) -> Prepared:
    """Builds KerasNLP's `AlbertBackbone` with our initial weights and traces it."""
    import tensorflow as tf

    from albert_keras.models.encoder import AlbertEncoder
    from tests.albert_keras.formats.backbones import backbone_of

    policy = {"float32": "float32", "bfloat16": "mixed_bfloat16"}[dtype]
    backbone = backbone_of(AlbertEncoder(config, seed=SEED, dtype=policy))
    ids = tf.constant(question.ids)
    inputs = {
        "token_ids": ids,
        "segment_ids": tf.zeros_like(ids),
        "padding_mask": tf.ones_like(ids),
    }

    @tf.function
    def encode(inputs):
        return backbone(inputs, training=False)["pooled_output"]

    return _prepared(lambda: encode(inputs).numpy(), question, dtype)


def prepare_transformers(weights: Path, question: Question, form: str) -> Prepared:
    """Compiles ALBERT of transformers with our weights, on a GPU if there is one.

    `form` is "float32"; "autocast" to bfloat16; or "converted" to bfloat16 as a whole.
    """
    import torch

    torch.set_num_threads(num_processors())
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    module = _pooled_model(weights).to(device)
    if form == "converted":
        module = module.to(torch.bfloat16)
    module = torch.compile(module)
    inputs = [torch.from_numpy(values) for values in question.inputs().values()]

    def run():
        is_autocast = form == "autocast"
        with (
            torch.inference_mode(),
            torch.autocast(device.type, torch.bfloat16, enabled=is_autocast),
        ):
            output = module(*(values.to(device) for values in inputs))
            return output.float().cpu().numpy()

    dtype = "float32" if form == "float32" else "bfloat16"
    versions = {name: version(name) for name in ("torch", "transformers")}
    return _prepared(run, question, dtype, versions)


def prepare_onnx_runtime(weights: Path, question: Question) -> Prepared:
    """Opens an ONNX file with all optimizations for this shape."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = num_processors()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
    batch_size, length = question.ids.shape
    options.add_free_dimension_override_by_name("batch", batch_size)
    options.add_free_dimension_override_by_name("sequence", length)
    path = _onnx_file(weights, question)
    session = onnxruntime.InferenceSession(
        str(path), options, providers=onnxruntime.get_available_providers()
    )
    inputs = question.inputs()
    versions = {"onnxruntime": version("onnxruntime")}
    return _prepared(lambda: session.run(None, inputs)[0], question, "float32", versions)


def prepare_openvino(weights: Path, question: Question, dtype: str) -> Prepared:
    """Compiles an ONNX file for this shape, for short latency."""
    import openvino

    core = openvino.Core()
    model = core.read_model(str(_onnx_file(weights, question)))
    inputs = question.inputs()
    model.reshape({name: list(values.shape) for name, values in inputs.items()})
    settings = {
        "INFERENCE_PRECISION_HINT": _HINTS[dtype],
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": num_processors(),
    }
    compiled = core.compile_model(model, "CPU", settings)
    request = compiled.create_infer_request()
    versions = {"openvino": openvino.__version__}
    return _prepared(lambda: request.infer(inputs)[0], question, dtype, versions)


def _onnx_file(weights: Path, question: Question) -> Path:
    """Returns the model as an ONNX file beside its weights, which the first caller writes."""
    path = weights / "model.onnx"
    if not path.is_file():
        in_new_process(write_onnx, path, weights, question.first(1))  # PyTorch stays out of here
    return path


def write_onnx(path: Path, weights: Path, question: Question):
    """Writes the model as an ONNX file with free axes; it runs once on the question."""
    import torch

    inputs = {name: torch.from_numpy(values) for name, values in question.inputs().items()}
    with torch.inference_mode():
        torch.onnx.export(
            _pooled_model(weights),
            tuple(inputs.values()),
            str(path),
            input_names=list(inputs),
            output_names=["pooled_output"],
            dynamic_axes={name: {0: "batch", 1: "sequence"} for name in inputs},
            opset_version=17,
            dynamo=False,
        )


def _prepared(run, question, dtype, versions=None) -> Prepared:
    """Returns the Prepared of a contestant, whose output is checked."""
    found = difference(run(), question, dtype)
    return Prepared(run, {"difference": found, "versions": versions or {}})


def _pooled_model(weights):
    """Returns a module of PyTorch that returns the pooled output only."""
    import torch
    from transformers import AutoModel

    class Pooled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = AutoModel.from_pretrained(str(weights), local_files_only=True).eval()

        def forward(self, input_ids, attention_mask, token_type_ids):
            return self.model(
                input_ids=input_ids, attention_mask=attention_mask, token_type_ids=token_type_ids
            ).pooler_output

    return Pooled().eval()
