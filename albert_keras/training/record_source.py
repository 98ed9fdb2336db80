"""Records of pre-training, as what a run learns from."""

import functools
import shutil

from albert_keras.runs.provenance import describe_records
from albert_keras.runs.run_files import check_tokenizer
from albert_keras.training.cost.flops import training_flops
from albert_keras.training.loop.batches import batches_of
from data_pipeline.reader.reader import training_dataset, training_numbers
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER


class RecordSource:
    """What a run, and `fit`, ask of the examples they are given; `ExampleSource` is the other one.

    Args:
        records: RecordFiles.
        training: TrainingConfig.
        origin: dict. What `run.json` keeps of the weights to begin with, see `describe_origin`.
    """

    #: What `run.json` calls a run on them.
    kind = "pretraining"

    def __init__(self, records, training, origin=None):
        self.records = records
        self.training = training
        self._origin = origin or {"origin": None, "origin_digest": None}
        self._tokenizer = records.folder / TOKENIZER_FOLDER

    @property
    def max_seq_length(self):
        """int. Pieces of a record, S."""
        return self.records.info.max_seq_length

    @property
    def tokenizer_digest(self):
        """str, or None if nobody knows what the records were made with."""
        return self.records.info.tokenizer_digest

    @property
    def failure(self):
        """Exception or None. What went wrong while they were read."""
        return self.records.failure

    def describe(self):
        """Returns what `run.json` keeps of them: dict."""
        return describe_records(self.records) | self._origin

    def check_tokenizer(self):
        """Raises InputError if the tokenizer beside them is not the one they were made with."""
        check_tokenizer(
            self._tokenizer,
            self.tokenizer_digest,
            source="dataset_info.json",
            repair="Build the records anew, or restore the folder from a copy.",
        )

    @property
    def has_tokenizer(self):
        """bool. Whether there is one to be copied."""
        return self._tokenizer.is_dir()

    def save_tokenizer(self, folder):
        """Copies the tokenizer into a folder that exists."""
        shutil.copytree(self._tokenizer, folder, dirs_exist_ok=True)

    def numbers(self, step):
        """Returns the numbers of the records seen after so many steps: int64 [B]."""
        training = self.training
        return training_numbers(step, training.batch_size, len(self.records), training.seed)

    def batches(self, strategy, first_step):
        """Returns the batches of a strategy's replicas from a step on, see `batches_of`."""
        training = self.training
        settings = {"seed": training.seed, "first_step": first_step, "masks": training.masks}
        read = functools.partial(training_dataset, self.records, training.batch_size, **settings)
        return batches_of(strategy, training, read)

    def flops(self, model):
        """Counts the useful operations of one step with a model (int)."""
        info = self.records.info
        return training_flops(
            model.config,
            self.training.batch_size,
            info.max_seq_length,
            info.max_predictions_per_seq,
            sentence_head=model.sentence_order_head is not None,
        )
