"""What is traced: a step of pre-training or fine-tuning, or a prediction, with one batch shape."""

import functools
from collections.abc import Callable
from typing import Literal

import numpy as np
from pydantic import Field, PositiveInt

from albert_keras import load_tokenizer
from albert_keras.config import AlbertConfig
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.kinds import KINDS, build_task
from albert_keras.tasks.train_seed import build_trained as build_task_step
from albert_keras.training.build import build_pretraining
from albert_keras.training.config import PretrainingConfig
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.records.examples import PRETRAINING_FEATURES, feature_length
from data_pipeline.settings import Rule, Settings
from tests.albert_keras.tasks.small_tasks import SETTINGS, make_examples, rows_for

#: That of TPUs.
_PRECISION = "mixed_bfloat16"
#: A text from which examples of any kind are made.
_SENTENCES = ["Seven geese crossed the frozen lake in a single line, and nobody wondered why."]


class Program(Settings):
    """One step of pre-training. Equal settings give the same HLO."""

    #: As in PretrainingConfig: `size` and fields of AlbertConfig to change in it.
    model: dict = {"size": "albert-base"}
    batch: PositiveInt = 32  #: Sequences per replica and optimizer step.
    sequence_length: PositiveInt = 512  #: S; the predictions P follow as they do in records.
    replicas: PositiveInt = 8
    replicas_per_chip: int = Field(2, ge=1, le=2)
    accumulation: PositiveInt = 1  #: Parts into which a replica's batch is split.
    recompute: bool = False  #: Whether the backward pass recomputes activations.
    vocab_size: PositiveInt = 30_000

    rules = (
        Rule(
            ("batch", "accumulation"),
            lambda batch, accumulation: batch % accumulation == 0,
            "must be a multiple of `accumulation`",
        ),
    )

    @property
    def about(self) -> tuple[str, ...]:
        """What a table shows besides the model."""
        return ()

    def albert_config(self) -> AlbertConfig:
        return Program.config(self).albert_config(self.vocab_size)

    def replica_function(self) -> Callable:
        """Returns the step of one replica; call this in a strategy's scope."""
        return build_pretraining(self.config(), self.albert_config()).train_step

    def config(self) -> PretrainingConfig:
        """Returns the configuration of a run with this step; InputError if it is not valid."""
        model = {"max_position_embeddings": max(512, self.sequence_length)} | self.model
        config = PretrainingConfig.of({"model": model, "training": self._training()})
        return config.resolved(_PRECISION)

    def _training(self):
        return {
            "batch_size": self.batch * self.replicas,
            "strategy": "tpu",
            "accumulation_steps": self.accumulation,
            "recompute": self.recompute,
        }

    def features(self) -> dict[str, tuple[str, tuple[int, ...]]]:
        """Returns dtype and shape of a replica's part of each batch of `training_dataset`."""
        predictions = PretrainingDataConfig(max_seq_length=self.sequence_length).num_predictions
        shapes = {"example_weights": ("float32", (self.batch,))}
        for name, feature in PRETRAINING_FEATURES.items():
            if not feature.required:
                continue
            dtype = "int32" if feature.dtype == "int64" else feature.dtype
            if feature.length == "scalar":
                shapes["sentence_order_labels"] = (dtype, (self.batch,))
            else:
                length = feature_length(feature, self.sequence_length, predictions)
                shapes[name] = (dtype, (self.batch, length))
        return shapes


class TaskProgram(Program):
    """One step of fine-tuning, or what `RowPredictor` computes on a device.

    The batch counts rows; of a choice, each has four sequences.
    """

    kind: Literal[tuple(KINDS)]
    predicts: bool = False  #: Whether it predicts instead of training.

    rules = Program.rules + (
        Rule(
            ("predicts", "accumulation", "recompute"),
            lambda predicts, accumulation, recompute: (
                not predicts or (accumulation == 1 and not recompute)
            ),
            "must not be used together: without training nothing is accumulated or kept",
        ),
    )

    @property
    def about(self):
        return (self.kind, "predicting") if self.predicts else (self.kind,)

    def config(self) -> FinetuneConfig:
        length = self.sequence_length
        # Short rows have no room for a usual question.
        windows = {"max_query_length": min(64, length // 4), "doc_stride": min(128, length // 2)}
        training = self._training() | {"steps": 1000}
        task = SETTINGS[self.kind] | windows | {"max_seq_length": length}
        config = FinetuneConfig.of({"task": task, "training": training})
        hidden_size = self.albert_config().hidden_size
        return config.resolved(
            build_task(config.task), hidden_size, training["batch_size"], _PRECISION
        )

    def replica_function(self):
        config = self.config()
        step = build_task_step(config, self.albert_config(), build_task(config.task))
        if self.predicts:
            return functools.partial(step.outputs_of, training=False)
        return step.train_step

    def features(self):
        """As `Program.features`: what rows of the task have."""
        [example] = make_examples(_SENTENCES, self.kind, count=1)
        if self.kind == "choice":  # four options, as in RACE
            example = example._replace(options=(*example.options, "no"))
        task, tokenizer = build_task(self.config().task), load_tokenizer("albert-mini-en")
        rows = rows_for(task, [example], tokenizer, training=not self.predicts)
        shapes = {
            name: (row.dtype.name, (self.batch, *row.shape[1:]))
            for name, row in sorted(rows.batch(np.zeros(1, np.int64)).items())
        }
        return shapes if self.predicts else shapes | {"example_weights": ("float32", (self.batch,))}


def program_of(fields: dict) -> Program:
    """Returns the TaskProgram of fields with a `kind`, else the Program."""
    return TaskProgram(**fields) if "kind" in fields else Program(**fields)
