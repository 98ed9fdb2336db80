"""Fine-tuned models over strings answer what their tasks answer in Python."""

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.serving.graph.task_models import build_task_model
from albert_keras.serving.task_answers import answer_by_signatures
from albert_keras.tasks.choice.task import choice_text
from albert_keras.tasks.examples import ChoiceExample, TaggedExample, TextExample
from albert_keras.tasks.kinds import build_task
from tests.albert_keras.tasks.small_tasks import (
    MIXED_TEXT,
    build_model,
    make_examples,
    make_task,
)

DIRTY = [b"", b"\xff\xfe bad \xc3\x28", b"long words " * 90, "Ｆull wídth ½".encode()]


def make_shape(tokenizer, **changes):
    return AlbertConfig(
        vocab_size=tokenizer.vocab_size,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=64,
        initializer_range=0.5,
    ).replace(**changes)


def randomized(model):
    """Draws weights of the head that tell inputs apart."""
    draw = np.random.default_rng(0)
    for weight in model.head.weights:
        weight.assign(draw.normal(0, 0.5, weight.shape))
    return model


def outputs_of(model, features):
    """Runs a model over all rows, without a graph."""
    inputs = features.batch(np.arange(len(features)))
    outputs = model({name: tf.constant(value) for name, value in inputs.items()})
    return {name: value.numpy() for name, value in outputs.items()}


@pytest.fixture(scope="module")
def of_kind(tiny_tokenizer):
    """Returns a function of a kind that gives task, model and TaskModel, made once."""
    made = {}

    def of_kind(kind):
        if kind not in made:
            task = make_task(kind)
            model = build_model(kind, make_shape(tiny_tokenizer), task.num_outputs)
            randomized(model)
            made[kind] = task, model, build_task_model(model, tiny_tokenizer, task)
        return made[kind]

    return of_kind


def expected(task, model, tokenizer, examples):
    features = task.features(examples, tokenizer)
    return task.answers(examples, features, outputs_of(model, features))


def call(task_model, name, *texts):
    inputs = (tf.constant(values, tf.string) for values in texts)
    return {key: value.numpy() for key, value in task_model.functions[name](*inputs).items()}


def readable(texts):
    return [text.decode(errors="replace") for text in texts]


def test_classes_are_those_of_the_task(of_kind, tiny_tokenizer, tiny_corpus):
    task, model, task_model = of_kind("classification")
    examples = [one._replace(label=None) for one in make_examples(tiny_corpus, task.kind.name, 9)]
    firsts = [one.first.encode() for one in examples] + DIRTY + DIRTY
    seconds = [one.second.encode() for one in examples] + DIRTY + DIRTY[::-1]
    pairs = zip(readable(firsts), readable(seconds), strict=True)
    answers = expected(task, model, tiny_tokenizer, [TextExample("0", *pair) for pair in pairs])
    found = call(task_model, "text_pair", firsts, seconds)
    assert found["label"].tolist() == [answer.label.encode() for answer in answers]
    assert len(set(found["label"])) > 1
    np.testing.assert_allclose(found["probability"], [a.probability for a in answers], atol=1e-5)
    dropped = [answer.dropped_tokens for answer in answers]
    assert found["dropped_tokens"].tolist() == dropped and 0 < sum(map(bool, dropped)) < len(
        dropped
    )
    for row, answer in enumerate(answers):
        names = [name.decode() for name in found["labels"][row]]
        given = dict(zip(names, found["probabilities"][row].tolist(), strict=True))
        assert given == pytest.approx(answer.probabilities, abs=1e-5)

    lines = [b"\t".join(pair) for pair in zip(firsts, seconds, strict=True)]
    by_tab = call(task_model, "serving_default", lines)
    np.testing.assert_allclose(by_tab["probabilities"], found["probabilities"], atol=1e-5)
    assert by_tab["dropped_tokens"].tolist() == dropped
    alone = call(task_model, "text_pair", firsts[1:2], seconds[1:2])
    np.testing.assert_allclose(alone["probabilities"][0], found["probabilities"][1], atol=1e-5)


def test_examples_are_classified_as_texts_are(of_kind):
    task_model = of_kind("classification")[2]
    features = {
        name: tf.train.Feature(bytes_list=tf.train.BytesList(value=[text]))
        for name, text in (("text", b"The ferry"), ("pair", b"left."))
    }
    whole = tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()
    found = call(task_model, "classify", [whole, b""])
    texts = call(task_model, "text_pair", [b"The ferry", b""], [b"left.", b""])
    assert set(found) == {"classes", "scores"}
    assert (found["classes"] == texts["labels"]).all()
    np.testing.assert_allclose(found["scores"], texts["probabilities"], atol=1e-5)


