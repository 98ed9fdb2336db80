"""Similarity of two texts: a cosine of vectors, learned from pairs or from pairs with scores."""

from typing import Any

import numpy as np
import scipy.stats

from albert_keras.tasks import metrics
from albert_keras.tasks.classification.glue_files import read_glue, read_glue_file
from albert_keras.tasks.classification.regression import score_answers
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import SIMILARITY
from albert_keras.tasks.labels import hold_out
from albert_keras.tasks.pair_features import PairFeatures, encode_pairs
from albert_keras.tasks.predictions import check_numbers, one_line
from albert_keras.tasks.tables.cells import ScoreLabel
from albert_keras.tasks.tables.files import read_table
from albert_keras.tasks.tables.rows import is_number
from albert_keras.tasks.task import Error, Task, check_text, with_dropped_tokens
from data_pipeline.errors import InputError

_GLUE = "sts-b"
#: Cosines that spread less than this count as all the same; they range from -1 to 1.
_LEAST_SPREAD = 1e-3


class SimilarityTask(Task):
    """Similarity of pairs of texts.

    Training examples come from `train`, or from the STS-B of GLUE in `data_dir`; development
    examples are pairs with scores from `dev`, STS-B in `data_dir`, or held out from `train`.

    Attributes:
        objective: str. "pairs" for equivalent texts, "scores" for pairs with scores.
    """

    kind = SIMILARITY
    metric = "spearman"
    usual_length = 128
    takes_pair = True
    dev_splits = ("dev",)
    labels = ()

    def __init__(self, config):
        super().__init__(config)
        self.test_splits = ("test",) if config.data_dir is not None else ()
        self.objective = config.objective
        if config.objective == "auto":  # without a file it is STS-B, or no training any more
            has_scores = config.train is None or config.label is not None
            self.objective = "scores" if has_scores else "pairs"

    @property
    def model_settings(self):
        return {"pooling": self.config.pooling}

    def read(self, split):
        self.check_split(split)
        config = self.config
        if split == "train":
            rest = self._training()
            return hold_out(rest, config.dev_share)[0] if self._holds_out else rest
        if split == "test":
            return read_glue(_GLUE, config.data_dir, split)
        if config.dev is not None:
            return self.read_file(config.dev, labelled=True)
        if config.data_dir is not None:
            return read_glue(_GLUE, config.data_dir, split)
        if not self._holds_out:
            raise InputError(
                "A training for similarity must have development pairs with scores. Give --dev "
                "with --text, --pair and --label, or --data-dir with the STS-B of GLUE. "
                "Received: neither `dev` nor `data_dir`."
            )
        return hold_out(self._training(), config.dev_share)[1]

    def read_file(self, path, labelled):
        if self.config.text is None and self.config.data_dir is not None:
            return read_glue_file(_GLUE, path, labelled)
        return self._read(path, labelled)

    def read_rows(self, path):
        if self.config.text is None and self.config.data_dir is not None:
            return super().read_rows(path)
        columns: list[dict[str, Any]] = []
        return self._read(path, False, columns), columns

    def example(self, number, fields):
        self.check_fields(fields)
        check_text("pair", fields["pair"])
        return TextExample(str(number), fields["text"], fields["pair"])

    def with_truth(self, example, truth):
        return example._replace(label=ScoreLabel().read([truth], ["label"]))

    def features(self, examples, tokenizer, training=False):
        labels = None
        if training and self.objective == "scores":
            labels = self._truth(examples).astype(np.float32)
        texts = [
            TextExample(example.id, text)
            for example in examples
            for text in (example.first, example.second)
        ]
        pairs, sequences = encode_pairs(texts, tokenizer, self.max_seq_length), 2
        features = PairFeatures(pairs, tokenizer, self.max_seq_length, labels, sequences)
        # Of both texts, as each of them is read on its own.
        features.dropped_tokens = pairs.dropped.reshape(-1, sequences).sum(axis=1)
        return features

    def answers(self, examples, features, results, tuned=None):
        check_numbers(results)
        cosines = [np.asarray(result["cosine"], np.float64) for result in results]
        answers = score_answers(examples, np.mean(cosines, axis=0)) if examples else []
        return with_dropped_tokens(answers, features)

    def scores(self, examples, answers):
        names = (self.metric, "pearson")
        return metrics.scores(names, self._truth(examples), _given(answers))

    def interval(self, examples, answers):
        return metrics.bootstrap_interval(self.metric, self._truth(examples), _given(answers))

    def guesses(self, training_examples, examples):
        return None  # a constant answer has no correlation with anything

    def collapse(self, answers):
        given = _given(answers)
        if len(given) < 2 or given.std() >= _LEAST_SPREAD:
            return None
        return f"all {len(given)} cosines are about {given.mean():.4g}"

    def errors(self, examples, answers):
        """Returns all pairs; the confidence is the difference of the ranks, from 0 to 1."""
        truth, given = self._truth(examples), _given(answers)
        ranks = [scipy.stats.rankdata(values) / len(values) for values in (truth, given)]
        errors = [
            Error(
                example.id,
                one_line(example.first, example.second),
                f"{example.label:.6g}",
                f"{answer.score:.6g}",
                abs(first - second),
            )
            for example, answer, first, second in zip(examples, answers, *ranks, strict=True)
        ]
        return sorted(errors, key=lambda error: -error.confidence)

    @property
    def _holds_out(self):
        config = self.config
        is_own = config.dev is None and config.data_dir is None
        return is_own and self.objective == "scores"

    def _training(self):
        """Returns all examples of the training file, including those that may be held out."""
        config = self.config
        if config.train is None and config.data_dir is None:
            raise InputError(
                "`train` must be the training file, or `data_dir` the folder with the STS-B of "
                "GLUE. Received: None."
            )
        if config.train is None:
            return read_glue(_GLUE, config.data_dir, "train")
        return self._read(config.train, self.objective == "scores")

    def _read(self, path, is_labelled, all_columns=None):
        """Reads pairs of texts, and their scores if `is_labelled`, from a table."""
        config = self.config
        for column in ("text", "pair", "label") if is_labelled else ("text", "pair"):
            if getattr(config, column) is None:
                raise InputError(
                    f"`{column}` must name a column of `{path}`: a file of pairs has two texts"
                    f"{' and a score' if is_labelled else ''}. Received: None. Give --{column}."
                )
        columns = [config.text, config.pair, config.label]
        skipped = []
        examples = read_table(
            path,
            config.text,
            config.pair,
            config.label if is_labelled else None,
            ScoreLabel(),
            # From all columns, so that a file without scores is read like one with scores.
            has_header=not all(is_number(column) for column in columns if column is not None),
            dialect=config.dialect,
            skipped=skipped if config.skip_bad_rows else None,
            all_columns=all_columns,
            pair_may_be_blank=False,
        )
        self.skipped_rows[str(path)] = skipped
        return examples

    def _truth(self, examples):
        for example in examples:
            if example.label is None:
                raise InputError(f"Example {example.id} must have a score. It has none.")
        return np.array([example.label for example in examples], np.float64)


def _given(answers):
    return np.array([answer.score for answer in answers], np.float64)
