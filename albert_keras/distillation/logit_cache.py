"""The teacher's most probable pieces on disk, so that several students need not run it again.

cache.json    what the cache was computed from, and the digests of the two files
logits.npy    float32 [N, P, K], the largest logits of each prediction, in descending order
pieces.npy    uint16 or uint32 [N, P, K], the pieces that they belong to

With masks that are stored in the records, row n belongs to record n. With dynamic masks, which
differ in each epoch, it belongs to record n of the training: as order and masks are pure functions
of the seed, these are the records that each training with this seed reads. The logits are computed
in float32.
"""

import errno
import functools
import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from albert_keras.distillation.config import DistillationConfig
from albert_keras.distillation.student import CACHED_LOGITS, CACHED_PIECES, signals_of
from albert_keras.training.record_source import RecordSource, dynamic_masking
from data_pipeline.array_files import map_array
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, sha256_of, whole_folder
from data_pipeline.limits import reading_json
from data_pipeline.progress import CountedProgress
from data_pipeline.reader.reader import (
    evaluation_dataset,
    training_dataset,
    training_numbers,
    uses_dynamic_masks,
)
from data_pipeline.records.record_folder import RecordFiles

logger = logging.getLogger(__name__)

_RECORD, _LOGITS, _PIECES = "cache.json", "logits.npy", "pieces.npy"
_BATCH_SIZE = 64