def test_scores_are_those_of_the_task(of_kind, tiny_tokenizer, tiny_corpus):
    task, model, task_model = of_kind("regression")
    texts = [text.encode() for text in tiny_corpus[:5]] + DIRTY
    examples = [TextExample("0", text) for text in readable(texts)]
    answers = expected(task, model, tiny_tokenizer, examples)
    found = call(task_model, "serving_default", texts)["score"]
    np.testing.assert_allclose(found, [answer.score for answer in answers], atol=1e-5)
    explained = call(task_model, "explain_tokens", texts)
    dropped = [answer.dropped_tokens for answer in answers]
    assert explained["dropped_tokens"].tolist() == dropped and any(dropped)
    outputs = call(task_model, "regress", [b""])["outputs"]
    np.testing.assert_allclose(outputs, found[[5]], atol=1e-5)
    assert "text_pair" not in task_model.functions


def test_words_have_the_tags_of_the_task(of_kind, tiny_tokenizer, tiny_corpus):
    task, model, task_model = of_kind("tagging")
    texts = [b"", b" \xc2\xa0", *(text.encode() for text in tiny_corpus[:5]), *DIRTY[1:]]
    texts += ["a \u200b b\u00a0c\nd".encode(), b"x" * 200 + b" y"]
    sentences = [tuple(text.split()) for text in readable(texts)]
    found = call(task_model, "tags", texts)
    examples = [TaggedExample("0", words) for words in sentences if words]
    answers = iter(expected(task, model, tiny_tokenizer, examples))
    for row, words in enumerate(sentences):
        given = [word.decode() for word in found["words"][row] if word]
        assert given == list(words)
        tags, probability = found["tags"][row], found["probability"][row]
        if not words:
            assert not tags.any() and not probability.any()
            continue
        answer = next(answers)
        count = len(words)
        assert tags[:count].tolist() == [tag.encode() for tag in answer.tags]
        np.testing.assert_allclose(probability[:count], answer.probabilities, atol=1e-5)
        assert not tags[count:].any() and not probability[count:].any()
    assert max(map(len, sentences)) > 100 and not found["dropped_words"].any()


@pytest.mark.parametrize("space", [" ", "\u3000"])
def test_words_beyond_the_bytes_that_are_read_are_counted(of_kind, space):
    task_model = of_kind("tagging")[2]
    limit = task_model.max_bytes
    head = "ferry".ljust(limit - 6) + "left"
    texts = [head, head + "xxyy", head + f"xxyy{space}a b\n", head + f"xx{space}a  b", head + "  "]
    found = call(task_model, "tags", [text.encode() for text in texts])
    assert found["dropped_words"].tolist() == [0, 0, 2, 2, 0]
    words = [[word.decode() for word in row if word] for row in found["words"]]
    assert words == [["ferry", word] for word in ("left", *["leftxx"] * 3, "left")]
    assert (found["tags"][:, :2] != b"").all()


def test_choices_are_those_of_the_task(of_kind, tiny_tokenizer, tiny_corpus):
    task, model, task_model = of_kind("choice")
    examples = make_examples(tiny_corpus, task.kind.name, 9)
    contexts = [one.context.encode() for one in examples] + DIRTY
    questions = [one.question.encode() for one in examples]
    questions += [b"", b"\xff _ or _", b"blank _ " * 60, "no blank \uff3f".encode()]
    options = [[option.encode() for option in one.options] for one in examples]
    options += [[b"", b" ", b"x"], [b"a", b"\xff", b"long " * 99], [b"p", b"q", b"r"]]
    options += [[b"a_b", rb"\1", b"y" * 2000]]
    rows = zip(readable(contexts), readable(questions), map(readable, options), strict=True)
    examples = [ChoiceExample("0", *row[:2], tuple(row[2]), None) for row in rows]
    answers = expected(task, model, tiny_tokenizer, examples)
    found = call(task_model, "multiple_choice", contexts, questions, options)
    assert found["choice"].tolist() == [answer.choice for answer in answers]
    assert found["option"].tolist() == [answer.option.encode() for answer in answers]
    probabilities = [answer.probabilities for answer in answers]
    np.testing.assert_allclose(found["probabilities"], probabilities, atol=1e-5)
    # The last three have more bytes than are tokenized.
    dropped = [answer.dropped_tokens for answer in answers]
    assert found["dropped_tokens"].tolist()[:-3] == dropped[:-3] and any(dropped[:-3])
    np.testing.assert_allclose(found["dropped_tokens"][-3:], dropped[-3:], rtol=0.5)


