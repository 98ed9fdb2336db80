"""What is traced: a step of pre-training, with one shape of batch, for so many replicas."""

from pydantic import Field, PositiveInt

from albert_keras.training.config import PretrainingConfig, TrainingConfig
from albert_keras.training.pretraining_step import build_step
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.records.schema import PRETRAINING_FEATURES, feature_length
from data_pipeline.settings import Rule, Settings

#: Settings of a program -> fields of TrainingConfig.
_TRAINING_FIELDS = {"accumulation": "accumulation_steps", "recompute": "recompute"}


class Program(Settings):
    """One step of pre-training. Two of equal settings give the same HLO.

    Attributes:
        model: dict. As in PretrainingConfig: `size` and fields of AlbertConfig to change in it.
        batch: int. Sequences per replica and optimizer step.
        sequence_length: int. S; the number of predictions P follows as it does in records.
        replicas: int.
        replicas_per_chip: int.
        precision: str. "mixed_bfloat16" or "float32".
        accumulation: int. Parts that a replica's batch is worked off in.
        recompute: bool. Whether the backward pass computes activations anew.
        vocab_size: int.
    """

    model: dict = {"size": "albert-base"}
    batch: PositiveInt = 32
    sequence_length: PositiveInt = 512
    replicas: PositiveInt = 8
    replicas_per_chip: int = Field(2, ge=1, le=2)
    precision: str = "mixed_bfloat16"
    accumulation: PositiveInt = 1
    recompute: bool = False
    vocab_size: PositiveInt = 30_000

    rules = (
        Rule(
            ("batch", "accumulation"),
            lambda batch, accumulation: batch % accumulation == 0,
            "should be a multiple of `accumulation`",
        ),
    )

    @property
    def about(self):
        """tuple of str. What a table tells of it beside the model."""
        return ()

    @property
    def predictions(self):
        """int. Predictions per sequence, P."""
        return PretrainingDataConfig(max_seq_length=self.sequence_length).num_predictions

    def albert_config(self):
        """Returns the shape of the model: AlbertConfig."""
        return Program.config(self).albert_config(self.vocab_size)

    def replica_function(self):
        """Makes what is traced; call it in a strategy's scope.

        Returns:
            callable. What one replica executes, of a dict as `features` tells it.
        """
        return build_step(self.config(), self.albert_config()).train_step

    def config(self):
        """Returns the PretrainingConfig of the run that would make this step.

        Raises:
            InputError: If TrainingConfig has no such setting, or a value is not valid.
        """
        training = {"batch_size": self.batch * self.replicas, "strategy": "tpu"}
        for name, field in _TRAINING_FIELDS.items():
            if field in TrainingConfig.model_fields:
                training[field] = getattr(self, name)
            elif getattr(self, name) != type(self).model_fields[name].default:
                raise InputError(f"`{name}` cannot be checked: training has no `{field}`.")
        model = {"max_position_embeddings": max(512, self.sequence_length)} | self.model
        config = PretrainingConfig.of({"model": model, "training": training})
        return config.resolved(self.precision)

    def features(self):
        """Tells what a replica gets of each batch, as `training_dataset` makes it.

        Returns:
            dict from a name to (dtype, shape): str and tuple of int, the batch size first.
        """
        shapes = {"example_weights": ("float32", (self.batch,))}
        for name, feature in PRETRAINING_FEATURES.items():
            if not feature.required:
                continue
            dtype = "int32" if feature.dtype == "int64" else feature.dtype
            if feature.length == "scalar":
                shapes["sentence_order_labels"] = (dtype, (self.batch,))
            else:
                length = feature_length(feature, self.sequence_length, self.predictions)
                shapes[name] = (dtype, (self.batch, length))
        return shapes
