"""Answers that the graph extracts from contexts equal Python's answers, to the character."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.graph.span_model import NUM_BYTES
from albert_keras.serving.graph.task_models import build_task_model
from albert_keras.serving.graph.windows import max_context
from albert_keras.serving.saved_model.server_ops import TEXT_OPS, core_ops
from albert_keras.tasks.examples import QuestionExample
from albert_keras.tasks.kinds import SPANS, SPANS_OR_NONE
from albert_keras.tasks.spans import windows as squad_windows
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.library_training import train_byte_bpe, train_wordpiece
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.albert_keras.serving.test_task_models import make_shape, outputs_of, randomized
from tests.albert_keras.tasks.small_tasks import build_model, make_examples, make_task

CONTEXTS = [
    "The old ferry left the harbour.",
    "  Space \t before,\u00a0within   and behind \n",
    "Caf\u00e9 Cafe\u0301, in ＬＩＳＢＯＮ, of x12, or 7, sheep 12,5",
    "naïve İstanbul ΟΔΥΣΣΕΥΣ 中文 한국어 \U0001f600 end",
    "A\u0301\u0301 \u0301 b\u200bc",
    "",
    " ",
]


@pytest.fixture(scope="module")
def other_tokenizers(tiny_corpus, tmp_path_factory):
    """Returns a tokenizer of WordPiece and one of byte-level BPE."""
    folder = tmp_path_factory.mktemp("others")
    return {
        "wordpiece": Tokenizer.load(train_wordpiece(tiny_corpus, folder / "words", 350).path),
        "bpe": Tokenizer.load(train_byte_bpe(tiny_corpus, folder / "bytes", 400).path),
    }


@pytest.mark.parametrize("kind", ["wordpiece", "bpe"])
def test_answers_with_the_other_kinds_are_those_of_python(kind, other_tokenizers, tiny_corpus):
    tokenizer, task = other_tokenizers[kind], make_task("spans")
    model = randomized(build_model(task.kind.name, make_shape(tokenizer), 1))
    contexts = [" ".join(tiny_corpus[:6]), *CONTEXTS[:-2]]
    examples = [
        QuestionExample(str(number), "who? " * number, context)
        for number, context in enumerate(contexts)
    ]
    expected = python_answers(task, model, tokenizer, examples)
    ids = task.features(examples[:1], tokenizer).batch(np.arange(1))["input_ids"]
    assert (ids == tokenizer.sep_id).sum() == {"wordpiece": 2, "bpe": 3}[kind]
    task_model = build_task_model(model, tokenizer, task)
    found = ask(task_model, examples)
    for row, (example, answer) in enumerate(zip(examples, expected, strict=True)):
        start, end = int(found["start"][row]), int(found["end"][row])
        assert (start, end) == (answer.start, answer.end)
        assert example.context[start:end] == answer.text == found["answer"][row].numpy().decode()
    function = task_model.functions["question_answering"].get_concrete_function()
    assert_only_server_ops(function.graph.as_graph_def())


def test_the_window_with_most_around_a_piece_is_that_of_python():
    places, lengths, firsts, expected = [], [], [], []
    begin = 0
    for total, budget, stride in ((23, 8, 3), (5, 8, 3), (40, 9, 9), (31, 10, 4)):
        offsets, sizes = squad_windows.lay_out_windows(total, budget, stride)
        best = squad_windows.max_context(offsets, sizes)
        for window, (offset, size) in enumerate(zip(offsets, sizes, strict=True)):
            row = np.zeros(12, bool)
            row[1 : size + 1] = best[offset : offset + size] == window
            expected.append(row)
            places.append(np.arange(12) - 1)
            lengths.append(size)
            firsts.append(begin + offset)
        begin += total
    found = max_context(*(tf.constant(np.array(part)) for part in (places, lengths, firsts)))
    np.testing.assert_array_equal(found, expected)


@pytest.fixture(scope="module", params=["spans", "spans_or_none"])
def asked(request, tiny_tokenizer, tiny_corpus):
    """Returns task, model, signature, examples, and what Python answers."""
    task = make_task(request.param)
    model = randomized(build_model(task.kind.name, make_shape(tiny_tokenizer), 1))
    examples = [one._replace(answers=()) for one in make_examples(tiny_corpus, task.kind.name, 6)]
    long = " ".join(tiny_corpus[:6])
    contexts = [long, "b\ufffdad", *CONTEXTS[:-2]]
    examples += [
        QuestionExample(f"more {number}", "who? " * number, context)
        for number, context in enumerate(contexts)
    ]
    answers = python_answers(task, model, tiny_tokenizer, examples)
    return task, model, examples, answers, build_task_model(model, tiny_tokenizer, task)


def python_answers(task, model, tokenizer, examples):
    features = task.features(examples, tokenizer)
    return task.answers(examples, features, outputs_of(model, features))


def ask(task_model, examples):
    questions = tf.constant([example.question for example in examples])
    contexts = tf.constant([example.context for example in examples])
    return task_model.functions["question_answering"](questions, contexts)


def test_answers_are_those_of_the_task(asked):
    task, _, examples, expected, task_model = asked
    found = {name: value.numpy() for name, value in ask(task_model, examples).items()}
    assert ("null_score" in found) == (task.kind is SPANS_OR_NONE)
    for row, (example, answer) in enumerate(zip(examples, expected, strict=True)):
        text, start, end = found["answer"][row].decode(), found["start"][row], found["end"][row]
        # Of squad1 the task says `empty` where no span is possible.
        has_place = answer.start is not None
        assert text == (answer.text if has_place else "")
        assert (start, end) == ((answer.start, answer.end) if has_place else (-1, -1))
        assert not text or example.context[start:end] == text
        assert found["dropped_tokens"][row] == answer.dropped_tokens
        best = answer.nbest[0]
        total = best["start_log_prob"] + best["end_log_prob"]
        assert found["score"][row] == pytest.approx(total, abs=1e-5)
        if "null_score" in found:
            assert found["null_score"][row] == pytest.approx(answer.null_score, abs=1e-5)
    assert (found["start"] >= 0).sum() > len(examples) / 3
    assert 0 < (found["dropped_tokens"] > 0).sum() < len(examples)


def test_the_threshold_decides_what_is_left_unanswered(tiny_tokenizer, asked):
    task, model, examples, _, task_model = asked
    if task.kind is SPANS:
        pytest.skip("squad1 has no threshold")
    asked_about = [
        tf.constant([getattr(one, name) for one in examples]) for name in ("question", "context")
    ]
    # Not from the signature: its graph may round the last bit differently, and one score is tied.
    scores = task_model.answers(*asked_about)["null_score"].numpy()
    middle = float(np.sort(scores)[len(scores) // 2])
    assert task_model._null_threshold == 0.0
    other = build_task_model(model, tiny_tokenizer, task, tuned={"null_threshold": middle})
    starts = other.answers(*asked_about)["start"].numpy()
    assert (starts[scores >= middle] == -1).all() and (starts[scores < middle] >= 0).any()


def test_contexts_without_a_window_have_no_answer(asked):
    ask = asked[4].functions["question_answering"]
    found = ask(tf.constant(["who?", ""]), tf.constant(["", " "]))
    assert found["answer"].numpy().tolist() == [b"", b""]
    assert found["start"].numpy().tolist() == found["end"].numpy().tolist() == [-1, -1]
    assert ask(tf.constant([], tf.string), tf.constant([], tf.string))["answer"].shape == (0,)
    if "null_score" in found:
        assert found["null_score"].numpy().tolist() == [1e6, 1e6]


def test_no_content_raises_and_each_answer_is_a_slice(asked, shared_data):
    lines = (shared_data / "dirty" / "blns" / "blns.txt").read_bytes().split(b"\n")[::12]
    lines += [bytes([byte]) * 2 + b" a" for byte in range(0, 256, 9)] + [b"a\t" * 2000]
    found = asked[4].functions["question_answering"](tf.constant(lines[::-1]), tf.constant(lines))
    limit = NUM_BYTES * asked[4].packer.max_bytes  # of a context
    rows = zip(lines, found["answer"].numpy(), found["start"], found["end"], strict=True)
    for line, answer, start, end in rows:
        context = line[:limit].decode(errors="replace")
        if answer and "\ufffd" not in context:
            assert context[int(start) : int(end)] == answer.decode()
    assert np.isfinite(found["score"]).all()


def assert_only_server_ops(graph):
    ops = {node.op for node in graph.node}
    functions = {one.signature.name for one in graph.library.function}
    ops |= {node.op for one in graph.library.function for node in one.node_def}
    assert ops - functions <= core_ops() | TEXT_OPS


def test_a_question_that_fills_the_row_is_refused(tiny_tokenizer):
    task = make_task("spans")
    task.config = task.config.replace(max_query_length=37)
    model = build_model(task.kind.name, make_shape(tiny_tokenizer), 1)
    with pytest.raises(InputError, match="max_query_length"):
        build_task_model(model, tiny_tokenizer, task)
