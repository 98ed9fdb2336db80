"""What the runs of a study read: text, vocabularies and records, each made once for all runs."""

import hashlib
import json
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from albert_keras.research.study.config import VocabularyConfig
from albert_keras.research.study.planned import PlannedStudy
from data_pipeline import files, limits
from data_pipeline.building.build import build_records
from data_pipeline.building.encoding import corpus_digest, range_digest
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.records.dataset_info import INFO_FILE, DatasetInfo
from data_pipeline.text.corpus import corpus_ranges, read_corpus, split_heldout, write_jsonl
from data_pipeline.tokenizers.library_training import train_byte_bpe, train_wordpiece
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary

logger = logging.getLogger(__name__)

#: Fraction of the documents that is held out unless other text is given for that.
HELD_OUT_FRACTION = 0.1


def content_id(*parts: Any) -> str:
    """Returns the id of what the parts, JSON values, decide: 12 hexadecimal digits."""
    text = json.dumps(parts, sort_keys=True, ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def read_json(path: Path) -> dict[str, Any] | None:
    """Returns the content of a JSON file of the study; None if it does not exist.

    Raises InputError if it is damaged.
    """
    return limits.read_json(path, "Remove it.") if path.is_file() else None


def write_json(path: Path, values: dict[str, Any]) -> None:
    """Writes a JSON file of the study, completely or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    files.write_json(path, values, ensure_ascii=False)


class Text(NamedTuple):
    """Sources of text, as `read_corpus` takes them."""

    sources: list[str]
    format: str
    digest: str  # of the text, whatever the names of its sources

    @classmethod
    def of(cls, sources: Sequence[str], corpus_format: str) -> "Text":
        """Reads the text once for its digest."""
        ranges = corpus_ranges(list(sources), corpus_format)
        return cls(list(sources), corpus_format, corpus_digest(map(range_digest, ranges)))


class StudyCorpus(NamedTuple):
    """The text of a study."""

    training: Text
    held_out: Text


def prepare_corpus(
    out: Path, corpus: Sequence[str], eval_corpus: Sequence[str], corpus_format: str
) -> StudyCorpus:
    """Returns the text of a study; without `eval_corpus` a tenth of the documents is held out.

    Raises:
        InputError: If a source cannot be read, both parts are the same text, or there is only one
            document and none to hold out.
    """
    text = Text.of(corpus, corpus_format)
    if eval_corpus:
        held_out = Text.of(eval_corpus, corpus_format)
        if text.digest == held_out.digest:
            raise InputError(
                "The text of `eval_corpus` must not be the text of `corpus`: the scores would "
                f"be training scores. Received: {', '.join(eval_corpus)} for both."
            )
        return StudyCorpus(text, held_out)
    folder = out / "corpus" / content_id("split", text.digest, HELD_OUT_FRACTION)
    paths = folder / "train.jsonl", folder / "heldout.jsonl"
    if not all(path.is_file() for path in paths):
        parts = split_heldout(read_corpus(*text[:2]), HELD_OUT_FRACTION)
        for documents, path in zip(parts, paths, strict=True):
            write_jsonl(documents, path)
        logger.info("held out %d of %d documents", len(parts[1]), sum(map(len, parts)))
    return StudyCorpus(*(Text.of([str(path)], "jsonl") for path in paths))


def share_of(out: Path, text: Text, share: float) -> Text:
    """Returns a share of the training text.

    Whole documents are taken in the order of their digests until they have this share of the
    characters, so a smaller share is part of a larger one.
    """
    if share >= 1:
        return text
    path = out / "corpus" / content_id("share", text.digest, share) / "train.jsonl"
    if not path.is_file():
        documents = sorted(read_corpus(*text[:2]), key=lambda document: document.digest)
        limit = share * sum(len(document.text) for document in documents)
        taken, size = [], 0
        for document in documents:
            if taken and size >= limit:
                break
            taken.append(document)
            size += len(document.text)
        write_jsonl(taken, path)
        logger.info("using %d of %d documents, a share of %g", len(taken), len(documents), share)
    return Text.of([str(path)], "jsonl")


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
        tokenizer = _tokenizer(out, run.vocabulary, corpus.training)

        def records(text, config, tokenizer=tokenizer):
            return _records(out, text, tokenizer, config, workers)

        held_out = {
            name: records(corpus.held_out, config) for name, config in planned.held_out.items()
        }
        followed = records(corpus.held_out, planned.followed(run))
        training = records(share_of(out, corpus.training, run.corpus_share), run.data)
        made[run.name] = Materials(training, followed, held_out)
    return made


def _tokenizer(out, vocabulary: VocabularyConfig, text: Text):
    folder = out / "vocabularies" / content_id(vocabulary.model_dump(), text.digest)
    if not folder.is_dir():
        logger.info("training a vocabulary of %s pieces", f"{vocabulary.size:,}")
        documents = read_corpus(*text[:2])
        texts = (paragraph for document in documents for paragraph in document.paragraphs)
        if vocabulary.kind == "bpe":
            train_byte_bpe(texts, folder, vocabulary.size)
        elif vocabulary.kind == "wordpiece":
            train_wordpiece(texts, folder, vocabulary.size, lower_case=vocabulary.lower_case)
        else:
            train_vocabulary(texts, folder, vocabulary.size, lower_case=vocabulary.lower_case)
    return Tokenizer.load(folder)


def _records(out, text: Text, tokenizer, config: PretrainingDataConfig, workers):
    # "sop" is the default of pairs: the same records, whether it is given or not.
    settings = config.model_dump() | {"objective": config.label_objective}
    folder = out / "records" / content_id(settings, tokenizer.digest, text.digest)
    if not (folder / INFO_FILE).is_file():
        result = build_records(text.sources, tokenizer, folder, config, text.format, workers)
        logger.info("%s: %s records", folder, f"{result.info.num_records:,}")
    return folder


def fingerprint_of(records: Path) -> str:
    """Returns the fingerprint of a folder of records."""
    return DatasetInfo.load(records).fingerprint
