"""Models of every kind to be asked, and real inputs for them; none is trained."""

import itertools
import random

import numpy as np
import tensorflow as tf

from albert_keras.config import AlbertConfig
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.serving.export.checks import inputs_of_texts
from albert_keras.serving.export.source import ExportSource
from albert_keras.serving.layout import MASK_LITERAL
from albert_keras.serving.task_answers import answer_by_signatures, call_by_rows
from albert_keras.tasks.choice.files import read_race
from albert_keras.tasks.classification.glue_files import read_glue
from albert_keras.tasks.kinds import CLASSIFICATION, SPANS_OR_NONE, build_task
from albert_keras.tasks.spans.files import read_questions
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.tasks.typed_examples import typed_examples
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.albert_keras.serving.goals.hostile_strings import example_of
from tests.albert_keras.tasks.small_tasks import build_model

_TEXT = {"text": "a", "labels": ("no", "yes", "maybe")}
#: Name → settings of a task; None is a pre-trained model.
SOURCES = {
    "pre-trained": None,
    "texts": {"name": "classification", **_TEXT},
    "pairs": {"name": "pair", "pair": "b", **_TEXT},
    "numbers": {"name": "regression", "text": "a"},
    "numbers of pairs": {"name": "regression", "text": "a", "pair": "b"},
    "tags": {"name": "tagging", "labels": ("B-X", "I-X", "O")},
    "choice": {"name": "race"},
    "spans": {"name": "squad1"},
    "spans or none": {"name": "squad2"},
}
#: What `load_tokenizer` knows.
TOKENIZERS = ("clean-up in the model", "official", "German with case")
#: Signatures over serialized tf.Examples.
EXAMPLES = ("classify", "regress")
#: Places of a row of `small_source`; what is read of a question has to fit into it.
SMALL = 40
_OF_SMALL = {
    "choice": {"max_qa_length": 12},
    "spans": {"doc_stride": 20, "max_query_length": 6},
    "spans or none": {"doc_stride": 20, "max_query_length": 6},
}


def source_of(name, tokenizer, max_seq_length, changes=None):
    """Returns an ExportSource with a small model whose weights tell inputs apart."""
    shape = AlbertConfig(
        vocab_size=tokenizer.vocab_size,
        embedding_size=16,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=512,
        initializer_range=0.2,
    )
    if SOURCES[name] is None:
        model, task = AlbertForPretraining(shape, sentence_head=True), None
    else:
        settings = SOURCES[name] | (changes or {})
        task = build_task(TaskConfig(max_seq_length=max_seq_length, **settings))
        model = build_model(task.kind.name, shape, task.num_outputs)
        draw = np.random.default_rng(0)
        for weight in model.head.weights:
            weight.assign(draw.normal(0, 2.5, weight.shape))
    kind = "finetuning" if task else "pretraining"
    return ExportSource(kind, {}, None, model, tokenizer, max_seq_length, task, {}, {})


def small_source(name, tokenizer):
    return source_of(name, tokenizer, SMALL, _OF_SMALL.get(name))


class Asked:
    """A model over strings that is asked by name.

    Attributes:
        names: list of str. Its signatures over strings, each function once.
        max_bytes: int. Bytes of a text that are read.
    """

    def __init__(self, source):
        self._module = source.string_model("float32", layers=(1,))
        self._functions = self._module.functions
        self.names = list({id(one): name for name, one in self._functions.items()}.values())
        self.max_bytes = self._module.max_bytes

    def specs(self, name):
        """Returns the inputs of a signature, dict of name to TensorSpec."""
        return {spec.name: spec for spec in self._functions[name].input_signature}

    def call(self, name, inputs):
        """Asks a signature: string tensors by name → dict of tensors."""
        return self._functions[name](**inputs)

    def ask(self, name, **inputs):
        """Asks a signature: lists of str or bytes by name → dict of arrays [B, ...]."""
        inputs = {key: tf.constant(one, tf.string) for key, one in inputs.items()}
        return {key: one.numpy() for key, one in self.call(name, inputs).items()}


def balanced(source, inputs):
    """Moves what decides so that each answer is given to some of the inputs; returns the source."""
    kind = source.task and source.task.kind
    ask = Asked(source).ask
    if kind is CLASSIFICATION:
        examples = typed_examples(source.task, inputs)
        answers = answer_by_signatures(ask, source.task, examples)
        probabilities = [list(answer.probabilities.values()) for answer in answers]
        source.model.head.weights[1].assign_sub(np.log(probabilities).mean(axis=0))
    if kind is SPANS_OR_NONE:
        columns = {name: [one[name] for one in inputs] for name in inputs[0]}
        scores = [row["null_score"] for row in call_by_rows(ask, "question_answering", **columns)]
        source = source._replace(tuned={"null_threshold": float(np.median(scores))})
    return source


