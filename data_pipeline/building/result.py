"""What a build comes to: its info file, why there is none, or that it was made before."""

from pathlib import Path
from typing import NamedTuple

from data_pipeline.building.folder import builder_version
from data_pipeline.building.parts import corpus_digest, range_digest
from data_pipeline.records.dataset_info import DatasetInfo


class BuildResult(NamedTuple):
    """What a build made.

    Attributes:
        path: Path, or str with a scheme. The folder of records.
        info: DatasetInfo.
        seconds: float.
        shards_reused: int. Shards that an earlier attempt had finished.
    """

    path: Path | str
    info: DatasetInfo
    seconds: float
    shards_reused: int


def info_of(shards, counts, contents, tokenizer, config):
    """Puts together the info file of a build.

    Args:
        shards: iterable of ShardInfo, in their order.
        counts: dict. What was counted in the whole build.
        contents: iterable of str, digests of all ranges of the corpus; or None if it does not come
            from files.
        tokenizer: Tokenizer.
        config: PretrainingDataConfig.

    Returns:
        DatasetInfo.
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


def lack_of(counts, config):
    """Says why a build makes no record.

    Args:
        counts: Counter. What was counted in the whole build.
        config: PretrainingDataConfig.

    Returns:
        str, or None if there are records.
    """
    if not counts["documents"]:
        return "The corpus is empty: it holds no sentence."
    if not counts["instances"]:
        return (
            "The corpus yields no record: nothing in it makes a sequence. "
            f"Received: {counts['documents']} documents, {counts['sentences']} sentences, "
            f"single_sentence_policy={config.single_sentence_policy!r}."
        )
    return None


def is_result_of(info, ranges, tokenizer, config):
    """Tells whether an info file is that of the same corpus, tokenizer, settings and program.

    Args:
        info: DatasetInfo.
        ranges: iterable of TextRange. The corpus; it is read only if all else is the same.
        tokenizer: Tokenizer.
        config: PretrainingDataConfig.

    Returns:
        bool.

    Raises:
        InputError: If the corpus cannot be read.
    """
    return (
        info.tokenizer_digest == tokenizer.digest
        and info.builder_version == builder_version()
        and info.config == config.model_dump()
        and info.corpus_digest == corpus_digest(map(range_digest, ranges))
    )
