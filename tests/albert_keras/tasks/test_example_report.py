"""The report on examples counts labels, lengths and repetitions of every kind."""

from albert_keras.tasks.example_report import report_examples
from albert_keras.tasks.examples import Answer, QuestionExample, TaggedExample, TextExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.task_config import TaskConfig

TEXT = "The old ferry left the harbour"


def text_task(name="classification", **settings):
    return build_task(TaskConfig(name=name, text="text", label="label", **settings))


def rows(*pairs):
    return [TextExample(str(n), text, None, label) for n, (text, label) in enumerate(pairs)]


def finding_of(report, name):
    (finding,) = (one for one in report.findings if one.name == name)
    return finding


def test_classes_are_counted():
    examples = rows(*[(f"{TEXT} {n}", "ham" if n % 3 else "spam") for n in range(30)])
    task = text_task(labels=("spam", "ham", "odd"))
    splits = {"train": examples, "dev": examples[:1]}
    reports = report_examples(task, splits)
    finding = finding_of(reports["train"], "labels")
    assert finding.text == "ham 20 (66.7 %), spam 10 (33.3 %), odd 0 (0.0 %)"
    assert finding.is_good is None and not reports["train"].warnings
    assert finding_of(reports["dev"], "in training").is_good is False


def test_repeated_texts_and_their_different_labels_are_shown():
    examples = rows(
        ("A  film", "0"),
        ("a \N{LATIN SMALL LIGATURE FI}lm", "1"),
        ("A film\n", "1"),
        ("b", "0"),
        ("b", "0"),
    )
    report = report_examples(text_task(labels=("0", "1")), {"train": examples})["train"]
    assert finding_of(report, "repeated").text.startswith("60.0 % of the examples (3)")
    assert finding_of(report, "contradictory").details == ("`1` (2), `0` (1): A film",)


def test_all_labels_are_shown_with_their_counts_whatever_they_are_called():
    examples = rows(*[(f"{TEXT} {n}", f"LOC[{n % 38}]" if n % 3 else "-1") for n in range(900)])
    names = tuple(sorted({one.label for one in examples}))
    report = report_examples(text_task(labels=names), {"train": examples})["train"]
    text = finding_of(report, "labels").text
    assert text.startswith("-1 300 (33.3 %), ") and text.count("LOC[") == 38
    assert not report.warnings


def test_examples_that_are_truncated_are_counted(tiny_tokenizer):
    count = len(tiny_tokenizer.encode(TEXT))
    for length, is_good in ((count + 2, True), (count + 1, False)):
        task = text_task(labels=("x", "y"), max_seq_length=length)
        examples = rows((TEXT, "x"), ("a", "y"))
        report = report_examples(task, {"train": examples}, tiny_tokenizer)["train"]
        assert f"all at most {count}" in finding_of(report, "tokens").text
        assert finding_of(report, "truncated").is_good == is_good
    assert "50.0 % of the examples are truncated" in finding_of(report, "truncated").text


def test_tags_are_counted_and_no_sentence_is_truncated(tiny_tokenizer):
    task = build_task(TaskConfig(name="tagging", labels=("O", "B-X"), max_seq_length=8))
    examples = [
        TaggedExample("0", tuple(TEXT.split()), ("O",) * 5 + ("B-X",)),
        TaggedExample("1", ("a",), ("O",)),
    ]
    report = report_examples(task, {"train": examples}, tiny_tokenizer)["train"]
    assert "truncated" not in [finding.name for finding in report.findings]
    assert finding_of(report, "labels").text.startswith("O 6 (85.7 %), B-X 1 (14.3 %)")


def test_questions_say_how_many_have_no_answer(tiny_tokenizer):
    task = build_task(TaskConfig(name="squad2", max_seq_length=384))
    answered = QuestionExample("0", "What left?", TEXT, (Answer("The old ferry", 0),), False)
    open_one = QuestionExample("1", "Who slept?", TEXT, (), True)
    same = answered._replace(id="2", answers=(), is_impossible=True)
    report = report_examples(task, {"train": [answered, open_one, same]}, tiny_tokenizer)["train"]
    assert finding_of(report, "labels").text.startswith("unanswerable 2")
    (conflict,) = finding_of(report, "contradictory").details
    assert conflict.startswith("`answerable` (1), `unanswerable` (1): What left?")
    other = answered._replace(id="3", answers=(Answer("ferry", 8),))
    report = report_examples(task, {"train": [answered, other]})["train"]
    assert not finding_of(report, "contradictory").details  # annotators choose different spans


def test_questions_that_are_cut_are_counted(tiny_tokenizer):
    """A tokenizer cuts a question to the first tokens, as the reference does."""
    task = build_task(TaskConfig(name="squad2", max_query_length=12))
    long = " ".join(["What left the old harbour?"] * 4)
    examples = [
        QuestionExample(str(n), one, TEXT, (Answer("ferry", 8),))
        for n, one in enumerate(["What left?", "Who?", long])
    ]
    cut = finding_of(
        report_examples(task, {"train": examples}, tiny_tokenizer)["train"], "truncated"
    )
    assert cut.is_good is False
    assert cut.text == "33.3 % of the examples have a question that is truncated"
    report = report_examples(task, {"train": examples[:2]}, tiny_tokenizer)["train"]
    assert finding_of(report, "truncated").is_good
