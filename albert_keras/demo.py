"""All stages in a few minutes, offline: from text to a model that answers.

Each stage is the public function behind the command of the same name. A stage whose result exists
is skipped, so an interrupted demo is resumed.
"""

import logging
import math
import time
from pathlib import Path
from typing import NamedTuple

from albert_keras import recipes
from albert_keras.config import AlbertConfig
from albert_keras.demo_corpus import demo_documents
from albert_keras.formats.detection import versions
from albert_keras.reports.page import write_report
from albert_keras.runs.run_record import read_record
from albert_keras.serving.predictor import FilledMask, Predictor, SentenceOrder
from albert_keras.serving.publish import export
from albert_keras.shape import count_weights, model_line
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.evaluate import Evaluation, evaluate
from albert_keras.training.pretrain import pretrain
from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.records.dataset_info import INFO_FILE
from data_pipeline.text.corpus import read_corpus, split_heldout, write_jsonl
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary

logger = logging.getLogger(__name__)

VOCAB_SIZE = 8000
HELDOUT_FRACTION = 0.1
#: Single words are easier to predict than n-grams, and more of them teach more per step: a small
#: model leaves its first plateau sooner. The training is seven passes over the text: with a copy
#: for each, the segments are different ones every time, and their order is learned, not their
#: labels (docs/measured.md).
DATA = PretrainingDataConfig(
    max_seq_length=64,
    num_shards=2,
    copies=7,
    static_masks=False,
    masking={"masked_lm_prob": 0.25, "max_ngram": 1},
)
#: The scores are on the usual 15 % of the tokens, the same in every run.
HELDOUT_DATA = DATA.replace(copies=1, static_masks=True, masking={"max_ngram": 1})
#: On any machine the rate is 0 at the end: a short run is better than a long wait.
TRAINING = PretrainingConfig.of(recipes.values("albert-cpu-4-minutes")).with_flags(time_budget="3m")
#: Characters the vocabulary is trained on; more take long and change little.
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
    """The results of the demo."""

    path: Path  # folder with all results
    evaluation: Evaluation  # on held-out documents
    fillings: tuple[FilledMask, ...]
    order: SentenceOrder
    report: Path  # page with scores and curves
    export: Path  # folder for `tensorflow_model_server`
    model: str  # the line that says what the model is
    weights_saved: int  # weights that the model would have more if its layers shared nothing
    seconds: float

    @property
    def masked_lm_gain(self):
        """float. Masked-LM accuracy divided by the accuracy of the best constant guess."""
        return self.evaluation.masked_lm_accuracy / self.evaluation.unigram_accuracy

    @property
    def order_is_learned(self):
        """bool. Whether sentence-order accuracy exceeds chance by more than the sampling error."""
        chance = self.evaluation.sentence_order_chance
        error = 1.96 * math.sqrt(chance * (1 - chance) / self.evaluation.num_records)
        return self.evaluation.sentence_order_accuracy > chance + error


def demo(out: str | Path = "runs/demo", config: PretrainingConfig = TRAINING) -> DemoResult:
    """Trains and exports a model from the text that comes with the package.

    Raises:
        InputError: If `out`, the folder for all results, cannot be written or has other files.
    """
    started = time.monotonic()
    out = Path(out)
    train, heldout = _corpus(out / "corpus")
    tokenizer = _tokenizer(train, out / "tokenizer")
    _records("3/7 records", train, tokenizer, out / "records", DATA)
    _records("3/7 held-out records", heldout, tokenizer, out / "records-heldout", HELDOUT_DATA)

    logger.info("4/7 pre-training")
    result = pretrain(out / "records", out / "run", config)
    logger.info("5/7 evaluation on held-out documents")
    evaluation = evaluate(result.path, out / "records-heldout")
    report = write_report(result.path)
    saved_model = out / "saved_models" / "demo"
    if not _exists("6/7 export", saved_model, bool(versions(saved_model))):
        export(result.path, saved_model)
    logger.info("7/7 answers of the exported model")
    predictor = Predictor(saved_model)
    shape = AlbertConfig.from_dict(read_record(result.path / "run.json")["albert_config"])
    unshared = count_weights(shape.replace(sharing="none", num_hidden_groups=1))
    return DemoResult(
        path=out,
        evaluation=evaluation,
        fillings=tuple(predictor.fill_mask(list(TEXTS_TO_FILL))),
        order=predictor.sentence_order([TEXTS_TO_ORDER[0]], [TEXTS_TO_ORDER[1]])[0],
        report=report,
        export=saved_model,
        model=model_line(shape),
        weights_saved=unshared.total - count_weights(shape).total,
        seconds=time.monotonic() - started,
    )


def _corpus(folder):
    train, heldout = folder / "train.jsonl", folder / "heldout.jsonl"
    title = "1/7 corpus: the text of the package"
    if _exists(title, folder, train.is_file() and heldout.is_file()):
        return train, heldout
    folder.mkdir(parents=True, exist_ok=True)
    parts = split_heldout(demo_documents(), HELDOUT_FRACTION)
    for documents, path in zip(parts, (train, heldout), strict=True):
        write_jsonl(documents, path)
        logger.info("%s: %.1f MB", path, path.stat().st_size / 1e6)
    return train, heldout


def _tokenizer(corpus, folder):
    if not _exists(f"2/7 vocabulary of {VOCAB_SIZE} pieces", folder, folder.is_dir()):
        train_vocabulary(_some_paragraphs(corpus), folder, VOCAB_SIZE)
    return Tokenizer.load(folder)


def _some_paragraphs(corpus):
    """Yields the paragraphs of every n-th document, about `_VOCABULARY_CHARACTERS` in total."""
    every = max(1, round(corpus.stat().st_size / _VOCABULARY_CHARACTERS))
    for number, document in enumerate(read_corpus([corpus])):
        if number % every == 0:
            yield from document.paragraphs


def _records(title, corpus, tokenizer, folder, config):
    if not _exists(title, folder, (folder / INFO_FILE).is_file()):
        result = build_records([corpus], tokenizer, folder, config)
        logger.info("%s: %d records", folder, result.info.num_records)


def _exists(title, result, exists):
    """Logs the start of a stage, or that its result exists; returns whether it does."""
    logger.info("%s%s", title, f": {result} exists already" if exists else "")
    return exists
