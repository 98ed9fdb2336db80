"""The records of pre-training as the data of a run."""

import functools
import shutil
from collections.abc import Sequence

import numpy as np

from albert_keras.runs.run_record import check_tokenizer, describe_records
from albert_keras.training.batches import batches_of
from albert_keras.training.config import TrainingConfig
from data_pipeline.config import MaskingConfig
from data_pipeline.errors import InputError
from data_pipeline.reader.reader import (
    evaluation_dataset,
    training_dataset,
    uses_dynamic_masks,
)
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER

#: Records counted by `log_frequencies`: some ten thousand masked tokens, read within a second.
_COUNTED_RECORDS = 2048
_COUNTED_BATCH = 64


class RecordSource:
    """Training data from records, as `Run` and `fit` need it; `ExampleSource` is for fine-tuning.

    `origin` is the description of the initial weights, see `ContinuedPretraining.describe`. The
    source of a stage also knows `steps_before`, the number of steps before the stage, and
    `records_before`, how many records these steps read from the same data set, whose order the
    stage continues. The source of a run with stages has the records of each stage as `stages`.
    """

    #: The kind of run that is trained on it, in `run.json`.
    kind = "pretraining"

    def __init__(
        self,
        records: RecordFiles,
        training: TrainingConfig,
        origin: dict | None = None,
        steps_before: int = 0,
        records_before: int = 0,
        stages: Sequence[RecordFiles] = (),
    ):
        self.records = records
        self.training = training
        self._steps_before, self._records_before = steps_before, records_before
        self._stages = tuple(stages)
        self._origin = origin or {"origin": None, "origin_digest": None}
        self.max_seq_length = records.info.max_seq_length  # S
        self.tokenizer_digest = records.info.tokenizer_digest
        self._tokenizer = records.folder / TOKENIZER_FOLDER

    @property
    def failure(self) -> Exception | None:
        """The error that occurred while records were read."""
        return self.records.failure

    def describe(self) -> dict:
        """Returns the description of the records and the initial weights in `run.json`."""
        described = describe_records(self.records) | self._origin
        if self._stages:
            described["stages"] = [describe_records(records) for records in self._stages]
        return described

    def check_tokenizer(self):
        """Raises InputError if the tokenizer beside the records is missing or another one."""
        repair = "Build the records again, or restore the folder from a copy."
        if not self._tokenizer.is_dir():
            raise InputError(
                f"`{self._tokenizer}`, with which the records were built, is missing: "
                f"the model could not be used without it. {repair}"
            )
        check_tokenizer(self._tokenizer, self.tokenizer_digest, "dataset_info.json", repair)

    def save_tokenizer(self, folder):
        """Copies the tokenizer into an existing folder."""
        for file in self._tokenizer.iterdir():
            shutil.copyfile(file, folder / file.name)

    def batches(self, strategy, first_step):
        """Returns the batches of a strategy's replicas from a step on, see `batches_of`."""
        return batches_of(strategy, self.training, functools.partial(self.read, first_step))

    def read(self, first_step: int, **part):
        """Returns a part of the batches from a step on, see `training_dataset`."""
        training = self.training
        return training_dataset(
            self.records,
            training.batch_size,
            seed=training.seed,
            first_step=first_step - self._steps_before,
            skipped=self._records_before,
            masks=training.masks,
            masking=dynamic_masking(self.records, training),
            **part,
        )

    @property
    def positions_per_step(self) -> int:
        """Positions that a step trains on, padding included."""
        return self.training.batch_size * self.max_seq_length


def dynamic_masking(records: RecordFiles, training: TrainingConfig) -> MaskingConfig | None:
    """Returns the settings of dynamic masks if the training changes the records' settings.

    Raises:
        InputError: If the training changes them and the masks are static, or if the records have
            no room for so many predictions.
    """
    if training.mask_rate is None:
        return None
    if not uses_dynamic_masks(records, training.masks):
        raise InputError(
            f"`training.mask_rate` requires dynamic masks. Received: static masks in "
            f"`{records.folder}`. Use `masks=dynamic`."
        )
    info = records.info
    masking = MaskingConfig(**info.config.get("masking", {}))
    masking = masking.replace(masked_lm_prob=training.mask_rate)
    needed = round(masking.masked_lm_prob * info.max_seq_length)
    if needed > info.max_predictions_per_seq:
        raise InputError(
            f"`training.mask_rate` {masking.masked_lm_prob:g} of {info.max_seq_length} tokens are "
            f"{needed} predictions, and the records of `{records.folder}` have room for "
            f"{info.max_predictions_per_seq}. Lower the rate, or build the records with "
            f"`max_predictions_per_seq={needed}`."
        )
    return masking


def log_frequencies(records):
    """Estimates the natural logarithm of each piece's frequency among masked tokens, float32 [V].

    It is the initial output bias of the masked-LM head. Records (RecordFiles) are in random order,
    so the first ones are a fair sample. One is added to the count of each piece.
    """
    counts = np.ones(records.info.vocab_size, np.int64)
    dataset = evaluation_dataset(records, _COUNTED_BATCH).take(_COUNTED_RECORDS // _COUNTED_BATCH)
    with records.failures_named():
        for batch in dataset.as_numpy_iterator():
            real = (batch["masked_lm_weights"] * batch["example_weights"][:, None]) > 0
            counts += np.bincount(batch["masked_lm_ids"][real], minlength=len(counts))
    return np.log(counts / counts.sum()).astype(np.float32)
