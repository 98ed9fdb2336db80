"""Labels of any kind, and records of other versions, do not break a model card."""

import copy
import json
import logging

import pytest
from markdown_it import MarkdownIt

from albert_keras.serving.export.model_card import model_card
from tests.albert_keras.serving.card_records import FINETUNED, PRETRAINED, publish


@pytest.fixture
def out(tmp_path):
    return tmp_path / "books"


def rendered(card):
    return MarkdownIt("commonmark").enable("table").render(card.split("---\n", 2)[2])


@pytest.mark.parametrize(
    "label",
    [
        "a|b",
        "<script>alert(1)</script>",
        "*bold* _it_ `code` ~~gone~~ &amp; # $x$ @all \\| !",
    ],
)
def test_labels_read_as_they_are(out, label):
    # Where labels may stand: in a paragraph and in cells of tables.
    task = FINETUNED["task"] | {"labels": [label, "positive"], "name": label}
    record = FINETUNED | {"task": task, "scores": {label: 0.5}, "precision": label}
    page = rendered(model_card(publish(out, 1, record)))
    text = label.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    assert f"<p>Labels: {text}, positive.</p>" in page
    assert f"<td>{text}</td>" in page
    assert f"<td>{' '.join(text.replace('_', ' ').split())} 0.5</td>" in page
    assert "<script" not in page and '<a href="http' not in page
    assert page.count("<h2>") == rendered(model_card(out)).count("<h2>")


def paths_of(value, path=()):
    """Yields the path of each value inside a record."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*path, key)
            yield from paths_of(inner, (*path, key))


def changed(record, path, value=None):
    """Returns a copy without the value at a path, or with another one."""
    record = inner = copy.deepcopy(record)
    for key in path[:-1]:
        inner = inner[key]
    if value is None:
        del inner[path[-1]]
    else:
        inner[path[-1]] = value
    return record


@pytest.mark.parametrize("record", [PRETRAINED, FINETUNED], ids=["pretrained", "finetuned"])
def test_what_is_not_known_is_left_out(out, record):
    publish(out, 1, record)
    for path in paths_of(record):
        for value in (None, "x", [[None], {"a": 1}]):
            text = json.dumps(changed(record, path, value))
            (out / "1" / "export.json").write_text(text)
            card = model_card(out)
            assert "\n## Versions" in card and "None " not in card, path


def test_versions_of_which_nothing_is_known_have_a_card(out, caplog):
    publish(out, 1, "{}")
    publish(out, 2, '{"step": 12')
    (out / "1" / "export.json").unlink()
    with caplog.at_level(logging.WARNING):
        card = model_card(out)
    assert "2/export.json` is damaged" in caplog.text
    assert "# books" in card and "/metadata" in card and "## Scores" not in card
    assert "| 1 |  |  | 44 bytes |  |  |" in card
