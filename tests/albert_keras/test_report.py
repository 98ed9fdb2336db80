"""How results are shown."""

import pytest

from albert_keras.report import (
    bytes_text,
    count_of,
    markdown_table,
    new_figure,
    number_text,
    percent,
    save_figure,
    shortened,
    shortened_value,
    table,
)


def test_names_are_aligned_to_the_left_and_numbers_to_the_right():
    rows = [("ours", "3.54", "a"), ("theirs", "14.221", "bcd")]
    assert table(("", "loss", "note"), rows, left=(0, -1), indent=1) == [
        "           loss  note",
        " ours      3.54  a",
        " theirs  14.221  bcd",
    ]
    assert table((), rows[:1]) == ["  ours  3.54  a"]
    assert markdown_table(("", "x"), [("row", "1")]) == [
        "|     | x |",
        "| --- | - |",
        "| row | 1 |",
    ]


@pytest.mark.parametrize(
    "shown, text",
    [
        (number_text(0.02844), "0.0284"),
        (number_text(1206.4), "1,206"),
        (number_text(12.5, digits=6), "12.5"),
        (bytes_text(999), "999 bytes"),
        (bytes_text(1.5e9), "1.5 GB"),
        (percent(0.6151), "61.5 %"),
        (count_of(1, "batch"), "1 batch"),
        (count_of(2000, "batch"), "2,000 batches"),
        (count_of(2, "entry"), "2 entries"),
        (count_of(2, "key"), "2 keys"),
        (shortened("abcdefgh", 5), "abcd…"),
        (shortened("abcdefgh", 5, middle=True), "ab…gh"),
        (shortened_value({"é": [1, None]}), '{"é": [1, null]}'),
        (shortened_value(b"x"), "b'x'"),
    ],
)
def test_numbers_and_texts(shown, text):
    assert shown == text


def test_a_figure_appears_with_any_title(tmp_path):
    figure, axes = new_figure(4, 3, "$ costs of _a_ run", columns=2)
    assert axes.shape == (1, 2)
    axes[0, 0].plot([1, 2])
    assert save_figure(figure, tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
