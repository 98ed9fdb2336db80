"""What else is traced: a step of fine-tuning to a kind of task, or the computing of its answers."""

import functools
from typing import Literal

from albert_keras.finetuning.config import FinetuneConfig
from albert_keras.finetuning.step import build_step
from albert_keras.tasks.build import build_task
from albert_keras.tasks.kinds import KINDS
from albert_keras.tpu_check.program import Program
from data_pipeline.settings import Rule

_OPTIONS = 4


class TaskProgram(Program):
    """One step of fine-tuning, or what `RowPredictor` has a device compute.

    Attributes:
        kind: str. One of `KINDS`.
        predicts: bool. Whether answers are computed; nothing is learnt then.
        batch: int. Rows per replica; of choice, each has four sequences.
    """

    kind: Literal[tuple(KINDS)]
    predicts: bool = False

    rules = Program.rules + (
        Rule(
            ("accumulation", "predicts"),
            lambda accumulation, predicts: accumulation == 1 or not predicts,
            "should be left out: where nothing is learnt, nothing is accumulated",
        ),
        Rule(
            ("recompute", "predicts"),
            lambda recompute, predicts: not (recompute and predicts),
            "should be left out: where nothing is learnt, nothing is kept",
        ),
    )

    @property
    def about(self):
        return (self.kind, "predicting") if self.predicts else (self.kind,)

    def config(self):
        """Returns the FinetuneConfig of the run that would make this step.

        Raises:
            InputError: If a value is not valid.
        """
        length = self.sequence_length
        # Short rows have no room for a usual question.
        windows = {"max_query_length": min(64, length // 4), "doc_stride": min(128, length // 2)}
        rows = self.batch * self.replicas
        training = {
            "steps": 1000,
            "batch_size": rows,
            "strategy": "tpu",
            "accumulation_steps": self.accumulation,
            "recompute": self.recompute,
        }
        task = KINDS[self.kind].check_task | windows | {"max_seq_length": length}
        config = FinetuneConfig.of({"task": task, "training": training})
        hidden_size = self.albert_config().hidden_size
        return config.resolved(build_task(config.task), hidden_size, rows, self.precision)

    def replica_function(self):
        config = self.config()
        step = build_step(config, self.albert_config(), build_task(config.task))
        return functools.partial(step.model, training=False) if self.predicts else step.train_step

    def features(self):
        """Tells what a replica gets, as `Features.batch` lays it out; see `Program.features`."""
        pieces = (self.batch, self.sequence_length)
        if KINDS[self.kind].has_options:
            pieces = (self.batch, _OPTIONS, self.sequence_length)
        names = ["input_ids", "input_mask", "segment_ids"]
        if KINDS[self.kind].finds_spans:
            names.append("p_mask")
        shapes = {name: ("int32", pieces) for name in names}
        if self.predicts:
            return shapes
        for name, dtype in KINDS[self.kind].targets.items():
            shapes[name] = (dtype, pieces if name == "tag_ids" else (self.batch,))
        return shapes | {"example_weights": ("float32", (self.batch,))}


def program_of(fields):
    """Returns the TaskProgram of fields (dict) that tell a `kind`, else the Program."""
    return TaskProgram(**fields) if "kind" in fields else Program(**fields)
