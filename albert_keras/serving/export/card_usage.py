"""How to ask a published version: the part of the model card that is for trying it at once."""

import json
import shlex

from albert_keras.serving.export.card_text import code, escaped, section, table, wrapped
from albert_keras.serving.layout import keras_file
from albert_keras.tasks.kinds import CHOICE
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER

_REST_PORT = 8501
#: Our server takes nothing else: a page of somebody else's cannot send it unasked.
_JSON = "'Content-Type: application/json'"
#: Characters of a request that stays in one line.
_SHORT = 88
_MASKED = "The old ferry left the [MASK]."
#: Input of a signature → what to ask; `text` depends on what the model is for.
_TEXTS = CHOICE.sample | {"first": "He opened the door.", "second": "Then he went in."}
#: Which signature the first request is to; texts of the last one may need a tab.
_ASKED = ("question_answering", "multiple_choice", "text_pair", "serving_default")
_PURPOSES = {
    "attention": "how much each piece takes of each other one, for the first 64 pieces",
    "classify": "the same for `tf.Example`s with the features {features}; method `:classify`",
    "encode": "vectors of a text and of its pieces, to build on",
    "explain_tokens": "which pieces and ids the model reads",
    "fill_mask": "the likeliest pieces for each `[MASK]`, and the text filled with the first",
    "multiple_choice": "which option is right; `choice` is its number from 0",
    "predict_tokens": "ids of pieces instead of text",
    "question_answering": "the answer and where in the context it stands, in characters",
    "regress": "the same for `tf.Example`s with the features {features}; method `:regress`",
    "sentence_order": "the probability that the first text comes before the second",
    "serving_default": "what is answered where a request names no signature",
    "tags": "a tag for each word; words are parted by white space",
    "text_pair": "the same for two texts as two inputs",
}


def usage_section(name, version):
    """Writes how a version is asked over HTTP, from Python and with Keras.

    Args:
        name: str. Of the model, one that `check_model_name` lets pass.
        version: CardVersion. The newest one.

    Returns:
        str. Markdown.
    """
    return section(
        "How to ask it",
        "All of this is for the folder of this card. Start a server, TensorFlow's or ours:",
        _fenced("sh", _servers(name)),
        "Once it is ready, ask it from another terminal:",
        _fenced("sh", _requests(name, version)),
        _python(version),
        _keras(version),
    )


def signatures_section(version):
    """Writes a table of what a version can be asked, "" if that is not known."""
    rows = []
    takes_pair = version.at("task", "takes_pair", kind=bool)
    features = "`text` and `pair`" if takes_pair else "`text`"
    for name, signature in version.signatures.items():
        purpose = _PURPOSES.get(name, "").replace("{features}", features)
        given, answered = (_tensors(signature.get(key)) for key in ("inputs", "outputs"))
        rows.append((code(name), given, answered, purpose))
    note = "B is the number of texts of a request; … is a size that depends on the texts."
    finds_spans = version.task_kind and version.task_kind.finds_spans
    joined = finds_spans or takes_pair
    if joined:
        parts = "question and context" if finds_spans else "the two texts"
        note += f" Where there is one `text`, {parts} are parted by a tab."
    shown = table(("Signature", "Takes", "Gives", "For"), rows)
    return section("Signatures", shown, wrapped(note)) if shown else ""


def _servers(name):
    options = f'--rest_api_port={_REST_PORT} --model_name={name} --model_base_path="$PWD"'
    ours = ["# or, with a page to try it:", "albert-keras serve ."]
    return [f"tensorflow_model_server {options}", *ours]


def _requests(name, version):
    address = f"http://127.0.0.1:{_REST_PORT}/v1/models/{name}"
    lines, signatures = [], version.signatures
    asked = next((one for one in _ASKED if _is_asked(signatures.get(one))), None)
    for signature in (asked, "sentence_order"):
        if _is_asked(signatures.get(signature)):
            body = _body(signature, list(signatures[signature]["inputs"]), version)
            data = json.dumps(body)
            data = data if len(data) < _SHORT else json.dumps(body, indent=2)
            lines.append(f"curl {address}:predict -H {_JSON} \\\n  --data {shlex.quote(data)}")
    if asked is None:  # the server knows
        lines.append(f"curl {address}/metadata")
    return lines


