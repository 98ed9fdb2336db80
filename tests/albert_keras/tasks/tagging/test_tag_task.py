"""Words are tagged: what is read, answered, scored and written."""

import json

import pytest

from albert_keras.models.answers import TagAnswer
from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.tagging.task import TagTask
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.errors import InputError

TAGS = ("B-LOC", "I-LOC", "O")
PLACES = [
    TaggedExample("1", ("Seven", "geese", "left", "New", "York"), ("O", "O", "O", *TAGS[:2])),
    TaggedExample("2", ("Lisbon", "slept"), ("B-LOC", "O")),
]


def task(**settings):
    return TagTask(TaskConfig(name="tagging", **settings))


def write(path, *sentences):
    """Writes sentences of words with tags after a slash in columns, tags first."""
    rows = ["\n".join("\t".join(word.split("/")[::-1]) for word in text) for text in sentences]
    path.write_text("\n\n".join(rows) + "\n")
    return str(path)


def answer(example, *tags, sure=0.5):
    """Returns an answer, `sure` of each tag."""
    return TagAnswer(example.id, example.words, tags, (sure,) * len(tags))


def test_tags_of_both_files_are_learnt(tmp_path):
    train = write(tmp_path / "train.txt", ["geese/O", "York/B-LOC"], ["slept/O"])
    dev = write(tmp_path / "dev.txt", ["Ada/B-PER"])
    for columns in ({"text": 1, "label": 0}, {"text": "1", "label": "0"}, {"text": "-1"}):
        it = task(train=train, dev=dev, **columns | {"label": columns.get("label", "-2")})
        assert it.labels == ("B-LOC", "B-PER", "O") and it.num_outputs == 3
        assert it.read("train")[0] == TaggedExample("1", ("geese", "York"), ("O", "B-LOC"))
        assert it.read("dev") == [TaggedExample("1", ("Ada",), ("B-PER",))]
    assert it.read_file(dev, labelled=False) == [TaggedExample("1", ("Ada",))]


def test_an_example_is_made_of_what_was_typed():
    it = task(labels=TAGS)
    typed = it.typed_example(4, {"text": " Ada\tslept\n"})
    assert typed == TaggedExample("4", (), text=" Ada\tslept\n")
    with pytest.raises(InputError, match="must not contain white space.* Received: 'New York'"):
        it.columns_of_strings([it.typed_example(0, {"words": ["New York", "left"]})])
    assert it.typed_example(0, {"words": ["New York", "left"]}).words == ("New York", "left")


@pytest.mark.parametrize(
    "fields, says",
    [
        ({}, "either `text` or `words`"),
        ({"word": "a"}, "either `text` or `words`. Received: word"),
        ({"words": ["a", ""]}, "`words` must be a list of words"),
    ],
)
def test_fields_that_cannot_be_used_are_refused(fields, says):
    with pytest.raises(InputError, match=says):
        task(labels=TAGS).typed_example(0, fields)


def test_scores_are_of_entities_or_of_words():
    answers = [answer(PLACES[0], "O", "O", "B-LOC", *TAGS[:2]), answer(PLACES[1], "O", "O")]
    found = task(labels=TAGS).scores(PLACES, answers)
    assert list(found.items()) == [
        ("entity_f1", 0.5),
        ("entity_precision", 0.5),
        ("entity_recall", 0.5),
        ("entity_macro_f1", 0.5),
        ("accuracy", 5 / 7),
    ]
    words = [TaggedExample("1", ("a", "b"), ("NN", "VB"))]
    it = task(labels=("NN", "VB"))
    assert it.scores(words, [answer(words[0], "NN", "NN")]) == {"accuracy": 0.5}


def test_errors_begin_with_the_most_confident_wrong_tag(tmp_path):
    it = task(labels=TAGS)
    answers = [
        TagAnswer("1", PLACES[0].words, ("O", "O", "O", "O", "O"), (0.99, 0.9, 0.9, 0.6, 0.5)),
        answer(PLACES[1], "O", "O", sure=0.7),
    ]
    first, second = it.errors(PLACES, answers)
    assert first == ("2", ("Lisbon slept",), "Lisbon/B-LOC", "Lisbon/O", 0.7)
    assert second[2:] == ("New/B-LOC York/I-LOC", "New/O York/O", 0.6)
    assert it.errors(PLACES, [answer(example, *example.tags) for example in PLACES]) == []
    matrix, names = it.confusion(PLACES, answers)
    assert matrix.tolist() == [[0, 0, 2], [0, 0, 1], [0, 0, 4]] and names == TAGS
    [path] = it.write(tmp_path, "dev", PLACES, answers)
    assert path.name == "predictions-dev.jsonl"
    second = json.loads(path.read_text().splitlines()[1])
    assert second["words"] == ["Lisbon", "slept"] and second["truth"] == ["B-LOC", "O"]
