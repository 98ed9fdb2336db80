"""A toy to be learnt, a fine-tuning that learnt it, and examples of every kind of task."""

import contextlib
import random

import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.keras_versions import name_of
from albert_keras.models.text_rows import TextRows
from albert_keras.runs.log_file import log_evaluation
from albert_keras.tasks import metrics, train_seed
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.results import read_results
from albert_keras.training.fitting import checkpoint_variables
from tests.albert_keras.tasks.small_tasks import make_examples, make_task

#: The word that says which class a text of the toy is of.
WORDS = {"no": "window", "yes": "harbour"}
#: A model for the vocabulary of `tiny_tokenizer` that trains in seconds, without dropout.
SHAPE = AlbertConfig(
    vocab_size=307,
    embedding_size=16,
    hidden_size=32,
    num_hidden_layers=1,
    num_attention_heads=2,
    intermediate_size=64,
    max_position_embeddings=64,
    hidden_dropout_prob=0.0,
    attention_probs_dropout_prob=0.0,
)


def write_toy(path, corpus, count, seed):
    """Writes texts in which one of two words, anywhere, tells the class; returns the path."""
    rng = random.Random(seed)
    lines = ["text\tlabel"]
    for _ in range(count):
        words = rng.choice(corpus).split()[: rng.randint(1, 5)]  # neither of `WORDS`
        label = rng.choice(list(WORDS))
        words.insert(rng.randint(0, len(words)), WORDS[label])
        lines.append(f"{' '.join(words)}\t{label}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="session")
def toy(tiny_corpus, made_once):
    """Returns a folder with train.tsv, 200 texts, and dev.tsv, 60 texts."""

    def write(folder):
        folder.mkdir()
        write_toy(folder / "train.tsv", tiny_corpus, 200, seed=1)
        write_toy(folder / "dev.tsv", tiny_corpus, 60, seed=2)

    return made_once("toy", write)


@pytest.fixture(scope="session")
def toy_config(toy):
    """Returns settings that learn the toy, and end when nothing gets better any more."""
    task = {"name": "classification", "text": "text", "label": "label", "max_seq_length": 24}
    task |= {name: str(toy / f"{name}.tsv") for name in ("train", "dev")}
    training = {"steps": 100, "batch_size": 16, "report_every": 20, "precision": "float32"}
    training |= {"evaluate_every": 5, "patience": 6, "checkpoint_every": 1000}
    # From random weights LAMB learns too slowly for a test.
    optimizer = {"name": "adamw", "lr": 1e-3}
    return FinetuneConfig(task=task, training=training, optimizer=optimizer)


@pytest.fixture(scope="session")
def tune(tiny_tokenizer, toy_config):
    """Returns `finetune`, from random weights and with the settings of the toy if not told."""

    def tune(out, config=toy_config, origin="random", **arguments):
        if origin == "random":
            arguments = {"albert_config": SHAPE, "tokenizer": tiny_tokenizer} | arguments
        return finetune(origin, out, config, **arguments)

    return tune


@pytest.fixture(scope="session")
def tuned_toy(tune, made_once):
    """Returns the FinetuneResult of a toy that was learnt; tests that change it copy its folder."""
    return read_results(made_once("tuned-toy", tune))


@pytest.fixture(scope="session")
def end_at_once():
    """Returns a context in which trainings end at their last step with their initial weights.

    It gives a dict of these weights, by the name of the run, then by the name of the weight.
    """

    @contextlib.contextmanager
    def ending():
        begun = {}

        def end(context, scores, **_):
            run, step, steps = context.run, context.training_step, context.training.steps
            if context.first_step == 0:
                begun[run.path.name] = {name_of(w): w.numpy() for w in step.weights}
                run.checkpoints.save(steps, checkpoint_variables(step), {}, -0.5)
                log_evaluation(run.path, steps, {"accuracy": 0.5})
            return steps

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(train_seed, "fit", end)
            # This function takes a second.
            patch.setattr(metrics, "bootstrap_interval", lambda *_: metrics.Interval(0.25, 0.75))
            yield begun

    return ending


@pytest.fixture
def untrained(end_at_once):
    """Lets trainings end at once; returns the weights they began with."""
    with end_at_once() as begun:
        yield begun


@pytest.fixture(scope="session")
def features_of(tiny_corpus, tiny_tokenizer):
    """Returns a function that makes the TextRows of 21 examples of a kind, or a few more rows."""

    def features(kind, training=False):
        task, examples = make_task(kind), make_examples(tiny_corpus, kind)
        targets = task.targets(examples) if training else None
        return TextRows(task.build_preprocessor(tiny_tokenizer), task.columns(examples), targets)

    return features


@pytest.fixture(scope="session")
def rows_of(features_of):
    """Returns a function that makes a batch of four short rows of a kind, and so much padding."""

    def rows(kind, padding=0):
        features = features_of(kind, training=True)
        short = np.flatnonzero(features.lengths <= 30)[:4]
        batch = features.batch(short, int(features.lengths[short].max()) + padding)
        return batch | {"example_weights": np.float32([1, 2, 0.5, 1])}

    return rows
