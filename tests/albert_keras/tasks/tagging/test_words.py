"""Plain text is split by a rule that has a name."""

import pytest

from albert_keras.tasks.kinds import build_task
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
WORDS |= dict.fromkeys(("elisions", "contractions"), WORDS["punctuation"])


@pytest.mark.parametrize(
    "rule, text, words",
    [
        (
            "elisions",
            "L'ami d’Anne n'est qu'à 'Aix', dit-on.",
            "L'|ami|d’|Anne|n'|est|qu'|à|'|Aix|'|,|dit-on|.",
        ),
        (
            "elisions",
            "Aujourd'hui, dell'arte; (l'eau-de-vie)",
            "Aujourd'hui|,|dell'|arte|;|(|l'|eau-de-vie|)",
        ),
        ("contractions", "Don't say: WON’T 'it's'", "Do|n't|say|:|WO|N’T|'|it|'s|'"),
        ("contractions", "I'll go, they've no dogs' food", "I|'ll|go|,|they|'ve|no|dogs|'|food"),
        ("punctuation", "Don't say l'ami", "Don't|say|l'ami"),
    ],
)
def test_elisions_and_contractions_are_apart(rule, text, words):
    assert split_words(text, rule) == words.split("|")


@pytest.mark.parametrize("rule", WORDS)
def test_text_is_split_by_its_rule_and_lists_are_not(rule, tiny_tokenizer):
    task = build_task(TAGGING.replace(word_split=rule))
    typed = task.typed_examples([{"text": MIXED_TEXT}, {"words": ["Anna,", "王明"]}])
    columns = task.columns_of_strings(typed)
    words, _ = task.build_preprocessor(tiny_tokenizer).words(columns)
    split, given = ([word.decode() for word in row] for row in words.to_list())
    assert split == split_words(MIXED_TEXT, rule) == WORDS[rule] and given == ["Anna,", "王明"]
    assert split_words("\x1fAnna, 王明", rule) == ["Anna,", "王明"]


def test_punctuation_is_apart_unless_a_rule_is_given_and_other_tasks_have_none():
    assert build_task(TAGGING).preprocessor_settings == {"word_split": "punctuation"}
    other = TaskConfig(name="classification", text="a")
    with pytest.raises(InputError, match="`word_split` characters requires a task of tagging"):
        build_task(other.replace(word_split="characters"))
