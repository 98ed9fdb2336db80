"""The info file that makes a folder of record files a data set.

The folder holds shards, an index of offsets beside each, a copy of the tokenizer, and
`dataset_info.json`, which is written last: a folder without it is an unfinished build.
"""

import hashlib
import json
from pathlib import Path

from pydantic import Field, ValidationError

from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.settings import Settings, SettingsError

INFO_FILE = "dataset_info.json"
TOKENIZER_FOLDER = "tokenizer"


class ShardInfo(Settings):
    """One record file: its name in the folder, and what it must hold.

    Attributes:
        file: str.
        num_records: int.
        num_bytes: int.
        sha256: str. Hex digest of the file.
        index_sha256: str or None. Hex digest of the offsets beside it; None if there are none.
    """

    file: str
    num_records: int = Field(ge=0)
    num_bytes: int = Field(ge=0)
    sha256: str
    index_sha256: str | None = None


class DatasetInfo(Settings):
    """What a reader must know of a folder of records, stored as `dataset_info.json`.

    Attributes:
        format_version: int.
        max_seq_length, max_predictions_per_seq: int. S and P; the files themselves do not tell.
        vocab_size: int.
        tokenizer_digest: str or None. Digest of the tokenizer; None for foreign records.
        objective: str. What `next_sentence_labels` = 1 means: "sop" swapped, "nsp" random, "none"
            that there is nothing to predict.
        shards: tuple of ShardInfo.
        statistics: dict. Counts made while building.
        config: dict. The PretrainingDataConfig that made the records; empty for foreign ones.
        corpus_digest: str or None. Hash of all bytes of the corpus, if it came from files.
        builder_version: str or None. Version of the program that made the records.
        feature_names: dict of str to str. What those features are called in the files that do not
            have our name there, see `foreign_records`.
    """

    format_version: int = 1
    max_seq_length: int = Field(ge=1)
    max_predictions_per_seq: int = Field(ge=1)
    vocab_size: int = Field(ge=1)
    tokenizer_digest: str | None = None
    objective: str = "sop"
    shards: tuple[ShardInfo, ...]
    statistics: dict = Field(default_factory=dict)
    config: dict = Field(default_factory=dict)
    corpus_digest: str | None = None
    builder_version: str | None = None
    feature_names: dict[str, str] = Field(default_factory=dict)

    @property
    def num_records(self):
        """int. Records in all shards."""
        return sum(shard.num_records for shard in self.shards)

    @property
    def static_masks(self):
        """bool. Whether the records hold masks; if not, a reader has to draw them."""
        return self.config.get("static_masks", True)

    @property
    def fingerprint(self):
        """str. Tells data sets apart: the digest of the shards' digests and of S and P."""
        named = [shard.sha256 for shard in self.shards]
        named += [str(self.max_seq_length), str(self.max_predictions_per_seq)]
        return hashlib.sha256("\n".join(named).encode()).hexdigest()

    def with_our_names(self, features):
        """Returns the features of a record (dict) by the names of `PRETRAINING_FEATURES`."""
        if not self.feature_names:
            return features
        ours = {theirs: name for name, theirs in self.feature_names.items()}
        return {ours.get(name, name): values for name, values in features.items()}

    def save(self, folder):
        """Writes `dataset_info.json`; do it last.

        Its last entry, `digest`, is the sha256 of the file without that entry.
        """
        content = self.model_dump_json(indent=2) + "\n"
        digest = hashlib.sha256(content.encode()).hexdigest()
        content = content.removesuffix("\n}\n") + _digest_entry(digest) + "\n}\n"
        with whole_file(Path(folder) / INFO_FILE) as temporary:
            temporary.write_text(content, encoding="utf-8", newline="")

    @classmethod
    def read(cls, folder):
        """Reads the info file of a folder, whatever has become of the files it names.

        Raises:
            InputError: If the folder or the file is missing, or the file is damaged.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise InputError(f"There is no folder of records at `{folder}`.")
        path = folder / INFO_FILE
        if not path.is_file():
            raise InputError(
                f"`{folder}` has no {INFO_FILE}: its build did not finish, or it was made by "
                "another program. Build it with `albert-keras data build`, or for records of "
                "other programs write the file with `albert-keras data adopt`."
            )
        content = path.read_bytes()
        try:
            values = dict(json.loads(content))
            digest = values.pop("digest", None)  # files of an earlier version have none
            info = cls(**values)
        except (ValueError, TypeError, ValidationError, SettingsError) as error:
            raise InputError(f"`{path}` is damaged: {error}") from error
        if digest is not None:
            covered = content.replace(_digest_entry(digest).encode(), b"")
            if hashlib.sha256(covered).hexdigest() != digest:
                raise InputError(
                    f"`{path}` is damaged or was changed by hand: its content should have the "
                    f"`digest` that it ends with. Received: {digest}."
                )
        return info

    @classmethod
    def load(cls, folder):
        """Reads the info file of a folder and checks that the shards it names are all there.

        Raises:
            InputError: If the folder or the file is missing or damaged, or a shard is missing,
                cut or longer than it was when written.
        """
        info, folder = cls.read(folder), Path(folder)
        for shard in info.shards:
            file = folder / shard.file
            if not file.is_file():
                raise InputError(f"`{file}` is missing, though {INFO_FILE} lists it.")
            if file.stat().st_size != shard.num_bytes:
                raise InputError(
                    f"`{file}` should have {shard.num_bytes} bytes by {INFO_FILE}. "
                    f"Received: {file.stat().st_size}. Copy or build it again."
                )
        return info


def _digest_entry(digest):
    return f',\n  "digest": "{digest}"'
