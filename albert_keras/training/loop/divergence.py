"""The end of a run whose updates are all left out: saved, with the records it fell over."""

import json
import logging

from tensorflow import keras

from data_pipeline.files import whole_file

logger = logging.getLogger(__name__)

#: Updates left out one after the other that end a run.
MAX_SKIPPED_IN_ROW = 10


class StopWhenDiverged(keras.callbacks.Callback):
    """Ends `fit` after ten updates in a row that were not finite, or spikes.

    Put it before `SaveCheckpoints`: what is saved holds the weights from before the first of them.

    Args:
        folder: Path. Of the run; `diverged.json` in it lists steps and records.
        saving: SaveCheckpoints. Saves when this ends the run.
        first_step: int. Steps done before this `fit`.
        numbers_of: callable. The numbers of the records of a step (int array), given the steps
            done before it.
        already: int. Updates left out in a row before this `fit`; they do not end it.
        writes: bool. Whether this worker writes files.

    Attributes:
        numbers: list of int or None. Records of the last batch, once the run has diverged.
    """

    def __init__(self, folder, saving, first_step, numbers_of, already=0, writes=True):
        super().__init__()
        self.folder, self.saving, self.writes = folder, saving, writes
        self.first_step, self.numbers_of, self.already = first_step, numbers_of, already
        self.numbers = None

    def on_train_batch_end(self, batch, logs=None):
        skipped = int(logs["skipped_in_row"])
        if skipped == 0:
            self.already = 0
        if skipped - self.already < MAX_SKIPPED_IN_ROW:
            return
        step = self.first_step + batch + 1
        batches = [
            {"step": number + 1, "records": [int(record) for record in self.numbers_of(number)]}
            for number in range(step - MAX_SKIPPED_IN_ROW, step)
        ]
        self.numbers = batches[-1]["records"]
        if self.writes:
            with whole_file(self.folder / "diverged.json") as temporary:
                temporary.write_text(json.dumps(batches) + "\n", encoding="utf-8")
        self.saving.ask_to_stop()
