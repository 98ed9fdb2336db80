"""The report on examples counts labels, lengths, repetitions and unknown tokens of every kind."""

import pytest

from albert_keras.tasks.example_findings import (
    findings,
    short_findings,
    warning_texts,
)
from albert_keras.tasks.example_report import near_equal, report_examples
from albert_keras.tasks.examples import (
    Answer,
    QuestionExample,
    TaggedExample,
    TextExample,
)
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig

TEXT = "The old ferry left the harbour"


def text_task(name="classification", **settings):
    return build_task(TaskConfig(name=name, text="text", label="label", **settings))


def rows(*pairs):
    """Returns a TextExample for each text and label."""
    return [TextExample(str(n), text, None, label) for n, (text, label) in enumerate(pairs)]


def finding_of(report, name, split="train"):
    (finding,) = (one for one in findings(report, split) if one.name == name)
    return finding


def test_classes_are_counted_the_most_frequent_first():
    examples = rows(*[(f"{TEXT} {n}", "ham" if n % 3 else "spam") for n in range(30)])
    report = report_examples(text_task(labels=("spam", "ham")), {"train": examples})
    assert report.splits["train"].labels == {"ham": 20, "spam": 10}
    finding = finding_of(report, "classes")
    assert finding[:3] == (True, "classes", "ham 20 (66.7 %), spam 10 (33.3 %)")
    assert report.near_equal_labels == [] and warning_texts(report) == []


def test_a_class_with_few_training_examples_is_a_warning():
    examples = rows(*[(f"{TEXT} {n}", "odd" if n == 0 else "ham") for n in range(9)])
    splits = {"train": examples, "dev": examples[:1]}
    report = report_examples(text_task(labels=("odd", "ham")), splits)
    finding = finding_of(report, "classes")
    assert finding.is_good is False
    assert finding.text.endswith("There are fewer than 5 examples of `odd`")
    assert finding_of(report, "classes", "dev").is_good is None
    assert finding_of(report, "number", "dev").text.startswith(
        "the development set has only 1 example: a score on it is all or nothing"
    )


def test_repeated_texts_and_their_different_labels_are_shown():
    examples = rows(
        ("A  film", "0"),
        ("a \N{LATIN SMALL LIGATURE FI}lm", "1"),
        ("A film\n", "1"),
        ("b", "0"),
        ("b", "0"),
    )
    report = report_examples(
        text_task(labels=("0", "1")), {"train": examples, "dev": rows(("B", "1"))}
    )
    train, dev = report.splits["train"], report.splits["dev"]
    assert (train.repeated, train.conflicts, train.in_training) == (3, 1, None)
    ((text, labels),) = train.conflicting
    assert (text, labels) == ("A film", {"1": 2, "0": 1})
    assert finding_of(report, "contradictory").details == ("`1` (2), `0` (1): A film",)
    assert dev.in_training == 1
    assert finding_of(report, "in training", "dev").is_good is False
    # `finetune` reports separately on training examples in the development set.
    assert "in training" not in [one.name for one in short_findings(report, "dev")]
    assert "contradictory" in [one.name for one in short_findings(report, "train")]


@pytest.mark.parametrize(
    "names, groups",
    [
        (["pos", "POS", " pos", "neg"], [[" pos", "POS", "pos"]]),
        (["not spam", "not_spam", "spam", "Not-Spam"], [["Not-Spam", "not spam", "not_spam"]]),
        (["1", "1.0", "01", "2"], [["01", "1", "1.0"]]),
        (["ｐｏｓ", "pos"], [["pos", "ｐｏｓ"]]),
        (["B-PER", "I-PER", "O", "0", "1", "-1", "+", "-"], []),
    ],
)
def test_labels_that_are_probably_the_same_are_grouped(names, groups):
    assert near_equal(names) == groups


