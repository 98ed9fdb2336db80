"""Records of other programs: what they call their features, and what their labels mean.

All of them write uncompressed or gzip TFRecord files of `tf.train.Example`, lists of fixed length
and the names of google-research/bert; only what is different stands in the table.

Source:
    `create_pretraining_data.py` of google-research/albert, google-research/bert, tensorflow/models
    (`official/nlp/data`, beside `pretrain_dataloader.py`) and NVIDIA/DeepLearningExamples
    (`TensorFlow/LanguageModeling/BERT/utils` and `TensorFlow2/LanguageModeling/BERT`).
"""

import gzip
import zlib
from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.records.schema import PRETRAINING_FEATURES

#: What a label of 1 says of the second segment, by objective.
LABELS = {"sop": "the two are swapped", "nsp": "the second is from elsewhere", "none": "nothing"}

_GZIP = b"\x1f\x8b\x08"
#: Bytes read at a time, and how many may come out for each that went in: records hold much padding,
#: but a small file that fills a disk is no file of records.
_BLOCK, _LARGEST_RATIO = 1 << 20, 200


class Writer(NamedTuple):
    """A program that writes records.

    Attributes:
        name: str. What people call it.
        renamed: dict of str to str. Our name of a feature -> its own, where they differ.
        marks: tuple of str. Features that only its records have.
        objective: str. What its label of 1 means: "sop" swapped, "nsp" a random second segment.
    """

    name: str
    renamed: dict[str, str]
    marks: tuple[str, ...]
    objective: str


#: The first whose features are all there is taken.
WRITERS = (
    Writer("google-research/albert", {}, ("token_boundary",), "sop"),
    Writer(
        "tensorflow/models (use_v2_feature_names)",
        {"input_ids": "input_word_ids", "segment_ids": "input_type_ids"},
        (),
        "nsp",
    ),
    Writer("google-research/bert, tensorflow/models or NVIDIA", {}, (), "nsp"),
)


def find_writer(features) -> Writer:
    """Tells by the names of a record's features (dict as of `decode_instance`) who wrote it.

    Raises:
        InputError: If nobody of the table did.
    """
    for writer in WRITERS:
        if features.keys() >= set(_names(writer)) | set(writer.marks):
            return writer
    listing = ", ".join(sorted(features)) or "none"
    wanted = ", ".join(_names(WRITERS[-1]))
    raise InputError(f"Records should have the features {wanted}. Received: {listing}.")


def is_gzip(path):
    """Tells whether a file (Path) is compressed; no record is as long as these bytes would say."""
    with open(path, "rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def unpack(path, target):
    """Writes what is in a gzip file.

    Args:
        path: Path. The file.
        target: Path. The file to write.

    Raises:
        InputError: If it is damaged, or holds 200 times its size and more.
    """
    most, written = _LARGEST_RATIO * path.stat().st_size + _BLOCK, 0
    try:
        with gzip.open(path) as packed, open(target, "wb") as file:
            while block := packed.read(_BLOCK):
                written += len(block)
                if written > most:
                    raise InputError(
                        f"`{path}` should hold at most {_LARGEST_RATIO} times its size. It does "
                        "not: these are no records."
                    )
                file.write(block)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"`{path}` is damaged: {error}.") from error


def _names(writer):
    required = [name for name, feature in PRETRAINING_FEATURES.items() if feature.required]
    return [writer.renamed.get(name, name) for name in required]
