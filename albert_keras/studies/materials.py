"""Vocabularies and records of a study, each made once for all runs that need the same."""

import logging
from pathlib import Path
from typing import NamedTuple

from albert_keras.studies.config import VocabularyConfig
from albert_keras.studies.corpus import StudyCorpus, digest_of, share_of
from albert_keras.studies.folder import content_id
from albert_keras.studies.planned import PlannedRun, PlannedStudy
from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.records.dataset_info import INFO_FILE, DatasetInfo
from data_pipeline.text.corpus import read_corpus
from data_pipeline.tokenizers.byte_bpe_training import train_byte_bpe
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary
from data_pipeline.tokenizers.wordpiece_training import train_wordpiece

logger = logging.getLogger(__name__)


class Materials(NamedTuple):
    """The records of a run."""

    records: Path  # to train on
    followed: Path  # held-out records of the same kind, for the curve
    held_out: dict[str, Path]  # held-out records by evaluation


def prepare_materials(
    out: Path, planned: PlannedStudy, corpus: StudyCorpus, workers: int | None
) -> dict[str, Materials]:
    """Makes the vocabularies and records of all runs that do not exist yet.

    Args:
        out: Folder of the study.
        workers: As in `build_records`.

    Returns:
        dict of name of a run -> Materials.
    """
    made = {}
    for run in planned.runs:
        tokenizer = _tokenizer(out, run.vocabulary, corpus)
        held_out = {
            name: _held_out(out, corpus, tokenizer, config, workers)
            for name, config in planned.held_out.items()
        }
        followed = _held_out(out, corpus, tokenizer, planned.followed(run), workers)
        records = _training(out, run, corpus, tokenizer, workers)
        made[run.name] = Materials(records, followed, held_out)
    return made


def _tokenizer(out, vocabulary: VocabularyConfig, corpus):
    settings = vocabulary.model_dump()
    folder = out / "vocabularies" / content_id(settings, corpus.digest)
    if not folder.is_dir():
        logger.info("training a vocabulary of %s pieces", f"{vocabulary.size:,}")
        documents = read_corpus(list(corpus.training), corpus.training_format)
        texts = (paragraph for document in documents for paragraph in document.paragraphs)
        if vocabulary.kind == "bpe":
            train_byte_bpe(texts, folder, vocabulary.size)
        elif vocabulary.kind == "wordpiece":
            train_wordpiece(texts, folder, vocabulary.size, lower_case=vocabulary.lower_case)
        else:
            train_vocabulary(texts, folder, vocabulary.size, lower_case=vocabulary.lower_case)
    return Tokenizer.load(folder)


def _training(out, run: PlannedRun, corpus, tokenizer, workers):
    sources, corpus_format = share_of(out, corpus, run.corpus_share)
    digest = corpus.digest if run.corpus_share >= 1 else digest_of(sources, corpus_format)
    text = (sources, corpus_format, digest)
    return _records(out, text, tokenizer, run.data, workers)


def _held_out(out, corpus, tokenizer, config, workers):
    text = (corpus.held_out, corpus.held_out_format, corpus.held_out_digest)
    return _records(out, text, tokenizer, config, workers)


def _records(out, text, tokenizer, config: PretrainingDataConfig, workers):
    sources, corpus_format, digest = text
    # "sop" is the default of pairs: the same records, whether it is given or not.
    settings = config.model_dump() | {"objective": config.label_objective}
    folder = out / "records" / content_id(settings, tokenizer.digest, digest)
    if not (folder / INFO_FILE).is_file():
        result = build_records(list(sources), tokenizer, folder, config, corpus_format, workers)
        logger.info("%s: %s records", folder, f"{result.info.num_records:,}")
    return folder


def fingerprint_of(records: Path) -> str:
    """Returns the fingerprint of a folder of records."""
    return DatasetInfo.load(records).fingerprint