def test_lengths_are_quantiles_of_each_part(tiny_tokenizer):
    task = text_task("pair", pair="b", labels=("x", "y"))
    examples = [TextExample("0", "a b c", "d", "x"), TextExample("1", "a", None, "y")]
    one = report_examples(task, {"train": examples}, tiny_tokenizer).splits["train"]
    assert one.lengths["text"]["words"] == {"5%": 1, "median": 1, "95%": 3, "max": 3}
    assert one.lengths["text"]["characters"]["max"] == 5
    assert one.lengths["pair"]["words"]["max"] == 1
    assert one.lengths["text"]["tokens"]["max"] == len(tiny_tokenizer.encode("a b c"))


def test_examples_that_are_truncated_are_counted(tiny_tokenizer):
    count = len(tiny_tokenizer.encode(TEXT))
    examples = rows((TEXT, "x"), ("a", "y"))
    for length, too_long in ((count + 2, 0), (count + 1, 1)):
        task = text_task(labels=("x", "y"), max_seq_length=length)
        report = report_examples(task, {"train": examples}, tiny_tokenizer)
        assert (report.splits["train"].too_long, report.splits["train"].encoded) == (too_long, 2)
        assert finding_of(report, "truncated").is_good == (not too_long)
    assert "50.0 % of the examples are longer" in finding_of(report, "truncated").text


def test_unknown_tokens_name_their_characters_and_words(tiny_tokenizer):
    examples = rows((f"{TEXT} Ж", "x"), ("日Ж ferry Ж", "y"))
    report = report_examples(text_task(labels=("x", "y")), {"train": examples}, tiny_tokenizer)
    unknown = report.splits["train"].unknown
    ids = [id for one in examples for id in tiny_tokenizer.encode(one.first)]
    assert (unknown.tokens, unknown.unknown) == (len(ids), ids.count(tiny_tokenizer.unk_id))
    assert unknown.characters == [("Ж", 3), ("日", 1)]
    assert unknown.words == [("Ж", 2), ("日Ж", 1)]
    finding = finding_of(report, "unknown tokens")
    assert finding.is_good is False and '"Ж" 3' in finding.text
    few = rows(*[(f"{TEXT} {TEXT}", "x")] * 30, ("Ж", "y"))
    few = [one._replace(first=f"{one.first} {'a' * n}") for n, one in enumerate(few)]
    report = report_examples(text_task(labels=("x", "y")), {"train": few}, tiny_tokenizer)
    assert finding_of(report, "unknown tokens").is_good


def test_tags_are_counted_and_long_sentences_take_several_rows(tiny_tokenizer):
    task = build_task(TaskConfig(name="tagging", labels=("O", "B-X"), max_seq_length=8))
    examples = [
        TaggedExample("0", tuple(TEXT.split()), ("O",) * 5 + ("B-X",)),
        TaggedExample("1", ("a",), ("O",)),
    ]
    report = report_examples(task, {"train": examples}, tiny_tokenizer)
    one = report.splits["train"]
    assert one.labels == {"O": 6, "B-X": 1} and one.too_long == 1
    assert one.lengths["sentence"]["words"]["max"] == 6
    assert finding_of(report, "windows").is_good is None
    assert finding_of(report, "tags").text.startswith("O 6 (85.7 %), B-X 1 (14.3 %)")


def test_questions_say_how_many_have_no_answer_and_how_long_the_answers_are(tiny_tokenizer):
    task = build_task(TaskConfig(name="squad2", max_seq_length=384))
    answered = QuestionExample("0", "What left?", TEXT, (Answer("The old ferry", 0),), False)
    open_one = QuestionExample("1", "Who slept?", TEXT, (), True)
    same = answered._replace(id="2", answers=(), is_impossible=True)
    report = report_examples(task, {"train": [answered, open_one, same]}, tiny_tokenizer)
    one = report.splits["train"]
    assert one.labels == {"unanswerable": 2, "answerable": 1}
    assert one.lengths["answer"]["words"]["max"] == 3
    assert (one.repeated, one.conflicts, one.too_long) == (1, 1, 0)
    assert one.conflicting[0].labels == {"answerable": 1, "unanswerable": 1}
    other = answered._replace(id="3", answers=(Answer("ferry", 8),))
    report = report_examples(task, {"train": [answered, other]})
    assert report.splits["train"].conflicts == 0  # annotators choose different spans
