"""Values are shown in Markdown as they are, on one line."""

import pytest

from albert_keras.serving.export.model_card import (
    as_list,
    as_number,
    as_tensor_spec,
    as_text,
)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, ""),
        (12000, "12,000"),
        (0.912843, "0.9128"),
        (123456.7, "123,457"),
    ],
)
def test_numbers_are_rounded_and_counts_are_not(value, shown):
    assert as_number(value) == shown


def test_text_is_escaped_and_cut():
    assert as_text("a|b\n*c* <d> & www.e") == r"a&#124;b \*c\* &lt;d&gt; &amp; www\.e"
    assert as_text("x" * 65) == "x" * 63 + "…"
    assert as_text("\u202ex") == "\N{REPLACEMENT CHARACTER}x"


def test_names_are_listed_up_to_forty_and_then_counted():
    assert as_list(["yes", 7, "", "no"]) == "yes, (empty), no"
    assert as_list(["a"] * 1077) == ", ".join(["a"] * 40) + " and 1,037 more"


@pytest.mark.parametrize(
    ("spec", "shown"),
    [
        (["string", [None]], "string [B]"),
        (["float32", [None, None, 128]], "float32 [B, …, 128]"),
        (["int32", []], "int32 []"),
        (None, ""),
    ],
)
def test_a_tensor_has_its_type_and_its_shape(spec, shown):
    assert as_tensor_spec(spec) == shown
