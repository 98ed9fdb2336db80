"""Records → NumPy files, for peers: the token ids of the training, the masks of the scoring."""

import json
import logging
from pathlib import Path

import numpy as np

from data_pipeline.errors import InputError
from data_pipeline.files import whole_folder
from data_pipeline.instances.masking import MASKED_FEATURES, unmask
from data_pipeline.reader.reader import evaluation_dataset
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.decoding import decode_batch
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.benchmarks.learning.batches import HELD_OUT, TRAINING

logger = logging.getLogger(__name__)

_RECORDS_AT_ONCE = 4096


def write_arrays(records: RecordFiles, held_out: RecordFiles, folder: Path):
    """Writes the folder that peers read, unless it exists.

    `training-*.npy` has the unmasked records, `held_out-*.npy` the masked ones exactly as our own
    scoring reads them, and `vocabulary.json` the size and the ids of special tokens.

    Raises:
        InputError: If the records have no tokenizer, which masks need.
    """
    if folder.is_dir():
        return
    if not (records.folder / TOKENIZER_FOLDER).is_dir():
        raise InputError(
            f"`{records.folder}` must contain a tokenizer, with which the peers sample masks. "
            "Adopt the records with `--tokenizer`."
        )
    logger.info("writing %s records as NumPy arrays", f"{len(records):,}")
    tokenizer = Tokenizer.load(records.folder / TOKENIZER_FOLDER)
    special = np.setdiff1d(np.arange(records.info.vocab_size), tokenizer.ordinary_ids)
    vocabulary = {
        "size": records.info.vocab_size,
        "mask_id": tokenizer.mask_id,
        "special_ids": special.tolist(),
    }
    with whole_folder(folder) as temporary:
        _write_training(records, temporary)
        for name, array in _held_out_arrays(held_out).items():
            np.save(temporary / f"held_out-{name}.npy", array)
        (temporary / "vocabulary.json").write_text(json.dumps(vocabulary), encoding="utf-8")


def _write_training(records, folder):
    info, count = records.info, len(records)
    dtypes = dict.fromkeys(TRAINING, np.uint8)
    dtypes["input_ids"] = np.uint16 if info.vocab_size <= 1 << 16 else np.int32
    arrays = {
        name: np.lib.format.open_memmap(
            folder / f"training-{name}.npy", "w+", dtypes[name], (count, info.max_seq_length)
        )
        for name in TRAINING
    }
    for start in range(0, count, _RECORDS_AT_ONCE):
        rows = slice(start, min(start + _RECORDS_AT_ONCE, count))
        numbers = np.arange(rows.start, rows.stop)
        features = decode_batch(
            records.read(numbers),
            info,
            info.static_masks,
            lambda row, start=start: records.name_of(start + row),
        )
        if info.static_masks:
            ids = features["input_ids"]
            unmask(*(features[name] for name in MASKED_FEATURES), out=ids)
        for name, array in arrays.items():
            array[rows] = features[name]
    for array in arrays.values():
        array.flush()


def _held_out_arrays(records):
    batches = []
    for batch in evaluation_dataset(records, 64).as_numpy_iterator():
        real = batch["example_weights"] > 0
        batches.append({name: batch[name][real] for name in HELD_OUT})
    return {name: np.concatenate([batch[name] for batch in batches]) for name in HELD_OUT}