def _is_asked(signature):
    """Tells whether there is an example of each input of a signature."""
    inputs = signature.get("inputs") if signature else None
    return isinstance(inputs, dict) and bool(inputs) and set(inputs) <= {"text", *_TEXTS}


def _body(signature, inputs, version):
    row = {key: _example(key, version) for key in inputs}
    named = {} if signature == "serving_default" else {"signature_name": signature}
    return named | {"instances": [row[inputs[0]] if len(inputs) == 1 else row]}


def _example(field, version):
    if field == "text":
        if version.task_kind is None:
            return _MASKED
        if version.task_kind.finds_spans:
            return f"{_TEXTS['question']}\t{_TEXTS['context']}"
        return version.task_kind.sample.get("text", _MASKED)
    return _TEXTS[field]


def _python(version):
    lines = ["from albert_keras import Predictor", "", 'predictor = Predictor(".")']
    if version.kind == "pretraining":
        lines.append(f"print(predictor.fill_mask([{_literal(_example('text', version))}]))")
        if "sentence_order" in version.signatures:
            texts = ", ".join(f"[{_literal(_TEXTS[key])}]" for key in ("first", "second"))
            lines.append(f"print(predictor.sentence_order({texts}))")
    elif version.task_kind:
        lines.append("example = {")
        for field, value in _fields(version).items():
            lines.append(f"    {_literal(field)}: {_literal(value)},")
        lines += ["}", "print(predictor.answer([example]))"]
    else:
        return ""
    return f"From Python, with `albert-keras` installed:\n\n{_fenced('python', lines)}"


def _fields(version):
    if version.at("task", "takes_pair", kind=bool):
        return {"text": _TEXTS["first"], "pair": _TEXTS["second"]}
    return version.task_kind.sample


def _keras(version):
    path = keras_file(version.folder)
    if not path.is_file():
        return ""
    lines = ["import albert_keras  # Keras finds the classes of the model in it"]
    has_tokenizer = (version.folder / TOKENIZER_FOLDER).is_dir()
    if has_tokenizer:
        lines.append("from data_pipeline.tokenizers.tokenization import Tokenizer")
    lines += ["from tensorflow import keras", "", f'model = keras.models.load_model("{path.name}")']
    if has_tokenizer:
        lines += [
            f'tokenizer = Tokenizer.load("{version.number}/{TOKENIZER_FOLDER}")',
            f"pieces = tokenizer.encode({_literal(_TEXTS['context'])})",
            "ids = [[tokenizer.cls_id, *pieces, tokenizer.sep_id]]",
            'print(model.encoder({"input_ids": ids})["pooled_output"])',
        ]
    return f"In Keras, to train it further (its weights are float32):\n\n{_fenced('python', lines)}"


def _tensors(tensors):
    """Writes inputs or outputs of a signature, such as `text` string [B]."""
    tensors = tensors if isinstance(tensors, dict) else {}
    return ", ".join(f"{code(name)} {_spec(spec)}" for name, spec in sorted(tensors.items()))


def _spec(spec):
    """Writes what `export.json` says of a tensor, [dtype, shape or None]."""
    dtype, shape = spec if isinstance(spec, list) and len(spec) == 2 else (None, None)
    if not isinstance(dtype, str) or not isinstance(shape, list):
        return ""
    sizes = ["…" if size is None else escaped(str(size)) for size in shape]
    if shape and shape[0] is None:
        sizes[0] = "B"
    return f"{escaped(dtype)} [{', '.join(sizes)}]"


def _literal(value):
    """Writes a text, or a list of texts, as both Python and JSON read it."""
    return json.dumps(value)


def _fenced(language, lines):
    return "\n".join((f"```{language}", *lines, "```"))