def test_blanks_are_filled_as_in_python(of_kind):
    questions = ["_", "a _ b _", " no blank\u00a0", "", "\uff3f and \ufe4e", "__", "_" * 3000]
    options = ["x", " y ", "", "_", "a\\1", "\u3000z", "12"]
    pairs = [(question, option) for question in questions for option in options]
    model = of_kind("choice")[2]
    found = model._filled(*(model._stripped(list(part)) for part in zip(*pairs, strict=True)))
    for (question, option), text in zip(pairs, found.numpy(), strict=True):
        whole = choice_text(question, option)
        assert whole.endswith(text.decode())
        assert len(text) > 1000 if len(question) == 3000 and option else whole == text.decode()


def test_all_models_encode_explain_and_take_ids(of_kind, tiny_tokenizer):
    _, model, task_model = of_kind("classification")
    explained = call(task_model, "explain_tokens", [b"The old\tferry", b""])
    first, second = tiny_tokenizer.encode("The old"), tiny_tokenizer.encode("ferry")
    sep = tiny_tokenizer.sep_id
    ids = [tiny_tokenizer.cls_id, *first, sep, *second, sep]
    assert explained["ids"][0, : len(ids)].tolist() == ids
    pieces = [tiny_tokenizer.piece_of(id).encode() for id in ids]
    assert explained["pieces"][0, : len(ids)].tolist() == pieces
    assert not explained["pieces"][0, len(ids) :].any() and explained["pieces"].shape == (2, 16)

    segments = [0] * (len(first) + 2) + [1] * (len(second) + 1)
    inputs = [np.array([row], np.int32) for row in (ids, [1] * len(ids), segments)]
    hidden = model.encoder(
        dict(zip(("input_ids", "input_mask", "segment_ids"), inputs, strict=True))
    )
    encoded = call(task_model, "encode", [b"The old\tferry", b""])
    np.testing.assert_allclose(encoded["pooled_output"][0], hidden["pooled_output"][0], atol=1e-5)
    sequence = hidden["sequence_output"][0].numpy()
    np.testing.assert_allclose(encoded["sequence_output"][0, : len(ids)], sequence, atol=1e-5)
    np.testing.assert_allclose(encoded["mean_output"][0], sequence.mean(axis=0), atol=1e-5)

    predict = task_model.token_functions["predict_tokens"]
    logits = predict(*(tf.constant(rows) for rows in inputs))["logits"]
    found = call(task_model, "serving_default", [b"The old\tferry"])
    np.testing.assert_allclose(tf.nn.softmax(logits), found["probabilities"], atol=1e-5)
    wild = tf.constant([[-5, 10**6, 2]])
    assert np.isfinite(predict(wild, wild, wild)["logits"]).all()


@pytest.mark.parametrize("rule", ["characters", "punctuation"])
def test_words_are_split_as_in_python(rule, of_kind, tiny_tokenizer, tiny_corpus):
    task, model, _ = of_kind("tagging")
    task = build_task(task.config.replace(word_split=rule))
    task_model = build_task_model(model, tiny_tokenizer, task)
    texts = [
        MIXED_TEXT,
        *tiny_corpus[:2],
        "\u0301a\u200d \u3000b-",
        "x'y'' #1,000-z\n",
        "a" * 99 + ",",
    ]
    examples = [task.example(number, {"text": text}) for number, text in enumerate(texts)]
    found = call(task_model, "tags", [text.encode() for text in texts])
    for row, example in zip(found["words"], examples, strict=True):
        assert [word.decode() for word in row if word] == list(example.words)
    assert not found["dropped_words"].any()

    def ask(signature, text):
        return call(task_model, signature, [one.encode() for one in text])

    given = [task.example(0, {"words": ["Anna,", "北京", "(x)"]}), *examples]
    for one, other in zip(
        answer_by_signatures(ask, task, given),
        expected(task, model, tiny_tokenizer, given),
        strict=True,
    ):
        assert one.words == other.words and one.tags == other.tags
    long = "x " * (task_model.max_bytes // 2 - 1) + "ab" + "cd, efg,"
    [dropped] = call(task_model, "tags", [long.encode()])["dropped_words"]
    assert dropped == {"characters": 7, "punctuation": 3}[rule]
