"""Strings: the same answers as in Python, whatever the text, its length and its neighbours.

`pytest -m slow -s` prints the figures.
"""

import itertools
import random
import time

import numpy as np
import pytest
import tensorflow as tf

from albert_keras.serving.export.checks import TOLERANCE, LoadedModel, check_parity
from albert_keras.serving.graph.aligning_tokenizer import AligningTokenizer
from albert_keras.serving.task_answers import call_by_rows
from tests.albert_keras.serving.goals.hostile_strings import (
    example_of,
    hostile_bytes,
    hostile_examples,
    real_lines,
    strange_texts,
    texts_of_any_length,
)
from tests.albert_keras.serving.goals.string_sources import (
    EXAMPLES,
    SMALL,
    SOURCES,
    TOKENIZERS,
    Asked,
    balanced,
    columns,
    largest_difference,
    load_tokenizer,
    real_inputs,
    small_source,
    source_of,
    with_long,
)
from tests.albert_keras.serving.small_exports import write_export

pytestmark = pytest.mark.slow

#: Places of a row that all texts of these tests fit into in bytes, 32 for each place.
LONG = 512


@pytest.fixture(scope="module")
def data(request):
    """Returns the folder of real data, or None where there is none."""
    try:
        return request.getfixturevalue("shared_data")
    except pytest.skip.Exception:
        return None


@pytest.fixture(scope="module")
def asked_of(tiny_tokenizer):
    """Returns a function of a name in SOURCES that gives the Asked of a small model, made once."""
    made = {}

    def asked_of(name):
        if name not in made:
            made[name] = Asked(small_source(name, tiny_tokenizer))
        return made[name]

    return asked_of


@pytest.mark.parametrize("name", TOKENIZERS)
def test_ten_thousand_strings_have_equal_ids(name, request, data, tiny_corpus, tmp_path):
    tokenizer = load_tokenizer(name, request)
    lines = tiny_corpus if data is None else real_lines(data)
    texts = random.Random(0).sample(lines, min(len(lines), 5000))
    texts += strange_texts(10_000 - len(texts))
    source = source_of("numbers", tokenizer, LONG)
    write_export(tmp_path, source.task, source.model, tokenizer, ["explain_tokens"])
    ask = LoadedModel(tmp_path).ask
    assert max(len(text.encode()) for text in texts) <= 32 * LONG

    special = {tokenizer.pad_id, tokenizer.cls_id, tokenizer.sep_id, tokenizer.mask_id}
    expected = [tokenizer.encode(text) for text in texts]
    aligning = AligningTokenizer(tokenizer)
    specs = [tf.TensorSpec([None], tf.string)]
    align = tf.function(lambda texts: aligning.align(texts).ids, input_signature=specs)
    aligned = [row for at in range(0, 10_000, 500) for row in align(texts[at:][:500]).to_list()]
    others, spans, symbols = [], [], 0
    rows = zip(
        texts, call_by_rows(ask, "explain_tokens", text=texts), expected, aligned, strict=True
    )
    for text, answer, ids, of_spans in rows:
        found = answer["ids"].tolist()
        row = [tokenizer.cls_id, *ids[: LONG - 2], tokenizer.sep_id]
        others += [text] * (found != row + [tokenizer.pad_id] * (len(found) - len(row)))
        spans += [text] * (ids != of_spans)
        symbols += len(special.intersection(of_spans)) + len(special.intersection(ids))
    print(
        f"\nids of {len(texts)} strings, {name}: {len(others)} differ from Python's, with offsets "
        f"{len(spans)}; {symbols} symbols out of text; {sum(map(len, expected))} pieces"
    )
    assert len(texts) == 10_000
    assert (others, spans, symbols) == ([], [], 0)


@pytest.mark.parametrize("source", SOURCES)
def test_ten_thousand_hostile_strings_raise_nothing(source, asked_of):
    asked, texts = asked_of(source), hostile_bytes(10_000)
    examples, start = hostile_examples(texts), time.monotonic()
    for name in asked.names:
        sent = examples if name in EXAMPLES else texts
        for at in range(0, 10_000, 250):
            found = asked.ask(name, **columns(asked, name, sent[at : at + 250]))
            for key, values in found.items():
                where = f"{name} {key} {at}"
                assert values.shape[0] == 250, where
                if values.dtype == object:
                    b"\n".join(values.ravel()).decode()
                else:
                    assert np.isfinite(values).all(), where
    seconds = time.monotonic() - start
    print(
        f"\n10,000 hostile strings, {source}: 0 exceptions of {len(asked.names)} signatures "
        f"({', '.join(asked.names)}), all numbers finite; {seconds:.0f} s"
    )


@pytest.mark.parametrize(
    "name, count, length",
    [
        ("texts", 1000, 128),
        ("pairs", 1000, 128),
        ("numbers", 1000, 128),
        ("numbers of pairs", 1000, 128),
        ("tags", 1000, 128),
        ("choice", 200, LONG),
        ("spans", 300, 384),
        ("spans or none", 300, 384),
        ("pre-trained", 1000, 128),
    ],
)
def test_real_texts_are_answered_as_in_python(name, count, length, request, data, tiny_corpus):
    which = "clean-up in the model" if data is None else "official"
    inputs = real_inputs(name, data, tiny_corpus, count)
    source = balanced(source_of(name, load_tokenizer(which, request), length), inputs)
    asked = Asked(source)
    texts = (text for one in inputs for text in ([one] if isinstance(one, str) else one.values()))
    longest = max(len(text.encode()) for text in texts if isinstance(text, str))
    assert len(inputs) == count and longest <= asked.max_bytes
    parity = check_parity(source, asked.ask, inputs)
    print(
        f"\nanswers to {parity.num_texts} real inputs, {name}: 0 differ from Python's, numbers by "
        f"{parity.largest_difference:.1e} at most; the longest text has {longest} bytes of "
        f"{asked.max_bytes} that are read"
    )
    assert parity.num_texts == count


