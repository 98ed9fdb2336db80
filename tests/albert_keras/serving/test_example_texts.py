"""Texts come out of tf.Examples in the graph, and nothing out of what is none."""

import random

import tensorflow as tf

from albert_keras.serving.graph.example_texts import MAX_FIELDS, texts_of_examples


def example(**features):
    kinds = {bytes: ("bytes_list", tf.train.BytesList), int: ("int64_list", tf.train.Int64List)}
    found = {}
    for name, values in features.items():
        field, kind = kinds[type(values[0])]
        found[name] = tf.train.Feature(**{field: kind(value=values)})
    return tf.train.Example(features=tf.train.Features(feature=found)).SerializeToString()


def test_texts_are_read_out_of_examples():
    examples = {
        example(text=[b"hello"]): b"hello",
        example(text=[b"x" * 70_000], pair=[b"no"]): b"x" * 70_000,
        example(text=[b"first", b"second"]): b"first",
        example(a=[b"1"], text=["ä".encode()], z=[3]): "ä".encode(),
        example(text=[3, 4]): b"",
        example(pair=[b"another"]): b"",
    }
    found = texts_of_examples(tf.constant(list(examples)), "text", 100_000).numpy()
    assert found.tolist() == list(examples.values())
    assert texts_of_examples(tf.constant([], tf.string), "text", 100_000).shape == (0,)


def test_no_more_is_read_than_shows_where_to_cut():
    [found] = texts_of_examples(
        tf.constant([example(text=["é".encode() * 99])]), "text", 11
    ).numpy()
    assert "é".encode() * 99 != found and found.startswith("é".encode() * 6) and len(found) == 15


def test_what_is_no_example_has_no_text():
    draw = random.Random(0)
    examples = [bytes(draw.choices(range(256), k=draw.randrange(40))) for _ in range(300)]
    whole = example(text=[b"some text"], pair=[b"more"])
    examples += [whole[:end] for end in range(len(whole))]
    examples += [b"\n\xff\xff\xff\xff\xff\xff", b"\n" * 99, b"\n\x00" * (2 * MAX_FIELDS)]
    found = texts_of_examples(tf.constant([*examples, whole]), "text", 100_000).numpy()
    assert found[-1] == b"some text" and len(found) == len(examples) + 1
