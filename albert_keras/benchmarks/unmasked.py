"""A copy of some records without their masks, as a build with `static_masks=false` writes them."""

import shutil
from pathlib import Path

import numpy as np

from data_pipeline.files import sha256_of
from data_pipeline.instances.masking import unmask
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER, ShardInfo
from data_pipeline.records.examples import decode_instance, encode_instances
from data_pipeline.records.record_files import RecordWriter, index_path, write_index
from data_pipeline.records.schema import PRETRAINING_FEATURES

_BATCH = 256
_NAME = "unmasked-00000-of-00001.tfrecord"


def copy_unmasked(records, folder, count):
    """Writes the first records of a folder into another one, their text restored.

    Args:
        records: RecordFiles, with tokenizer.
        folder: str or Path. An empty folder.
        count: int. How many records at most.

    Returns:
        Path of the folder.
    """
    folder, count = Path(folder), min(count, len(records))
    path = folder / _NAME
    with RecordWriter(path) as writer:
        for begin in range(0, count, _BATCH):
            numbers = np.arange(begin, min(begin + _BATCH, count))
            decoded = [decode_instance(record) for record in records.read(numbers)]
            writer.write(encode_instances(_without_masks(decoded)))
    write_index(index_path(path), writer.offsets)
    shard = ShardInfo(
        file=_NAME,
        num_records=writer.num_records,
        num_bytes=writer.num_bytes,
        sha256=writer.sha256,
        index_sha256=sha256_of(index_path(path)),
    )
    shutil.copytree(records.folder / TOKENIZER_FOLDER, folder / TOKENIZER_FOLDER)
    config = records.info.config | {"static_masks": False}
    records.info.replace(shards=(shard,), config=config).save(folder)
    return folder


def _without_masks(decoded):
    features = {
        name: np.stack([example[name] for example in decoded])
        for name in PRETRAINING_FEATURES
        if name in decoded[0]
    }
    masks = [name for name in features if name.startswith("masked_lm_")]
    features["input_ids"] = unmask(features["input_ids"], *map(features.get, masks))
    return features | {name: np.zeros_like(features[name]) for name in masks}
