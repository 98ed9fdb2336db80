"""What a newcomer asks is answered by one of the first three sections that a search finds."""

import math
import re

import pytest

from tests.documentation.code_blocks import PAGES

#: A word of a title counts as much as so many in the text.
_TITLE = 10
#: Question -> the page whose section answers it.
QUESTIONS = {
    "my model lost to the bag of words": "answers.md faq.md",
    "how many examples do I need": "faq.md",
    "new labels next week": "faq.md",
    "texts of 3,000 words": "faq.md",
    "duplicates among my own rows": "faq.md",
    "how many rows per second": "faq.md",
    "how much memory": "faq.md serving.md",
    "use it in a FastAPI service": "serving.md",
    "answer from several threads": "serving.md",
    "a threshold for the cost of errors": "faq.md",
    "my own language": "own-language.md",
}


def sections():
    """Yields the name of a page, and the words of the title and of the text, for each section."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
        for title, rest in re.findall(r"^#+ (.*)\n((?:(?!#+ ).*\n?)*)", text, re.M):
            yield page, words_of(title), words_of(rest)


def words_of(text):
    return {word.removesuffix("s") for word in re.findall(r"\w[\w,]*\w|\w", text.lower())}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_question_is_answered_by_one_of_the_first_three_hits(question):
    found = list(sections())
    scores = []
    for page, title, text in found:
        score = 0.0
        for word in words_of(question):
            share = sum(word in one or word in other for _, one, other in found) / len(found)
            score -= math.log(max(share, 1 / len(found))) * (
                _TITLE * (word in title) or word in text
            )
        scores.append((score, page.name))
    hits = {name for _, name in sorted(scores, reverse=True)[:3]}
    assert hits & set(QUESTIONS[question].split()), hits
