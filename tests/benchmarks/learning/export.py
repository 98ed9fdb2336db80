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
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.benchmarks.learning.batches import HELD_OUT, TRAINING

logger = logging.getLogger(__name__)


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
            "Build the records again."
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
        for name, source, features in (
            ("training", records, TRAINING),
            ("held_out", held_out, HELD_OUT),
        ):
            batches = list(_batches(source, features))
            for feature in features:
                array = np.concatenate([batch[feature] for batch in batches])
                np.save(temporary / f"{name}-{feature}.npy", array)
        (temporary / "vocabulary.json").write_text(json.dumps(vocabulary), encoding="utf-8")


def _batches(records, features):
    """Yields features of all records, without masks if only those of the training are wanted."""
    for batch in evaluation_dataset(records, 64).as_numpy_iterator():
        if features is TRAINING:
            batch["input_ids"] = unmask(*(batch[name] for name in MASKED_FEATURES))
        real = batch["example_weights"] > 0
        yield {name: batch[name][real] for name in features}
