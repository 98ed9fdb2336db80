"""Records equal tf.train.Example to the byte, whatever they contain, and can be inspected."""

import random
import subprocess
import sys

import numpy as np
import pytest
import tensorflow as tf

from data_pipeline.errors import InputError
from data_pipeline.records.examples import decode_instance, encode_instances
from data_pipeline.records.schema import PRETRAINING_FEATURES, feature_length

#: Values around each length of a varint.
EDGES = [0, 1, 127, 128, 16383, 16384, 29999, 2**21 - 1, 2**21, 2**28 - 1, 2**28, 2**31 - 1, 2**31]


def random_instances(count, length, predictions, dtype=np.int64, top=30000):
    generator = np.random.default_rng(count + length)
    instances = {}
    for name, feature in PRETRAINING_FEATURES.items():
        shape = count, feature_length(feature, length, predictions)
        if feature.dtype == "int64":
            instances[name] = generator.integers(0, top, shape).astype(dtype)
        else:
            instances[name] = generator.random(shape, np.float32)
    return instances


def example_of(features):
    lists = {
        name: tf.train.Feature(int64_list=tf.train.Int64List(value=values))
        if PRETRAINING_FEATURES[name].dtype == "int64"
        else tf.train.Feature(float_list=tf.train.FloatList(value=values))
        for name, values in features.items()
    }
    return tf.train.Example(features=tf.train.Features(feature=lists))


def by_tensorflow(instances):
    count = len(next(iter(instances.values())))
    rows = [
        {name: values[row].tolist() for name, values in instances.items()} for row in range(count)
    ]
    return [example_of(row).SerializeToString(deterministic=True) for row in rows]


@pytest.mark.parametrize(
    "count, length, predictions, dtype, top",
    [
        (40, 64, 10, np.int64, 30000),
        (7, 512, 77, np.int32, 30000),
        (7, 512, 77, np.uint16, 2),
        (3, 1, 1, np.uint8, 128),
        (2, 300, 20, np.uint64, 2**63),
        (0, 16, 3, np.int64, 2),
    ],
)
def test_the_bytes_are_those_of_tensorflow(count, length, predictions, dtype, top):
    instances = random_instances(count, length, predictions, dtype, top)
    whole = {
        name: values.astype(np.int64) if PRETRAINING_FEATURES[name].dtype == "int64" else values
        for name, values in instances.items()
    }
    assert encode_instances(instances) == by_tensorflow(whole)


@pytest.mark.parametrize("value", EDGES)
def test_values_at_the_edges_of_a_byte_come_out_right(value):
    instances = random_instances(2, 5, 2, top=2)
    instances["input_ids"][1, 3] = value
    instances["next_sentence_labels"][0] = value
    assert encode_instances(instances) == by_tensorflow(instances)


def test_values_of_all_sizes_mix():
    instances = random_instances(50, 8, 4)
    for name in ("input_ids", "masked_lm_ids"):
        places = np.random.default_rng(1).integers(0, len(EDGES), instances[name].shape)
        instances[name] = np.array(EDGES)[places]
    assert encode_instances(instances) == by_tensorflow(instances)


def test_lists_without_values_are_written_as_tensorflow_does():
    instances = random_instances(2, 4, 0)
    assert encode_instances(instances) == by_tensorflow(instances)


def test_an_optional_feature_may_be_absent():
    instances = random_instances(3, 4, 2)
    del instances["token_boundary"]
    assert encode_instances(instances) == by_tensorflow(instances)


@pytest.mark.parametrize(
    "change, message",
    [
        ({"input_id": np.zeros((3, 4), int)}, r"unknown \['input_id'\]"),
        ({"input_ids": np.array([[1], [-1], [1]])}, "`input_ids` must not be negative"),
    ],
)
def test_instances_that_make_no_record_are_refused(change, message):
    with pytest.raises(ValueError, match=message):
        encode_instances(random_instances(3, 4, 2) | change)


def test_a_missing_feature_is_refused():
    with pytest.raises(ValueError, match=r"missing \['input_ids', "):
        encode_instances({"segment_ids": np.zeros((3, 4), int)})