@pytest.mark.parametrize("source", SOURCES)
def test_neighbours_do_not_change_an_answer(source, asked_of, tiny_corpus):
    asked, draw = asked_of(source), random.Random(4)
    texts = texts_of_any_length(tiny_corpus, 200, 10 * SMALL // 2)  # words of two pieces
    batches = [draw.choices(range(200), k=draw.randint(1, 32)) for _ in range(200)]
    differences, others = {}, []
    for name in asked.names:
        sent = texts
        if name in EXAMPLES:
            sent = [example_of(text=one, pair=one[::-1]) for one in texts]
        inputs = columns(asked, name, sent)
        inputs = {key: np.array(column, object) for key, column in inputs.items()}
        alone = [
            asked.ask(name, **{key: column[row : row + 1] for key, column in inputs.items()})
            for row in range(200)
        ]
        difference = 0.0
        for rows in batches:
            found = asked.ask(name, **{key: column[rows] for key, column in inputs.items()})
            for place, row in enumerate(rows):
                one = {key: values[place : place + 1] for key, values in found.items()}
                try:
                    found_here = largest_difference(one, alone[row], f"{name}, text {row}:")
                except AssertionError as error:
                    others.append(str(error).splitlines()[0])
                else:
                    difference = max(difference, found_here)
        differences[name] = difference
    print(
        f"\n200 batches of {sum(map(len, batches))} rows, {source}: {len(others)} have other "
        "labels, pieces or places than alone, numbers differ by "
        + ", ".join(f"{key} {one:.1e}" for key, one in differences.items())
    )
    assert others == [] and max(differences.values()) <= TOLERANCE


def uncounted(answer):
    """Returns an answer without the counts of what was dropped."""
    return {name: value for name, value in answer.items() if not name.startswith("dropped_")}


@pytest.mark.parametrize("source", SOURCES)
def test_a_text_is_cut_before_the_character_that_does_not_fit(source, asked_of, tiny_tokenizer):
    asked, count, largest = asked_of(source), 0, 0.0
    letters = [one.encode() for one in "ké東\U0001f600"]
    for letter, over in ((one, over) for one in letters for over in range(len(one) + 1)):
        # White space is no piece, so that what is cut off would be in the row.
        text = b"The [MASK] ferry".ljust(asked.max_bytes - len(letter) + over) + letter
        text += b" left [MASK]"
        cut = text[: asked.max_bytes].decode(errors="ignore").encode()
        assert tiny_tokenizer.encode(cut.decode()) != tiny_tokenizer.encode(text.decode())
        for name, place in itertools.product(asked.names, range(1 if source == "choice" else 3)):
            if (inputs := with_long(asked, source, name, text, place)) is None:
                continue
            found = uncounted(asked.ask(name, **inputs))
            meant = uncounted(asked.ask(name, **with_long(asked, source, name, cut, place)))
            where = f"{name} {letter} {over}"
            largest, count = max(largest, largest_difference(found, meant, where)), count + 1
            if name == "explain_tokens" and source in ("pre-trained", "texts", "numbers"):
                ids = tiny_tokenizer.encode(cut.decode())
                assert found["ids"][0, 1 : len(ids) + 2].tolist() == [*ids, tiny_tokenizer.sep_id]
    print(
        f"\n{count} texts cut around {asked.max_bytes} bytes, {source}: all answers as to what is "
        f"left, numbers differ by {largest:.1e}"
    )
    assert count >= 14 * len(asked.names) and largest <= TOLERANCE


@pytest.mark.parametrize("source", SOURCES)
def test_five_megabytes_take_no_more_than_twice_as_long(source, tiny_tokenizer):
    asked, told = Asked(source_of(source, tiny_tokenizer, 128)), {}
    sizes = asked.max_bytes, 5_000_000  # 4096 except for tags, which read 16 times as many
    text = b"The ferry _ left [MASK] the harbour, and nobody wondered why. "
    text *= sizes[1] // len(text) + 1
    for name, place in itertools.product(asked.names, range(3)):
        requests = {}
        for size in sizes:
            if inputs := with_long(asked, source, name, text[:size], place):
                requests[size] = {key: tf.constant(one) for key, one in inputs.items()}
        if not requests:
            continue
        seconds = {size: [] for size in requests}
        for _ in range(22):
            for size, inputs in requests.items():
                start = time.perf_counter()
                asked.call(name, inputs)
                seconds[size].append(time.perf_counter() - start)
        small, large = (np.median(times[2:]) * 1000 for times in seconds.values())
        told[f"{name} {place + 1}"] = large / small
        print(
            f"\n{source}, {name}, text {place + 1}: 5 MB {large:.1f} ms, "
            f"{sizes[0]} bytes {small:.1f} ms, "
            f"{large / small:.1f} times as long",
            end="",
        )
    print()
    assert {key: ratio for key, ratio in told.items() if ratio > 2} == {}