def real_inputs(name, data, corpus, count):
    """Returns so many different inputs as `check_parity` takes them.

    Args:
        name: str. Of a source.
        data: Path or None. Folder of real files; without it all is made of the corpus.
        corpus: list of str.
        count: int.
    """
    if data is None:
        firsts, others = corpus[: count // 100 + 1], itertools.cycle(corpus[::-1])
        texts = [f"{one} {next(others)}" for one in firsts for _ in range(100)][:count]
    elif name in ("choice", "spans", "spans or none"):
        return _real_questions(name, data)[:count]
    elif name.endswith("pairs"):
        files = ("mrpc", "qqp") if name == "pairs" else ("sts-b",)
        pairs = [pair for file in files for pair in read_glue(file, data / "glue", "dev")]
        return [{"text": one.first, "pair": one.second} for one in pairs[:count]]
    else:
        parts = (read_glue("sst-2", data / "glue", split) for split in ("dev", "train"))
        texts = [one.first for one in itertools.islice(itertools.chain(*parts), count)]
    if name == "pre-trained":
        return list(map(masked, range(count), texts))
    task = SOURCES[name]
    return inputs_of_texts(build_task(TaskConfig(**task)).kind, "pair" in task, texts)


def _real_questions(name, data):
    if name == "choice":
        return [
            {"context": one.context, "question": one.question, "options": list(one.options)}
            for split in ("dev", "test", "train")
            for one in read_race(data / "race", split)
        ]
    file = "dev-v1.1.json" if name == "spans" else "dev-v2.0.slice.json"
    examples = read_questions(data / "squad" / file)
    random.Random(1).shuffle(examples)
    return [{"question": one.question, "context": one.context} for one in examples]


def masked(seed, text):
    """Puts masks for one to three words of a text."""
    words, draw = text.split(" "), random.Random(seed)
    for place in draw.sample(range(len(words)), min(len(words), draw.randint(1, 3))):
        words[place] = MASK_LITERAL
    return " ".join(words)


def columns(asked, name, texts):
    """Lays out texts as the inputs of a signature: lists by name, each in another order."""
    inputs = {}
    for place, (key, spec) in enumerate(asked.specs(name).items()):
        column = texts[place:] + texts[:place]
        if spec.shape.rank == 2:
            column = [list(row) for row in zip(column, column[::-1], texts, strict=True)]
        inputs[key] = column
    return inputs


def largest_difference(found, meant, where):
    """Compares answers, dicts of arrays [B, ...], whose floats may differ by what is returned.

    The arrays found may have more positions, which are empty, as beside a longer row.
    """
    largest = 0.0
    assert set(found) == set(meant)
    for key, value in meant.items():
        all_found, shown = found[key], tuple(slice(0, size) for size in value.shape)
        if value.dtype.kind == "f":
            size = np.maximum(np.abs(value), 1)
            largest = max(largest, (np.abs(all_found[shown] - value) / size).max(initial=0))
        else:
            assert np.array_equal(all_found[shown], value), f"{where} {key}"
        if value.dtype == object:
            assert (all_found != b"").sum() == (value != b"").sum(), f"{where} {key}"
    return largest


def with_long(asked, source, name, text, place):
    """Returns the inputs of a signature for one row; one of them is a given text (bytes).

    Args:
        asked: Asked.
        source: str. The name of the model in SOURCES.
        name: str. Name of the signature.
        text: bytes.
        place: int. Position of the text among the texts that the signature takes, which are
            separate inputs or are separated by a tab.

    Returns:
        dict of lists by name; None if it takes no more texts than `place`.
    """
    texts = [b"What _ left [MASK] ?"] * 3
    texts[place] = text
    specs = asked.specs(name)
    if len(specs) > 1:
        if place >= len(specs):
            return None
        inputs = {key: [one] for key, one in zip(specs, texts, strict=False)}
        if "options" in specs:
            # Together they are as long as the text.
            option = texts[2][: len(texts[2]) // 3 + 1]
            inputs["options"] = [[option, option + b"b", option + b"c"]]
        return inputs
    most = 2 if "pairs" in source or "spans" in source else 1
    if place >= most:
        return None
    if name in EXAMPLES:
        return {"inputs": [example_of(text=texts[0], pair=texts[1])]}
    return {"text": [b"\t".join(texts[:most])]}


def load_tokenizer(name, request):
    """Returns a Tokenizer of `TOKENIZERS`, by fixtures that skip where there are no real data."""
    if name == "clean-up in the model":
        return request.getfixturevalue("tiny_tokenizer")
    if name == "official":
        return Tokenizer.load(request.getfixturevalue("official_model"))
    folder = request.getfixturevalue("shared_data") / "vocab" / "german-30k"
    return Tokenizer.load(folder / "30k-clean.model", lower_case=False, strip_accents=False)
