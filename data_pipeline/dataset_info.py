"""Instances ↔ `tf.train.Example` in TFRecord files, and the info file that makes them a data set.

A folder of records holds shards, a copy of the tokenizer, and `dataset_info.json`, which is written
last: a folder without it is an unfinished build.
"""

import hashlib
import json
from pathlib import Path

import tensorflow as tf
from pydantic import Field, ValidationError

from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of, whole_file
from data_pipeline.schema import PRETRAINING_FEATURES, feature_length
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
    """

    file: str
    num_records: int = Field(ge=0)
    num_bytes: int = Field(ge=0)
    sha256: str


class DatasetInfo(Settings):
    """What a reader must know of a folder of records, stored as `dataset_info.json`.

    Attributes:
        format_version: int.
        max_seq_length, max_predictions_per_seq: int. S and P; the files themselves do not tell.
        vocab_size: int.
        tokenizer_digest: str or None. Digest of the tokenizer; None for foreign records.
        objective: str. What `next_sentence_labels` = 1 means: "sop" swapped, "nsp" random.
        shards: tuple of ShardInfo.
        statistics: dict. Counts made while building.
        config: dict. The PretrainingDataConfig that made the records; empty for foreign ones.
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

    @property
    def num_records(self):
        """int. Records in all shards."""
        return sum(shard.num_records for shard in self.shards)

    @property
    def fingerprint(self):
        """str. Tells data sets apart: the digest of the shards' digests and of S and P."""
        named = [shard.sha256 for shard in self.shards]
        named += [str(self.max_seq_length), str(self.max_predictions_per_seq)]
        return hashlib.sha256("\n".join(named).encode()).hexdigest()

    def save(self, folder):
        """Writes `dataset_info.json`; do it last."""
        with whole_file(Path(folder) / INFO_FILE) as temporary:
            temporary.write_text(self.model_dump_json(indent=2) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, folder):
        """Reads the info file of a folder and checks that the shards it names are all there.

        Raises:
            InputError: If the folder or the file is missing or damaged, or a shard is missing,
                cut or longer than it was when written.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise InputError(f"There is no folder of records at `{folder}`.")
        path = folder / INFO_FILE
        if not path.is_file():
            raise InputError(
                f"`{folder}` has no {INFO_FILE}: its build did not finish, or it was made by "
                "another program. Build it with `albert-keras data build`, or for records of "
                "google-research/albert write the file with `albert-keras data adopt`."
            )
        try:
            info = cls(**json.loads(path.read_text(encoding="utf-8")))
        except (ValueError, TypeError, ValidationError, SettingsError) as error:
            raise InputError(f"`{path}` is damaged: {error}") from error
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


def encode_instances(instances):
    """Serialises a batch of instances.

    Args:
        instances: dict of arrays [N, ...] with the names of `PRETRAINING_FEATURES`.

    Returns:
        list of N bytes, each a `tf.train.Example`.
    """
    columns = {name: instances[name].tolist() for name in PRETRAINING_FEATURES}
    return [
        _encode(dict(zip(columns, row, strict=True))) for row in zip(*columns.values(), strict=True)
    ]


def _encode(instance):
    features = {}
    for name, value in instance.items():
        value = value if isinstance(value, list) else [value]
        if PRETRAINING_FEATURES[name].dtype == "int64":
            features[name] = tf.train.Feature(int64_list=tf.train.Int64List(value=value))
        else:
            features[name] = tf.train.Feature(float_list=tf.train.FloatList(value=value))
    example = tf.train.Example(features=tf.train.Features(feature=features))
    return example.SerializeToString(deterministic=True)


def write_shard(path, records):
    """Writes one record file, whole or not at all.

    Args:
        path: Path.
        records: iterable of bytes.

    Returns:
        ShardInfo.
    """
    num_records = 0
    with whole_file(path) as temporary:
        with tf.io.TFRecordWriter(str(temporary)) as writer:
            for record in records:
                writer.write(record)
                num_records += 1
        return describe_shard(temporary, path.name, num_records)


def describe_shard(path, name, num_records):
    """Measures a finished record file: ShardInfo with its size and digest."""
    return ShardInfo(
        file=name,
        num_records=num_records,
        num_bytes=path.stat().st_size,
        sha256=sha256_of(path),
    )


def parsing_schema(max_seq_length, max_predictions_per_seq):
    """Makes the feature description for `tf.io.parse_example`.

    Optional features are left out, so records with and without them parse alike.
    """
    return {
        name: tf.io.FixedLenFeature(
            [feature_length(feature, max_seq_length, max_predictions_per_seq)], feature.dtype
        )
        for name, feature in PRETRAINING_FEATURES.items()
        if feature.required
    }