class LogitCache:
    """A cache on disk, see above."""

    def __init__(self, folder: Path, by_record: bool):
        self.by_record = by_record
        self._logits, self._pieces = (map_array(folder / name) for name in (_LOGITS, _PIECES))

    def read(self, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns logits, float32 [B, P, K], and pieces, int32 [B, P, K], of rows, int64 [B]."""
        return self._logits[rows], self._pieces[rows].astype(np.int32)

    def __len__(self):
        return len(self._logits)

    @property
    def shape(self) -> tuple[int, ...]:
        """tuple of int. Of the values of one row: P, K."""
        return self._logits.shape[1:]


class CachedSource(RecordSource):
    """Records whose batches contain the logits of a cache; further arguments as in RecordSource."""

    def __init__(self, *args, cache: LogitCache, **kwargs):
        super().__init__(*args, **kwargs)
        self._cache = cache

    def read(self, first_step, worker=(0, 1), replicas=1):
        batches = super().read(first_step, worker=worker, replicas=replicas)
        (index, count), size = worker, self.training.batch_size
        part = slice(index * size // count, (index + 1) * size // count)
        types = {CACHED_LOGITS: tf.float32, CACHED_PIECES: tf.int32}

        def logits_of(step):
            values = tf.numpy_function(
                lambda step: self._cache.read(self._rows(int(step))[part]),
                [step],
                list(types.values()),
            )
            shape = [replicas, size // count // replicas, *self._cache.shape]
            return {
                name: tf.reshape(value, shape) for name, value in zip(types, values, strict=True)
            }

        steps = tf.data.Dataset.range(first_step, np.iinfo(np.int64).max)
        logits = steps.map(logits_of, num_parallel_calls=2, deterministic=True).unbatch()
        both = tf.data.Dataset.zip((batches, logits)).map(lambda batch, more: batch | more)
        options = tf.data.Options()
        options.autotune.enabled = False  # as in `data_pipeline/reader/reader.py`
        policy = tf.data.experimental.AutoShardPolicy.DATA
        options.experimental_distribute.auto_shard_policy = policy
        both = both.with_options(options).prefetch(4 * replicas)
        return both.apply(tf.data.experimental.assert_cardinality(tf.data.INFINITE_CARDINALITY))

    def _rows(self, step):
        size = self.training.batch_size
        if self._cache.by_record:
            return training_numbers(step, size, len(self.records), self.training.seed)
        rows = np.arange(step * size, (step + 1) * size)
        return np.minimum(rows, len(self._cache) - 1)  # steps after the last one are read ahead


def open_or_write(
    folder: str | Path, teacher: Any, records: RecordFiles, config: DistillationConfig
) -> LogitCache:
    """Opens a cache, or computes and writes it if it does not exist; it appears whole or not.

    Args:
        teacher: Teacher.
        config: DistillationConfig. With a value for `distillation.top_k`.

    Raises:
        InputError: If the cache was computed from something else, or is damaged; or if it is to
            be written and the length of the training is unknown.
    """
    folder, training = Path(folder), config.training
    is_dynamic = uses_dynamic_masks(records, training.masks)
    wanted = {
        "teacher_digest": teacher.digest,
        "records_fingerprint": records.info.fingerprint,
        "top_k": config.distillation.top_k,
        "num_rows": len(records),
    }
    if is_dynamic:
        if training.time_budget is not None:
            raise InputError(
                "A run with `training.time_budget` and dynamic masks cannot use --cache-teacher, "
                "because the number of its steps is unknown. Received: "
                f"{training.time_budget}. Give --steps instead, or build the records with static "
                "masks."
            )
        masking = dynamic_masking(records, training)
        wanted |= {
            "num_rows": training.steps * training.batch_size,
            "seed": training.seed,
            "masking": masking and masking.model_dump(mode="json"),
        }
    if (folder / _RECORD).is_file():
        return _open(folder, wanted, by_record=not is_dynamic)
    check_output_folder(folder, "--cache-teacher")
    if is_dynamic:
        batches = training_dataset(
            records,
            training.batch_size,
            training.seed,
            masks="dynamic",
            masking=dynamic_masking(records, training),
        ).take(training.steps)
    else:
        batches = evaluation_dataset(records, _BATCH_SIZE)
    try:
        _write(folder, teacher, records, batches, wanted)
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
            raise
        # Another worker or process was faster; what it wrote is checked like any other cache.
    return _open(folder, wanted, by_record=not is_dynamic)


def _write(folder, teacher, records, batches, described):
    info, top_k, num_rows = records.info, described["top_k"], described["num_rows"]
    model = teacher.build("float32")
    run = tf.function(functools.partial(signals_of, model, top_k=top_k), reduce_retracing=True)
    progress = CountedProgress(logger, "caching the teacher's logits", num_rows, "records")
    shape = (num_rows, info.max_predictions_per_seq, top_k)
    small = info.vocab_size <= np.iinfo(np.uint16).max + 1
    with whole_folder(folder) as temporary, records.failures_named():
        arrays = [
            np.lib.format.open_memmap(temporary / name, "w+", dtype, shape)
            for name, dtype in ((_LOGITS, np.float32), (_PIECES, np.uint16 if small else np.uint32))
        ]
        row = 0
        for batch in batches:
            signals = run(batch)
            count = min(len(batch["input_ids"]), num_rows - row)  # the last batch is filled up
            for array, values in zip(arrays, signals[:2], strict=True):
                array[row : row + count] = values[:count]
            row += count
            progress.add(count)
        for array in arrays:
            array.flush()
        digests = {name: sha256_of(temporary / name) for name in (_LOGITS, _PIECES)}
        text = json.dumps(described | {"files": digests}, indent=2)
        (temporary / _RECORD).write_text(text + "\n", encoding="utf-8")


def _open(folder, wanted, by_record):
    repair = "Remove the folder to have it written again, or choose another --cache-teacher."
    with reading_json(folder / _RECORD, repair) as found:
        digests = dict(found.pop("files"))
    differences = [
        f"{name}: {found.get(name)!r} in the cache, {wanted.get(name)!r} here"
        for name in sorted(found.keys() | wanted.keys())
        if found.get(name) != wanted.get(name)
    ]
    if differences:
        listing = "\n  ".join(differences)
        raise InputError(
            f"The logits in `{folder}` must come from this teacher, these records and these "
            f"settings. Received:\n  {listing}\n{repair}"
        )
    for name in (_LOGITS, _PIECES):
        if not (folder / name).is_file() or sha256_of(folder / name) != digests.get(name):
            raise InputError(f"`{folder / name}` is missing or was changed. {repair}")
    logger.info("the teacher's logits are read from `%s`", folder)
    return LogitCache(folder, by_record)
