"""The tokens of examples: how long their rows are, and what the vocabulary lacks."""

import collections
from collections import Counter
from typing import NamedTuple

import numpy as np

from albert_keras.tasks.choice.task import choice_text
from albert_keras.tasks.example_parts import parts_of
from albert_keras.tasks.examples import ChoiceExample, QuestionExample, TaggedExample
from albert_keras.tasks.task import Task
from data_pipeline.tokenizers.tokenization import Tokenizer

_SHOWN, _SHOWN_WORD = 10, 40


class Unknown(NamedTuple):
    """Tokens that the vocabulary does not contain."""

    tokens: int  # all tokens of the different texts that were encoded
    unknown: int  # the unknown ones of them
    characters: list[tuple[str, int]]  # the most frequent characters without a token of their own
    words: list[tuple[str, int]]  # the most frequent words that contain an unknown token


class ExampleTokens:
    """The tokens of examples: lengths by part, rows that are too long, and unknown tokens.

    Each different text is encoded once. The words of tagging are encoded one by one.

    Attributes:
        examples: list. As given.
        lengths: dict. The name of a part, see `parts_of` -> Counter of its lengths in tokens.
        too_long: int. Examples that are truncated to `max_seq_length`, or take several rows.
    """

    def __init__(self, task: Task, examples: list, tokenizer: Tokenizer):
        self.examples, self._tokenizer, self._task = examples, tokenizer, task
        texts = {}
        for example in examples:
            for text in self._encoded_texts(example):
                texts.setdefault(text, len(texts))
        ids, counts = tokenizer.encode_sentences(list(texts))
        is_unknown = ids == tokenizer.unk_id
        self._total, self._unknown = len(ids), int(is_unknown.sum())
        ends = counts.cumsum()
        sums = np.append(0, is_unknown.cumsum())
        with_unknown = sums[ends] > sums[ends - counts]
        self._with_unknown = [text for text, number in texts.items() if with_unknown[number]]
        self._counts = {text: int(counts[number]) for text, number in texts.items()}
        self.lengths = collections.defaultdict(Counter)
        for example in examples:
            for name, part in parts_of(example).items():
                for text in part:
                    self.lengths[name][self._length(example, text)] += 1
        self.too_long = sum(map(self._is_too_long, examples))

    def _encoded_texts(self, example):
        if isinstance(example, TaggedExample):
            return example.words
        texts = [text for part in parts_of(example).values() for text in part]
        if isinstance(example, ChoiceExample):
            texts += [choice_text(example.question, option) for option in example.options]
        return texts

    def _length(self, example, text):
        if isinstance(example, TaggedExample):  # a word without tokens is an unknown token
            return sum(max(1, self._counts[word]) for word in example.words)
        return self._counts[text]

    def _is_too_long(self, example):
        """Returns whether an example is truncated, or takes more than one row."""
        length, config = self._task.max_seq_length, self._task.config
        pair_length = length - self._tokenizer.num_special
        if isinstance(example, TaggedExample):
            return self._length(example, "") > length - 2
        if isinstance(example, QuestionExample):
            question = min(self._counts[example.question], config.max_query_length)
            return question + self._counts[example.context] > pair_length
        if isinstance(example, ChoiceExample):
            most = config.max_qa_length or min(128, length // 4)
            options = (choice_text(example.question, one) for one in example.options)
            longest = max(self._counts[text] for text in options)
            return longest > most or longest + self._counts[example.context] > pair_length
        second = self._counts[example.second] if example.second else 0
        if self._task.kind.texts_per_row > 1:  # each text has a row of its own
            return max(self._counts[example.first], second) > length - 2
        return self._counts[example.first] + second > (pair_length if second else length - 2)

    def unknown(self) -> Unknown:
        """Counts unknown tokens, and finds the characters and words that cause most of them."""
        encode, unk_id = self._tokenizer.encode, self._tokenizer.unk_id
        seen = Counter(word for text in self._with_unknown for word in text.split())
        encoded = zip(seen.items(), self._tokenizer.encode_batch(seen), strict=True)
        words = {word: count for (word, count), ids in encoded if unk_id in ids}
        characters = Counter()
        for word, count in words.items():
            characters.update({sign: count * number for sign, number in Counter(word).items()})
        alone = [pair for pair in characters.most_common() if unk_id in encode(pair[0])]
        most = [(word[:_SHOWN_WORD], count) for word, count in Counter(words).most_common(_SHOWN)]
        return Unknown(self._total, self._unknown, alone[:_SHOWN], most)
