"""The signatures of fine-tuned models: what they take, count and return.

`tests/ways` compares their answers with those of the models in memory.
"""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.calls import answers_by_signatures
from albert_keras.serving.graph.string_tasks import TaskModel
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.saved_model.server_ops import TEXT_OPS, core_ops
from albert_keras.tasks.examples import QuestionExample, TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.library_training import train_byte_bpe
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.albert_keras.serving.small_exports import assert_alike, make_model
from tests.albert_keras.tasks.small_tasks import make_task

#: Inputs of signatures that take something else than `text`.
INPUTS = {
    "text_pair": ["first", "second"],
    "question_answering": ["question", "context"],
    "multiple_choice": ["context", "question", "options"],
}
DIRTY = [
    "nul \0 and \x1c tab\t",
    "\ufffd\ufffd bad \ufffd( Ｆull wídth ½ ﬃ\u0301",
    "[CLS] A [MASK] [SEP] <unk>",
    "\u202e\u200b\U0001f469\u200d\U0001f52c \u200b b\u00a0c\nd",
    " ".join(f"{number} ferries left harbour {number * 7}," for number in range(30)),
    "",
]


def in_python(task, model, examples):
    """Answers examples by the model in memory."""
    ids = [example.id for example in examples]
    return model.answers(task.columns_of_strings(examples), ids=ids)


def call(model, name, *texts):
    """Calls a signature of a TaskModel or Predictor."""
    functions = model._functions if isinstance(model, Predictor) else model.functions
    given = zip(INPUTS.get(name, ["text"]), texts, strict=True)
    found = functions[name](**{key: tf.constant(one, tf.string) for key, one in given})
    return {key: value.numpy() for key, value in found.items()}


def by_strings(task_model, task, examples):
    """Answers examples by the signatures over strings."""
    names = getattr(task_model, "names", None) or [*task_model.functions]

    def ask(name, **texts):
        return call(task_model, name, *texts.values())

    columns, ids = task.columns_of_strings(examples), [example.id for example in examples]
    return answers_by_signatures(ask, names, task.model_class, columns, ids)


def test_a_threshold_of_two_classes_is_that_of_the_graph(tiny_tokenizer, tiny_corpus):
    columns = {"text": "text", "label": "label", "labels": ("no", "yes")}
    config = TaskConfig(name="classification", max_seq_length=40, **columns)
    texts = [*tiny_corpus[:30], "\ufffd " + "long words " * 90]
    examples = [TextExample(str(number), text) for number, text in enumerate(texts)]
    task = build_task(config)
    model = make_model(task, tiny_tokenizer)
    shares = [answer.probabilities["yes"] for answer in in_python(task, model, examples)]
    model.threshold = float(np.quantile(shares, 0.8))
    expected = in_python(task, model, examples)
    assert [answer.label for answer in expected].count("yes") in (6, 7)
    assert expected[-1].dropped_tokens > 100
    assert_alike(by_strings(TaskModel(model), task, examples), expected)


def test_texts_and_tabs_are_answered_alike(pairs_predictor):
    firsts = [b"The ferry", b"", b"\xff\xfe bad \xc3\x28", b"long words " * 90]
    seconds = [b"left.", b"", b"Rain.", b"\xff"]
    found = call(pairs_predictor, "text_pair", firsts, seconds)
    lines = [b"\t".join(pair) for pair in zip(firsts, seconds, strict=True)]
    by_tab = call(pairs_predictor, "serving_default", lines)
    np.testing.assert_allclose(by_tab["probabilities"], found["probabilities"], atol=1e-5)
    assert by_tab["dropped_tokens"].tolist() == found["dropped_tokens"].tolist()
    assert found["dropped_tokens"].astype(bool).tolist() == [False, False, False, True]
    assert found["labels"][3].tolist() == [b"no", b"yes", b"maybe"]
    alone = call(pairs_predictor, "text_pair", firsts[:1], seconds[:1])
    np.testing.assert_allclose(alone["probabilities"], found["probabilities"][:1], atol=1e-5)


@pytest.mark.parametrize("space", [" ", "\u3000"])
def test_words_beyond_the_bytes_that_are_read_are_counted(of_kind, space):
    task_model = of_kind("tagging")[2]
    limit = task_model.rows.max_bytes
    head = "ferry".ljust(limit - 6) + "left"
    texts = [head, head + "xxyy", head + f"xxyy{space}a b\n", head + f"xx{space}a  b", head + "  "]
    found = call(task_model, "tags", [text.encode() for text in texts])
    assert found["dropped_words"].tolist() == [0, 0, 2, 2, 0]
    words = [[word.decode() for word in row if word] for row in found["words"]]
    assert words == [["ferry", word] for word in ("left", *["leftxx"] * 3, "left")]
    assert (found["tags"][:, :2] != b"").all()
    blank = call(task_model, "tags", [b" \xc2\xa0", b"a b"])
    assert not blank["tags"][0].any() and not blank["probability"][0].any()


def test_all_models_take_ids(pairs_predictor, tiny_tokenizer):
    first, second = tiny_tokenizer.encode("The old"), tiny_tokenizer.encode("ferry")
    sep = tiny_tokenizer.sep_id
    ids = [tiny_tokenizer.cls_id, *first, sep, *second, sep]
    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    rows = {"input_ids": ids, "input_mask": [1] * len(ids), "segment_ids": segments}
    inputs = {name: np.array([row], np.int32) for name, row in rows.items()}
    logits = pairs_predictor.ask("predict_tokens", **inputs)["logits"]
    found = call(pairs_predictor, "serving_default", [b"The old\tferry"])
    np.testing.assert_allclose(tf.nn.softmax(logits), found["probabilities"], atol=1e-5)
    wild = pairs_predictor.ask("predict_tokens", **dict.fromkeys(inputs, [[-5, 10**6, 2]]))
    assert np.isfinite(wild["logits"]).all()


@pytest.mark.slow
def test_spans_with_byte_bpe_have_operations_of_servers_only(tiny_corpus, tmp_path):
    tokenizer = Tokenizer.load(train_byte_bpe(tiny_corpus, tmp_path / "bytes", 400).path)
    task = make_task("spans")
    contexts = [" ".join(tiny_corpus[:6]), "naïve İstanbul ΟΔΥΣΣΕΥΣ 中文 \U0001f600 end"]
    examples = [QuestionExample("q", "who? " * 7, context) for context in contexts]
    model = make_model(task, tokenizer)
    rows = model.preprocessor(task.columns(examples[:1]))
    assert (rows["input_ids"][0] == tokenizer.sep_id).numpy().sum() == 3  # two between the texts
    task_model = TaskModel(model)
    expected = in_python(task, model, examples)
    for found, answer in zip(by_strings(task_model, task, examples), expected, strict=True):
        assert (found.text, found.start, found.end) == (answer.text, answer.start, answer.end)
        assert found.dropped_tokens == answer.dropped_tokens
    traced = task_model.functions["question_answering"].get_concrete_function()
    graph = traced.graph.as_graph_def()
    functions = {one.signature.name for one in graph.library.function}
    ops = {node.op for node in graph.node}
    ops |= {node.op for one in graph.library.function for node in one.node_def}
    assert ops - functions <= core_ops() | TEXT_OPS


def test_a_question_that_fills_the_row_is_refused(tiny_tokenizer):
    task = make_task("spans")
    task.config = task.config.replace(max_query_length=37)
    with pytest.raises(InputError, match="max_query_length"):
        task.build_preprocessor(tiny_tokenizer)
