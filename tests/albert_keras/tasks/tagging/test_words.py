"""Plain text is split as the training files of a tagger were."""

import json

import pytest

from albert_keras.cli import main
from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.kinds import build_task
from albert_keras.tasks.predict import predict_task
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.words import find_rule, split_words
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
        (["L' ami d' Anne vit à Oslo .", "C' est l' été , dit-elle ."], "elisions"),
        (["Anna 's dogs do n't bark .", "We 'll see , wo n't we ?"], "contractions"),
        ([], "white_space"),
    ],
)
def test_the_rule_is_that_of_most_training_sentences(sentences, rule, caplog):
    examples = [TaggedExample("0", tuple(text.split())) for text in sentences]
    caplog.set_level("INFO")
    assert build_task(TAGGING).completed(examples).word_split == rule
    assert "Plain text is split" in caplog.text
    chosen = build_task(TAGGING.replace(word_split="characters"))
    assert chosen.completed(examples).word_split == "characters"


def test_the_share_of_the_words_that_a_rule_finds_is_told(tmp_path, caplog, capsys):
    """Of the words of a Chinese text it finds single characters; of the other text 7 of 8."""
    rows = [f"{word} {'B-X' if word == '王明' else 'O'}" for word in "王明 住在 北京 。".split()]
    path = tmp_path / "a.conll"
    path.write_text("\n\n".join("\n".join([*rows, f"{n} O"]) for n in "王明住在北京。上海很大"))
    task = build_task(TaskConfig(name="tagging", train=str(path)))
    says = (
        "no rule splits plain text as the training sentences were split: the best one finds 40% of"
    )
    assert find_rule([example.words for example in task.read("train")])[:1] == ("characters",)
    task.completed(task.read("train"))
    assert says in caplog.text
    assert main(["data", "check", "--task", "tagging", "--train", str(path)]) == 0
    assert f"⚠ word split         {says}" in capsys.readouterr().out
    sentence = TaggedExample("0", tuple("Anna slept , and Bert went-off - quietly".split()))
    assert find_rule([sentence.words])[:2] == ("punctuation", 1.0)
    sentence = TaggedExample("0", tuple("Anna slept , and Bert went - off".split()))
    assert find_rule([sentence.words])[:2] == ("punctuation", 1.0)
    sentence = TaggedExample("0", tuple("Anna 12 . 5 slept , and Bert".split()))
    assert find_rule([sentence.words]).share == 1.0


FRENCH = """# sent_id = 1
# text = Vas-y du pas, Zoé.
1	Vas	_	VERB
2	-y	_	PRON
3-4	du	_	_
3	de	_	ADP
4	le	_	DET
5	pas	_	NOUN
5.1	dit	_	VERB
6	,	_	PUNCT
7	Zoé	_	PROPN
8	.	_	PUNCT

"""
VIETNAMESE = "Chị\tO\nLan\tB-PER\nsống\tO\nĐà_Nẵng\tB-LOC\n\nsnake_case\tO\nx\tO\n\n"
JOINED = {"words": ["can", "not", "go", "."], "tags": ["X", "Y", "X", "Y"]}


@pytest.mark.parametrize(
    "name, content, columns, share, missing",
    [
        ("a.conllu", FRENCH, {"text": 1, "label": 3}, 4 / 8, "Vas"),
        ("a.conllu", FRENCH.replace("# text", "# texte"), {"text": 1, "label": 3}, 5 / 8, "-y"),
        ("a.conllu", FRENCH.replace("3-4\tdu", "3-4"), {"text": 1, "label": 3}, 4 / 8, "Vas"),
        ("a.conll", VIETNAMESE, {}, 4 / 6, "Đà_Nẵng"),
        ("a.jsonl", json.dumps(JOINED | {"text": "cannot go."}), {}, 2 / 4, "can"),
        ("a.jsonl", json.dumps(JOINED | {"text": "can not go."}), {}, 1.0, ""),
        ("a.jsonl", json.dumps(JOINED | {"text": 7}), {}, 1.0, ""),
    ],
)
def test_what_a_file_says_about_plain_text_is_compared(
    name, content, columns, share, missing, tmp_path, capsys
):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8")
    options = [f"--set=task.{key}={value}" for key, value in columns.items()] + [f"--dev={path}"]
    assert main(["data", "check", "--task", "tagging", "--train", str(path), *options]) == 0
    told = f"the best one finds {share:.0%} of their words, not `{missing}`"
    assert (told in capsys.readouterr().out) == (share < 1)


def test_other_tasks_and_earlier_versions_have_no_rule():
    assert build_task(TAGGING).example(0, {"text": "Anna, 王明"}).words == ("Anna,", "王明")
    other = TaskConfig(name="classification", text="a")
    assert build_task(other).completed([]) == other
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
