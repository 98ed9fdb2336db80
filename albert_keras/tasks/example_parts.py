"""What an example of any task consists of: its texts, its labels, and what it says of its input."""

from albert_keras.tasks.examples import (
    ChoiceExample,
    QuestionExample,
    TaggedExample,
    normalised,
)


def parts_of(example) -> dict[str, tuple[str, ...]]:
    """Returns the texts of an example by what they are."""
    if isinstance(example, QuestionExample):
        answers = tuple(answer.text for answer in example.answers)
        return {"question": (example.question,), "passage": (example.context,), "answer": answers}
    if isinstance(example, ChoiceExample):
        texts = {"question": (example.question,), "passage": (example.context,)}
        return texts | {"option": example.options}
    if isinstance(example, TaggedExample):
        return {"sentence": (" ".join(example.words),)}
    return {"text": (example.first,)} | ({"pair": (example.second,)} if example.second else {})


def inputs_of(example) -> list[str]:
    """Returns the texts that a model reads, each as `normalised` returns it."""
    parts = parts_of(example)
    parts.pop("answer", None)
    return [normalised(text) for texts in parts.values() for text in texts]


def labels_of(example) -> tuple[str, ...]:
    """Returns the names that are counted as labels of an example."""
    if isinstance(example, QuestionExample):
        return ("answerable",) if example.answers else ("unanswerable",)
    if isinstance(example, TaggedExample):
        return example.tags
    if isinstance(example, ChoiceExample):
        return (chr(ord("A") + example.label),)
    labels = example.label if isinstance(example.label, tuple) else (example.label,)
    return tuple(label for label in labels if isinstance(label, str))


def truth_of(example) -> str:
    """Returns what an example says about its input, as a text."""
    if isinstance(example, QuestionExample):
        return labels_of(example)[0]  # annotators often choose different spans
    if isinstance(example, TaggedExample):
        return " ".join(example.tags)
    if isinstance(example, ChoiceExample):
        return example.options[example.label]
    label = example.label
    return ", ".join(map(str, label)) if isinstance(label, tuple) else f"{label}"
