"""Plain text is split as the training files of a tagger were."""

import pytest

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.predict import predict_task
from albert_keras.tasks.tagging.words import with_word_split
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.words import split_words
from tests.albert_keras.tasks.small_tasks import MIXED_TEXT

TAGGING = TaskConfig(name="tagging", labels=("O", "B-X"))
WORDS = {
    "characters": list("Anna,aged3.5(well-known)…王明住在北京。")
    + ["हि", "न्", "दी", "،", "عَ", "رَ", "بِ", "يّ", "؟", "👩‍", "🔬", "❤️", *"$5xy"],
    "punctuation": ["Anna", ",", "aged", "3.5", "(", "well-known", ")", "…", *"王明住在北京。"]
    + ["हिन्दी", "،", "عَرَبِيّ", "؟", "👩‍", "🔬", "❤️", "$", "5", "x", "y"],
    "white_space": MIXED_TEXT.split(),
}


@pytest.mark.parametrize("rule", WORDS)
def test_text_is_split_by_its_rule_and_lists_are_not(rule):
    task = build_task(TAGGING.replace(word_split=rule))
    assert list(task.example(0, {"text": MIXED_TEXT}).words) == WORDS[rule]
    assert task.example(0, {"text": ["Anna,", "王明"]}).words == ("Anna,", "王明")
    assert split_words("\x1fAnna, 王明", rule) == ["Anna,", "王明"]


@pytest.mark.parametrize(
    "sentences, rule",
    [
        (["王 明 住 在 北 京 。", "A B 公 司 3 月"], "characters"),
        (["한 국 은 크 다"], "characters"),
        (["Anna , 3.5 years old , slept .", "U.S. President", "So did he !"], "punctuation"),
        (['" Well-known , " said O\'Neill ( 41 ) .', "no end"], "punctuation"),
        (["Anna, aged 3, slept.", "(So did Bert)"], "white_space"),
        (["show me flights from Boston", "now"], "white_space"),
        (["王明 住 在 北京 。", "上海 很 大 。"], "white_space"),
        ([], "white_space"),
    ],
)
def test_the_rule_is_that_of_most_training_sentences(sentences, rule, caplog):
    examples = [TaggedExample("0", tuple(text.split())) for text in sentences]
    caplog.set_level("INFO")
    assert with_word_split(TAGGING, examples).word_split == rule
    assert "Plain text is split" in caplog.text
    assert with_word_split(TAGGING.replace(word_split="characters"), examples).word_split == (
        "characters"
    )


def test_words_that_no_rule_finds_again_are_a_warning(caplog):
    examples = [TaggedExample("0", tuple(text.split())) for text in ("王明 住在 北京 。", "很 大")]
    with_word_split(TAGGING, examples)
    assert "finds the words of 50 % of them" not in caplog.text
    with_word_split(TAGGING, examples[:1])
    assert "finds the words of 0 % of them. Give sentences as lists of words" in caplog.text


def test_other_tasks_and_earlier_versions_have_no_rule():
    assert build_task(TAGGING).example(0, {"text": "Anna, 王明"}).words == ("Anna,", "王明")
    other = TaskConfig(name="classification", text="a")
    assert with_word_split(other, []) == other
    with pytest.raises(InputError, match="`word_split` characters requires a task of tagging"):
        build_task(other.replace(word_split="characters"))


def test_a_fine_tuned_tagger_keeps_the_rule_of_its_file(tune, toy_config, end_at_once, tmp_path):
    lines = [f"{letter} O" for letter in "王明住在北京。"]
    for name in ("train", "dev"):
        sentence = [f"{'上' if name == 'dev' else '大'} B-X", *lines, ""]
        (tmp_path / name).write_text("\n".join(sentence * 2), encoding="utf-8")
    files = {name: str(tmp_path / name) for name in ("train", "dev")}
    config = toy_config.replace(task=TaskConfig(name="tagging", max_seq_length=16, **files))
    with end_at_once():
        tune(tmp_path / "run", config, random_baseline=False)
    assert predict_task(tmp_path / "run", ["王明。"]).examples[0].words == ("王", "明", "。")