def test_neither_module_loads_tensorflow():
    code = (
        "import sys, data_pipeline.records.examples, data_pipeline.records.record_files\n"
        "sys.exit(any(name.split('.')[0] == 'tensorflow' for name in sys.modules))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_record_is_decoded_as_it_was_encoded():
    instances = random_instances(4, 20, 6)
    instances["input_ids"][0, : len(EDGES)] = EDGES
    for row, record in enumerate(encode_instances(instances)):
        features = decode_instance(record)
        assert features.keys() == instances.keys()
        for name, values in features.items():
            assert values.dtype == PRETRAINING_FEATURES[name].dtype
            np.testing.assert_array_equal(values, instances[name][row])


def test_foreign_features_are_kept():
    example = tf.train.Example()
    example.features.feature["number"].int64_list.value.extend([-1, 2**63 - 1, -(2**63), 5])
    example.features.feature["text"].bytes_list.value.extend([b"a", b"", b"bc"])
    example.features.feature["empty"].int64_list.value.extend([])
    example.features.feature["unset"].Clear()
    example.features.feature["empty"].int64_list.SetInParent()
    features = decode_instance(example.SerializeToString())
    assert features["number"].tolist() == [-1, 2**63 - 1, -(2**63), 5]
    assert features["text"].tolist() == [b"a", b"", b"bc"]
    assert features["empty"].tolist() == []
    assert "unset" not in features


def wrapped(feature):
    """Returns the record whose only feature, `x`, has these bytes."""
    entry = b"\x0a\x01x\x12" + bytes([len(feature)]) + feature
    features = b"\x0a" + bytes([len(entry)]) + entry
    return b"\x0a" + bytes([len(features)]) + features


@pytest.mark.parametrize(
    "feature, values",
    [
        (b"\x1a\x05\x08\x01\x08\xac\x02", [1, 300]),  # one by one
        (b"\x1a\x05\x0a\x03\x01\xac\x02", [1, 300]),  # packed
        (b"\x1a\x07\x0a\x03\x01\xac\x02\x08\x07", [1, 300, 7]),  # both
        (b"\x12\x0a\x0d\x00\x00\x80\x3f\x0d\x00\x00\x00\x40", [1.0, 2.0]),  # floats one by one
    ],
)
def test_packed_and_unpacked_lists_are_both_understood(feature, values):
    assert tf.train.Example.FromString(wrapped(feature)).features.feature["x"].WhichOneof("kind")
    assert decode_instance(wrapped(feature))["x"].tolist() == values


@pytest.mark.parametrize("last, values", [(b"\x1a\x03\x0a\x01\x09", [9]), (b"", None)])
def test_of_features_of_one_name_the_last_counts(last, values):
    record = wrapped(b"\x1a\x03\x0a\x01\x05") + wrapped(last)
    lists = tf.train.Example.FromString(record).features.feature["x"].int64_list.value
    assert list(lists) == (values or [])
    features = decode_instance(record)
    assert features["x"].tolist() == values if values else features == {}


def test_no_features_are_an_empty_dict():
    assert decode_instance(b"") == decode_instance(b"\x0a\x00") == {}


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(b"\x0a\x05\x0a", id="beyond the end"),
        pytest.param(b"\x0a\xff", id="a size without an end"),
        pytest.param(b"\x00\x00", id="field 0"),
        pytest.param(b"\x0b", id="a group without an end"),
        pytest.param(wrapped(b"\x1a\x03\x0a\x01\x80"), id="a number without an end"),
        pytest.param(wrapped(b"\x1a\x0d\x0a\x0b" + b"\x80" * 10 + b"\x01"), id="a long number"),
        pytest.param(wrapped(b"\x12\x05\x0a\x03\x00\x00\x80"), id="a float of three bytes"),
        pytest.param(wrapped(b"\x1a\x00").replace(b"x", b"\xff"), id="a name not in UTF-8"),
    ],
)
def test_damaged_bytes_are_refused(record):
    with pytest.raises(InputError, match="must be a complete tf.train.Example"):
        decode_instance(record)


def test_what_tensorflow_cannot_parse_is_refused_too():
    (record,) = encode_instances(random_instances(1, 6, 2))
    choice, refused = random.Random(5), 0
    for _ in range(500):
        damaged = bytearray(record)
        damaged[choice.randrange(len(record))] ^= 1 << choice.randrange(8)
        try:
            tf.train.Example.FromString(bytes(damaged))
        except Exception:
            refused += 1
            with pytest.raises(InputError):
                decode_instance(bytes(damaged))
        else:
            try:
                decode_instance(bytes(damaged))
            except InputError:
                pass  # we may be stricter, but nothing else may be raised
    assert refused > 50
