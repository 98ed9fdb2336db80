"""Records of other programs: the names of their features, and the meaning of their labels.

All of these programs write uncompressed or gzip TFRecord files of `tf.train.Example`, lists of
fixed length and the names of google-research/bert; the table lists only the differences.

Source:
    `create_pretraining_data.py` of google-research/albert, google-research/bert, tensorflow/models
    (`official/nlp/data`, beside `pretrain_dataloader.py`) and NVIDIA/DeepLearningExamples
    (`TensorFlow/LanguageModeling/BERT/utils` and `TensorFlow2/LanguageModeling/BERT`).
"""

import gzip
import zlib
from pathlib import Path
from typing import NamedTuple

from data_pipeline.errors import InputError
from data_pipeline.records.schema import REQUIRED_FEATURES

#: Meaning of a label of 1, by objective.
LABELS = {
    "sop": "the segments are swapped",
    "nsp": "the second segment is from another document",
    "none": "nothing",
}

_GZIP = b"\x1f\x8b\x08"
#: Bytes read at a time, and the largest accepted compression ratio: records have much padding, but
#: a small file that fills a disk is not a file of records.
_BLOCK, _LARGEST_RATIO = 1 << 20, 200


class Writer(NamedTuple):
    """A program that writes records."""

    name: str  # its common name
    renamed: dict[str, str]  # our name of a feature -> its own, where they differ
    marks: tuple[str, ...]  # features that only its records have
    objective: str  # meaning of its label of 1: "sop" swapped, "nsp" a random second segment


#: The first one whose features all exist is taken.
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
    """Finds the program that wrote a record by its features (dict, see `decode_instance`).

    Raises:
        InputError: If no program of the table writes such features.
    """
    for writer in WRITERS:
        names = {writer.renamed.get(name, name) for name in REQUIRED_FEATURES}
        if features.keys() >= {*names, *writer.marks}:
            return writer
    listing = ", ".join(sorted(features)) or "none"
    wanted = ", ".join(REQUIRED_FEATURES)
    raise InputError(f"Records must have the features {wanted}. Received: {listing}.")


def is_gzip(path: Path) -> bool:
    """Returns whether a file is compressed; no record begins with these bytes."""
    with open(path, "rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def unpack(path: Path, target: Path):
    """Decompresses a gzip file.

    Raises InputError if it is damaged, or its content has more than 200 times its size.
    """
    limit, written = _LARGEST_RATIO * path.stat().st_size + _BLOCK, 0
    try:
        with gzip.open(path) as packed, open(target, "wb") as file:
            while block := packed.read(_BLOCK):
                written += len(block)
                if written > limit:
                    raise InputError(
                        f"`{path}` must not decompress to more than {_LARGEST_RATIO} times its "
                        "size, but does: it does not contain records."
                    )
                file.write(block)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"`{path}` is damaged: {error}.") from error
