"""The info file that makes a folder of record files a dataset.

The folder contains shards, an index of offsets beside each, a copy of the tokenizer, and
`dataset_info.json`, which is written last: a folder without it is an unfinished build.
"""

import hashlib
from pathlib import Path

from pydantic import Field

from data_pipeline.config import LONGEST_RECORD
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import write_json
from data_pipeline.limits import MAX_LONG_INTEGER, reading_json, with_digest
from data_pipeline.settings import Settings, SettingsError

INFO_FILE = "dataset_info.json"


class ShardInfo(Settings):
    """One record file: its name in the folder, and what it contains."""

    file: str
    num_records: int = Field(ge=0, le=MAX_LONG_INTEGER)
    num_bytes: int = Field(ge=0, le=MAX_LONG_INTEGER)
    sha256: str  # hex digest of the file
    index_sha256: str  # hex digest of the index beside it

    @classmethod
    def of(cls, file: str, offsets, sha256: str, index_sha256: str) -> "ShardInfo":
        """Describes a record file with the `offsets` of `RecordWriter`."""
        return cls(
            file=file,
            num_records=len(offsets) - 1,
            num_bytes=int(offsets[-1]),
            sha256=sha256,
            index_sha256=index_sha256,
        )


class DatasetInfo(Settings):
    """The properties of a folder of records, stored as `dataset_info.json`."""

    format_version: int = 1
    max_seq_length: int = Field(ge=1, le=LONGEST_RECORD)  # S, which no record file states
    max_predictions_per_seq: int = Field(ge=1)  # P, which no record file states
    vocab_size: int = Field(ge=1)
    tokenizer_digest: str
    #: Meaning of `next_sentence_labels` = 1: "sop" swapped, "nsp" random, "none" that there is
    #: nothing to predict.
    objective: str = "sop"
    shards: tuple[ShardInfo, ...]
    statistics: dict = Field(default_factory=dict)  # counts collected by the build
    config: dict = Field(default_factory=dict)  # PretrainingDataConfig of the build
    corpus_digest: str | None = None  # hash of all bytes of the corpus, if it came from files
    builder_version: str | None = None  # version of the program that made the records

    @property
    def num_records(self) -> int:
        """int. Records in all shards."""
        return sum(shard.num_records for shard in self.shards)

    @property
    def static_masks(self) -> bool:
        """bool. Whether the records contain masks; if not, a reader has to sample them."""
        return self.config.get("static_masks", True)

    @property
    def fingerprint(self) -> str:
        """str. Identifies the dataset: the digest of the shards' digests and of S and P."""
        parts = [shard.sha256 for shard in self.shards]
        parts += [str(self.max_seq_length), str(self.max_predictions_per_seq)]
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()

    def save(self, folder: str | Path) -> None:
        """Writes `dataset_info.json`, which must be the last file to be written."""
        write_json(Path(folder) / INFO_FILE, with_digest(self.model_dump(mode="json")))

    @classmethod
    def read(cls, folder: str | Path) -> "DatasetInfo":
        """Reads the info file of a folder without checking that the files it names exist.

        Raises:
            InputError: If the folder or the file does not exist, or the file is damaged.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise InputError(
                f"`{folder}` does not exist or is not a folder of records.", Mistake.NOT_RECORDS
            )
        path = folder / INFO_FILE
        if not path.is_file():
            raise InputError(
                f"`{folder}` has no {INFO_FILE}: its build did not finish. Build it with "
                "`albert-keras data build`.",
                Mistake.UNFINISHED_RECORDS,
            )
        with reading_json(path, "Copy or build the folder again.") as values:
            try:
                return cls(**values)
            except SettingsError as error:
                raise InputError(f"`{path}` is damaged: {error}") from error

    @classmethod
    def load(cls, folder: str | Path) -> "DatasetInfo":
        """Reads the info file of a folder and checks the sizes of the shards that it names.

        Raises:
            InputError: If the folder or the file does not exist or is damaged, or a shard is
                missing or has another size than when it was written.
        """
        info = cls.read(folder)
        for shard in info.shards:
            file = Path(folder) / shard.file
            if not file.is_file():
                raise InputError(f"`{file}` does not exist, but {INFO_FILE} lists it.")
            if file.stat().st_size != shard.num_bytes:
                raise InputError(
                    f"`{file}` must have {shard.num_bytes} bytes according to {INFO_FILE}. "
                    f"Received: {file.stat().st_size}. Copy or build it again."
                )
        return info
