"""The folder of a build: what it may contain, who works on it, what is kept, and its result.

Finished shards have their final names; everything else is in `.work/` until the end.
"""

import logging
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from data_pipeline.building.encoding import corpus_digest, range_digest
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import (
    check_output_folder,
    check_writable,
    write_json,
)
from data_pipeline.folder_lock import FolderLock
from data_pipeline.lazy_names import program_version
from data_pipeline.limits import read_json
from data_pipeline.records.dataset_info import INFO_FILE, DatasetInfo
from data_pipeline.records.record_files import index_path
from data_pipeline.tokenizers.tokenization import Tokenizer

logger = logging.getLogger(__name__)

#: Smaller fractions of the text in records cause a warning.
_LEAST_KEPT = 0.97


class BuildResult(NamedTuple):
    """The result of a build."""

    path: Path | str  # the folder of records; a str if it has a scheme
    info: DatasetInfo
    seconds: float
    shards_reused: int  # shards that an earlier attempt had finished

    @property
    def kept_text(self) -> float:
        """float. Fraction of the tokens of the corpus that the records contain, at most 1."""
        counts = self.info.statistics
        return min(1.0, counts["kept_pieces"] / counts["pieces"] / self.info.config["copies"])


def warn_of_lost_text(result: BuildResult) -> BuildResult:
    """Logs a warning if records lack more than 3 % of the text of their corpus; returns them."""
    if result.kept_text < _LEAST_KEPT:
        logger.warning(
            "The records contain %.1f %% of the tokens of the corpus.", 100 * result.kept_text
        )
    return result


def info_of(parts, shards, tokenizer, config, from_files: bool = True) -> DatasetInfo:
    """Describes the result of a build, from all EncodedParts and FinishedShards or equal tuples.

    The digest of a corpus that is not `from_files` is not stored. InputError without any record.
    """
    counts: Counter[str] = Counter()
    for *_, counted in (*parts, *shards):
        counts.update(counted)
    if reason := why_no_records(counts, config):
        raise InputError(reason, Mistake.EMPTY_CORPUS)
    digests = [digest for _, content, _ in parts for digest in content]
    return DatasetInfo(
        max_seq_length=config.max_seq_length,
        max_predictions_per_seq=config.num_predictions,
        vocab_size=tokenizer.vocab_size,
        tokenizer_digest=tokenizer.digest,
        objective=config.label_objective,
        shards=tuple(info for _, info, _ in sorted(shards, key=lambda shard: shard[0])),
        statistics=dict(sorted(counts.items())),
        config=config.model_dump(),
        corpus_digest=corpus_digest(digests) if from_files else None,
        builder_version=program_version(),
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
        and info.builder_version == program_version()
        and PretrainingDataConfig(**info.config) == config
        and info.corpus_digest == corpus_digest(map(range_digest, ranges))
    )


WORK = ".work"
_SETTINGS = "settings.json"


class BuildFolder:
    """A folder in which records are being built, and its folder `work` of temporary files.

    Raises InputError if the folder contains something else or an unfinished build with other
    settings, cannot be written to, or another process is building there.
    """

    def __init__(self, out: Path, config: PretrainingDataConfig, tokenizer: Tokenizer):
        self.out = out
        self.work = out / WORK
        self._settings = {
            "builder_version": program_version(),
            "tokenizer_digest": tokenizer.digest,
            **config.model_dump(mode="json"),
        }
        if not self.work.is_dir() or (self.out / INFO_FILE).exists():
            check_output_folder(self.out)
        check_writable(self.out)
        self._check_settings()
        self._lock = FolderLock(self.out, "is being built", makes_folder=True)
        self._lock.take()
        self.work.mkdir(exist_ok=True)
        self._remove_temporary_files()
        write_json(self.work / _SETTINGS, self._settings, indent=None)

    def remove_other_shards(self, names):
        """Removes the record files of an earlier attempt that this build does not make."""
        kept = {name for shard in names for name in (shard, index_path(shard).name)}
        for path in self.out.glob("pretraining-*"):
            if path.name not in kept:
                path.unlink()

    def finish(self):
        """Removes the temporary files."""
        shutil.rmtree(self.work, ignore_errors=True)
        self._lock.release()

    def abandon(self):
        """Keeps finished parts and shards for the next attempt; removes all if there are none."""
        self._remove_temporary_files()
        if any(self.work.glob("part-*.json")) or any(self.out.glob("pretraining-*")):
            self._lock.release()
        else:
            self.discard()

    def discard(self):
        """Removes everything that the build has created."""
        shutil.rmtree(self.work, ignore_errors=True)
        self.remove_other_shards([])
        self._lock.release()

    def _remove_temporary_files(self):
        for temporary in (*self.out.glob(".*.tmp-*"), *self.work.glob(".*.tmp-*")):
            is_folder = temporary.is_dir() and not temporary.is_symlink()
            shutil.rmtree(temporary) if is_folder else temporary.unlink()

    def _check_settings(self):
        path = self.work / _SETTINGS
        if not path.is_file():
            return
        advice = f"Remove `{self.out}` and repeat the build, or choose another `out`."
        before = read_json(path, advice)
        changed = [name for name, value in self._settings.items() if before.get(name) != value]
        if changed:
            raise InputError(
                f"`{self.out}` contains an unfinished build with another `{'`, `'.join(changed)}`. "
                "Resume it with its own settings, remove the folder, or choose another `out`."
            )
