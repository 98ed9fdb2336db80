"""The result of a build: its info file, or why it has no records."""

from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import NamedTuple

from data_pipeline.building.encoding import corpus_digest, range_digest
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.records.dataset_info import DatasetInfo


class BuildResult(NamedTuple):
    """The result of a build."""

    path: Path | str  # the folder of records; a str if it has a scheme
    info: DatasetInfo
    seconds: float
    shards_reused: int  # shards that an earlier attempt had finished


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
        and PretrainingDataConfig(**info.config) == config  # older ones lack some settings
        and info.corpus_digest == corpus_digest(map(range_digest, ranges))
    )
