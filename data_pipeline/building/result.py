"""The result of a build: its info file, or why it has no records."""

import logging
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from data_pipeline.building.encoding import corpus_digest, range_digest
from data_pipeline.config import SINGLE_SEGMENT_FORMATS, PretrainingDataConfig
from data_pipeline.records.dataset_info import DatasetInfo

logger = logging.getLogger(__name__)

#: Smaller fractions of the text in records cause a warning.
_LEAST_KEPT = 0.97
#: Settings of records that earlier versions built, which do not name them.
_EARLIER = {"overflow": "cut"}


class BuildResult(NamedTuple):
    """The result of a build."""

    path: Path | str  # the folder of records; a str if it has a scheme
    info: DatasetInfo
    seconds: float
    shards_reused: int  # shards that an earlier attempt had finished

    @property
    def kept_text(self) -> float | None:
        """float or None. Fraction of the tokens of the corpus that the records contain, at most 1.

        None for records of an earlier version, which do not state it.
        """
        counts = self.info.statistics
        if "kept_pieces" not in counts:
            return None
        return min(1.0, counts["kept_pieces"] / counts["pieces"] / self.info.config["copies"])


def warn_of_lost_text(result: BuildResult) -> BuildResult:
    """Logs a warning if records lack more than 3 % of the text of their corpus; returns them."""
    kept, config = result.kept_text, result.info.config
    if kept is not None and kept < _LEAST_KEPT:
        cause = "`overflow=cut` drops what is longer than a record"
        if config["overflow"] == "carry" or config["input_format"] in SINGLE_SEGMENT_FORMATS:
            cause = "documents of a single word, or of one sentence if these are skipped, have none"
        logger.warning(
            "The records contain %.1f %% of the tokens of the corpus: %s.", 100 * kept, cause
        )
    return result


def builder_version() -> str:
    """Returns the version of this program, or "unknown" if it is not installed."""
    try:
        return version("albert-keras")
    except PackageNotFoundError:
        return "unknown"


def info_of(shards, counts, contents, tokenizer, config) -> DatasetInfo:
    """Describes the result of a build; `contents` are the digests of the ranges of its corpus.

    They are None if the corpus does not come from files.
    """
    return DatasetInfo(
        max_seq_length=config.max_seq_length,
        max_predictions_per_seq=config.num_predictions,
        vocab_size=tokenizer.vocab_size,
        tokenizer_digest=tokenizer.digest,
        objective=config.label_objective,
        shards=tuple(shards),
        statistics=dict(sorted(counts.items())),
        config=config.model_dump(),
        corpus_digest=None if contents is None else corpus_digest(contents),
        builder_version=builder_version(),
    )


def why_no_records(counts, config) -> str | None:
    """Returns the reason why a build with these statistics has no records, or None if it has."""
    if not counts["documents"]:
        return "The corpus is empty: it contains no sentence."
    if not counts["instances"]:
        return (
            "The corpus yields no record: no sequence can be built from its sentences. "
            f"Received: {counts['documents']} documents, {counts['sentences']} sentences, "
            f"single_sentence_policy={config.single_sentence_policy!r}."
        )
    return None


def is_result_of(info, ranges, tokenizer, config) -> bool:
    """Returns whether an info file belongs to this corpus, tokenizer, configuration and program.

    The ranges of the corpus are only read if all else is the same.
    """
    return (
        info.tokenizer_digest == tokenizer.digest
        and info.builder_version == builder_version()
        and PretrainingDataConfig(**_EARLIER | info.config) == config
        and info.corpus_digest == corpus_digest(map(range_digest, ranges))
    )
