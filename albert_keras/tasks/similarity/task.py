"""Similarity of two texts: a cosine of vectors, learned from pairs or from pairs with scores."""

import numpy as np
import scipy.stats

from albert_keras.tasks.classification.glue_files import read_glue
from albert_keras.tasks.classification.regression import ScoreTask, score_answers
from albert_keras.tasks.examples import TextExample
from albert_keras.tasks.kinds import SIMILARITY
from albert_keras.tasks.labels import hold_out
from albert_keras.tasks.pair_features import PairFeatures, encode_pairs
from albert_keras.tasks.task import check_numbers, check_text, with_dropped_tokens
from data_pipeline.errors import InputError

_GLUE = "sts-b"


class SimilarityTask(ScoreTask):
    """Similarity of pairs of texts.

    Training examples come from `train`, or from the STS-B of GLUE in `data_dir`; development
    examples are pairs with scores from `dev`, STS-B in `data_dir`, or held out from `train`.

    Attributes:
        objective: str. "pairs" for equivalent texts, "scores" for pairs with scores.
    """

    kind = SIMILARITY
    usual_metrics = ("spearman", "pearson")
    pair_may_be_blank = False

    def __init__(self, config):
        super().__init__(config)
        self.takes_pair = True
        self._layout = _GLUE if config.text is None and config.data_dir is not None else None
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

    def example(self, number, fields):
        example = super().example(number, fields)
        check_text("pair", example.second)
        return example

    def features(self, examples, tokenizer, training=False):
        labels = None
        if training and self.objective == "scores":
            labels = self._truth(examples)[:, 0].astype(np.float32)
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

    def answers(self, examples, features, outputs, tuned=None):
        check_numbers(outputs)
        answers = score_answers(examples, np.asarray(outputs["cosine"], np.float64))
        return with_dropped_tokens(answers, features)

    def guesses(self, training_examples, examples):
        return None  # a constant answer has no correlation with anything

    def errors(self, examples, answers):
        """Returns all pairs; the confidence is the difference of the ranks, from 0 to 1."""
        columns = self._truth(examples)[:, 0], self._given(answers)[:, 0]
        ranks = [scipy.stats.rankdata(values) / len(values) for values in columns]
        errors = [
            error._replace(confidence=abs(first - second))
            for error, first, second in zip(map(self.error, examples, answers), *ranks, strict=True)
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
        return self._table(config.train, self.objective == "scores", None)

    def _table(self, path, labelled, known_labels, all_columns=None):
        for column in ("text", "pair", "label") if labelled else ("text", "pair"):
            if getattr(self.config, column) is None:
                raise InputError(
                    f"`{column}` must name a column of `{path}`: a file of pairs has two texts"
                    f"{' and a score' if labelled else ''}. Received: None. Give --{column}."
                )
        return super()._table(path, labelled, known_labels, all_columns)

    def _range(self):
        return 1.0  # cosines that differ by less than 0.001 are all the same
