"""The whole way in a few minutes, offline: documentation text → a model that answers.

Each stage is the public function behind the command of the same name. A stage whose result is
there is not done again, so an interrupted demo goes on.
"""

import logging
import math
import time
from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.layout import versions
from albert_keras.serving.predictor import FilledMask, Predictor, SentenceOrder
from albert_keras.serving.publish import export
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.evaluate import Evaluation, evaluate
from albert_keras.training.loop.curves import draw_curves
from albert_keras.training.pretrain import pretrain
from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.records.dataset_info import INFO_FILE
from data_pipeline.text.corpus import read_corpus
from data_pipeline.text.holdout import split_heldout, write_jsonl
from data_pipeline.text.installed_docs import installed_documentation
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary

logger = logging.getLogger(__name__)

VOCAB_SIZE = 8000
HELDOUT_SHARE = 0.1
DATA = PretrainingDataConfig(max_seq_length=64, num_shards=2)
TRAINING = PretrainingConfig(
    model={"size": "albert-mini"},
    training={
        "steps": 600,
        "batch_size": 32,
        "checkpoint_every": 100,
        "report_every": 25,
        # Two cores that others use as well may be slow; better a shorter run than a long wait.
        "time_limit_seconds": 160,
    },
)
#: Characters the vocabulary is trained on; more changes little and takes long.
_VOCABULARY_CHARACTERS = 3_000_000

TEXTS_TO_FILL = (
    "Must be one of [MASK] following.",
    "The [MASK] of the tensor.",
    "A list of strings[MASK]",
    "If the file does [MASK] exist, an error is raised.",
    "Returns the number of [MASK] in the list.",
)
TEXTS_TO_ORDER = (
    "Computes the mean of the elements of a tensor along an axis.",
    "If the axis is not given, all dimensions are reduced.",
)


class DemoResult(NamedTuple):
    """What the demo made.

    Attributes:
        path: Path. Folder of everything.
        evaluation: Evaluation. On documents held out.
        fillings: tuple of FilledMask.
        order: SentenceOrder.
        curves: Path. Picture of loss and accuracies.
        export: Path. Folder for `tensorflow_model_server`.
        seconds: float.
    """

    path: Path
    evaluation: Evaluation
    fillings: tuple[FilledMask, ...]
    order: SentenceOrder
    curves: Path
    export: Path
    seconds: float

    @property
    def masked_lm_gain(self):
        """float. Masked-LM accuracy over that of the best constant guess."""
        return self.evaluation.masked_lm_accuracy / self.evaluation.unigram_accuracy

    @property
    def order_is_learned(self):
        """bool. Whether sentence order is above chance by more than the sampling error."""
        chance = self.evaluation.sentence_order_chance
        error = 1.96 * math.sqrt(chance * (1 - chance) / self.evaluation.num_records)
        return self.evaluation.sentence_order_accuracy > chance + error


def demo(out="runs/demo", config=TRAINING):
    """Goes from the documentation of the installed Python packages to a served model.

    Args:
        out: str or Path. Folder for everything.
        config: PretrainingConfig.

    Returns:
        DemoResult.

    Raises:
        InputError: If `out` cannot be written, or holds something else.
    """
    started = time.monotonic()
    out = Path(out)
    train, heldout = _corpus(out / "corpus")
    tokenizer = _tokenizer(train, out / "tokenizer")
    _records("3/7 records", train, tokenizer, out / "records")
    _records("3/7 records to score on", heldout, tokenizer, out / "records-heldout")

    logger.info("4/7 pre-training")
    result = pretrain(out / "records", out / "run", config)
    logger.info("5/7 evaluation on documents held out")
    evaluation = evaluate(result.path, out / "records-heldout")
    curves = draw_curves(result.path, evaluation._asdict())

    saved_model = out / "saved_models" / "demo"
    if versions(saved_model):
        logger.info("6/7 export: %s is there already", saved_model)
    else:
        logger.info("6/7 export")
        export(result.path, saved_model)
    logger.info("7/7 answers of the exported model")
    predictor = Predictor(saved_model)
    return DemoResult(
        path=out,
        evaluation=evaluation,
        fillings=tuple(predictor.fill_mask(list(TEXTS_TO_FILL))),
        order=predictor.sentence_order([TEXTS_TO_ORDER[0]], [TEXTS_TO_ORDER[1]])[0],
        curves=curves,
        export=saved_model,
        seconds=time.monotonic() - started,
    )


def _corpus(folder):
    train, heldout = folder / "train.jsonl", folder / "heldout.jsonl"
    if train.is_file() and heldout.is_file():
        logger.info("1/7 corpus: %s is there already", folder)
        return train, heldout
    logger.info("1/7 corpus: reading the documentation of the installed packages")
    folder.mkdir(parents=True, exist_ok=True)
    parts = split_heldout(installed_documentation(), HELDOUT_SHARE)
    for documents, path in zip(parts, (train, heldout), strict=True):
        write_jsonl(documents, path)
        logger.info("%s: %.1f MB", path, path.stat().st_size / 1e6)
    return train, heldout


def _tokenizer(corpus, folder):
    if folder.is_dir():
        logger.info("2/7 vocabulary: %s is there already", folder)
    else:
        logger.info("2/7 vocabulary of %d pieces", VOCAB_SIZE)
        train_vocabulary(_some_paragraphs(corpus), folder, VOCAB_SIZE)
    return Tokenizer.load(folder)


def _some_paragraphs(corpus):
    """Yields every n-th document's paragraphs, about `_VOCABULARY_CHARACTERS` in all."""
    every = max(1, round(corpus.stat().st_size / _VOCABULARY_CHARACTERS))
    for number, document in enumerate(read_corpus([corpus])):
        if number % every == 0:
            yield from document.paragraphs


def _records(title, corpus, tokenizer, folder):
    if (folder / INFO_FILE).is_file():
        logger.info("%s: %s is there already", title, folder)
        return
    logger.info(title)
    result = build_records([corpus], tokenizer, folder, DATA)
    logger.info("%s: %d records", folder, result.info.num_records)
