"""Configuration of the optimizer and the learning rate, and the rules for their defaults.

Every default of `--lr` is computed here: of pre-training, of fine-tuning and of heads on a frozen
encoder. `build.py` creates the Keras optimizer.
"""

import math
from typing import Annotated, ClassVar, Literal

from pydantic import Field, NonNegativeInt, field_validator

from data_pipeline.errors import InputError
from data_pipeline.settings import Settings, option, setting

#: Far above any rate that works, and far below the rates at which an update is not finite.
_MAX_LR = 1_000

#: Sequences of an update from which LAMB is the default.
_LARGE_BATCH = 1024
#: The rule of the optimizer "auto", in one sentence.
AUTO_RULE = (
    "auto is LAMB for batches of 1,024 sequences or more and on TPUs, and Muon for smaller "
    "batches, where it learns more per update"
)
#: Hidden size up to which the rates of small models were measured.
_SMALL = 256
#: Hidden size from which fine-tuning follows the papers.
_BASE = 768
#: Peak learning rate of the head on a frozen encoder, whatever its hidden size.
HEAD_LR = 1e-3
#: The weights of the heads of tasks, which fine-tuning begins from small random values.
_NEW_WEIGHTS = ("output_weights", "start_logits/", "end_logits/", "answer_class/")

PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeNumber = Annotated[float, Field(ge=0, allow_inf_nan=False)]
DecayRate = Annotated[float, Field(ge=0, lt=1)]


def default_optimizer(batch_size: int, on_tpu: bool = False) -> Literal["lamb", "muon"]:
    """Returns the optimizer that "auto" means in pre-training, see `AUTO_RULE`.

    Measured on two layers of 128 with batches of 64 (docs/measured.md): after 800 updates Muon has
    31.4 % masked-LM accuracy, and LAMB 17.5 %. LAMB was made for large batches.
    `batch_size` is the sequences per update, over all replicas and accumulated batches.
    """
    return "lamb" if batch_size >= _LARGE_BATCH or on_tpu else "muon"


def pretraining_lr(optimizer: str, batch_size: int, hidden_size: int = 768) -> float:
    """Returns the default of the peak learning rate in pre-training, of "lamb", "muon" or "adamw".

    LAMB: 1.76e-3 at a batch of 4096, proportional to the square root of the batch (6.2e-4 for 512).
    The unscaled rate diverges or plateaus at 512 and below (google-research/albert#29, #111).
    Models of at most 256 learn nothing at the rates of this rule for batches below 1024, and best
    at 0.01 (measured).
    Muon: 0.004 below a hidden size of 256, 0.003 at 256 (measured), then inversely proportional to
    the hidden size.
    AdamW: 0.001 up to 256 (measured), then inversely proportional to the hidden size.
    `batch_size` is as in `default_optimizer`.

    Source:
        LAMB, section 4 (https://arxiv.org/abs/1904.00962) for the rule; ALBERT, section 4.1
        (https://arxiv.org/abs/1909.11942) for rate and batch size; measurements: docs/measured.md.
    """
    narrowing = min(1.0, _SMALL / hidden_size)
    if optimizer == "adamw":
        return 0.001 * narrowing
    if optimizer == "muon":
        return 0.004 if hidden_size < _SMALL else round(0.003 * narrowing, 5)
    if hidden_size <= _SMALL and batch_size < _LARGE_BATCH:
        return 0.01
    return 1.76e-3 * math.sqrt(batch_size / 4096)


def finetuning_optimizer(
    hidden_size: int, freeze_encoder: bool = False
) -> Literal["lamb", "adamw"]:
    """Returns the optimizer that "auto" means in fine-tuning.

    LAMB below the base size: its trust ratio bounds how much one update changes a weight, however
    often the layers use it. On SST-2 it is 1.7 to 3.1 points better than AdamW for widths of 128,
    256 and 384 (docs/measured.md). AdamW, as in the papers,
    from the base size on, and for a head on a frozen encoder.

    Args:
        hidden_size: int. Width of the encoder, H.
        freeze_encoder: bool. Whether only the head is trained.
    """
    return "lamb" if hidden_size < _BASE and not freeze_encoder else "adamw"


def finetuning_lr(optimizer: str, hidden_size: int, freeze_encoder: bool = False) -> float:
    """Returns the default of the peak learning rate in fine-tuning.

    LAMB: 1e-3, see `finetuning_optimizer`. AdamW and Muon: 2e-5 from the base size on, as in
    ALBERT's table 14 (1e-5 to 5e-5), and more for small models, 3e-4 at a hidden size of 128.

    Args:
        optimizer: str. "lamb", "adamw" or "muon".
        hidden_size: int. Width of the encoder, H.
        freeze_encoder: bool. Whether only the head is trained, at `HEAD_LR`.
    """
    if freeze_encoder:
        return HEAD_LR
    if optimizer == "lamb":
        return 1e-3
    return min(2e-5 * max(1.0, (_BASE / hidden_size) ** 1.5), HEAD_LR)


def default_warmup_steps(num_steps):
    """Returns the default warm-up of a run of `num_steps`, in steps.

    2.5 % of the run as in the paper (3125 of 125 000), but at least 100: the second moment averages
    over about 1000 steps and is not bias-corrected, so that it is least reliable in the first
    updates. Never more than a tenth of the run: 3125 for 125 000, 100 for 1000 to 4000, 2 for 20.
    """
    return min(max(num_steps // 40, 100), num_steps // 10)


class OptimizerConfig(Settings):
    """Optimizer and learning-rate schedule. The defaults are the same as in ALBERT's pre-training.

    Source:
        google-research/albert, `optimization.py` and `lamb_optimizer.py`; rates in
        `run_pretraining.py`.
    """

    name: Literal["auto", "lamb", "adamw", "muon"] = setting(
        "auto",
        "lamb or adamw, both without bias correction, or muon, which orthogonalizes the updates of "
        f"the blocks' matrices. {AUTO_RULE}.",
    )
    lr: PositiveNumber | Literal["auto"] = option(
        "auto",
        "Peak learning rate; auto computes it from optimizer, batch size and hidden size.",
    )
    warmup_steps: NonNegativeInt | None = setting(
        None, "Steps of linear warm-up; 0 disables it, None uses `default_warmup_steps`."
    )
    power: NonNegativeNumber = setting(
        1.0, "Exponent of the polynomial decay to 0; 0 keeps the rate constant."
    )
    decay_from_warmup_end: bool = setting(
        False,
        "Start the decay at the end of the warm-up. The reference starts it at step 0, "
        "so that the rate drops by W/T when the warm-up of W of T steps ends.",
    )
    weight_decay: NonNegativeNumber = setting(
        0.01, "Decoupled weight decay, multiplied by the learning rate."
    )
    beta_1: DecayRate = setting(0.9, "Decay rate of the first moment.")
    beta_2: DecayRate = setting(0.999, "Decay rate of the second moment.")
    epsilon: PositiveNumber = setting(1e-6, "Added to the square root of the second moment.")
    clip_norm: PositiveNumber | None = setting(
        1.0, "Maximum global norm of the gradients; None disables clipping."
    )

    #: Regular expressions searched in the names of weights that have no trust ratio with LAMB,
    #: besides those that have no weight decay either.
    unscaled: ClassVar[tuple[str, ...]] = ()

    @field_validator("lr", mode="before")
    @classmethod
    def _one_message_for_both_kinds(cls, lr):
        # pydantic would report one error for each member of the union.
        if lr == "auto":
            return lr
        try:
            number = math.nan if isinstance(lr, bool) else float(lr)  # YAML reads 1e-3 as a string
        except (TypeError, ValueError):
            number = math.nan
        if not 0 < number < math.inf:
            raise ValueError('must be a positive number or "auto"')
        if number > _MAX_LR:
            raise ValueError(
                f"must be at most {_MAX_LR:,}: no training converges with a higher learning rate"
            )
        return number

    def resolved(
        self, batch_size: int, hidden_size: int = 768, on_tpu: bool = False
    ) -> "OptimizerConfig":
        """Returns a copy in which the optimizer and the rate "auto" of pre-training are values.

        The arguments are those of `default_optimizer` and `pretraining_lr`. The moments that Muon
        keeps of other weights than matrices decay by 0.98 unless `beta_2` is given.
        """
        name = default_optimizer(batch_size, on_tpu) if self.name == "auto" else self.name
        lr = pretraining_lr(name, batch_size, hidden_size) if self.lr == "auto" else self.lr
        return self.with_values(name, lr)

    def with_values(self, name: str, lr: float) -> "OptimizerConfig":
        """Returns a copy with an optimizer and a rate, and with that optimizer's `beta_2`."""
        is_default = name == "muon" and "beta_2" not in self.model_fields_set
        return self.replace(name=name, lr=lr, beta_2=0.98 if is_default else self.beta_2)

    def warmup_for(self, num_steps: int) -> int:
        """Returns the warm-up of a run of `num_steps` steps (int).

        Raises:
            InputError: If the chosen warm-up is longer than the run.
        """
        if self.warmup_steps is None:
            return self.usual_warmup(num_steps)
        if self.warmup_steps > num_steps:
            raise InputError(
                f"`optimizer.warmup_steps` must not exceed the steps of the run, {num_steps}. "
                f"Received: {self.warmup_steps}, perhaps from a recipe for a longer run. Use "
                "`optimizer.warmup_steps=null` for a fraction of the run."
            )
        return self.warmup_steps

    @staticmethod
    def usual_warmup(num_steps: int) -> int:
        """Returns the warm-up if none is chosen."""
        return default_warmup_steps(num_steps)


class FinetuneOptimizer(OptimizerConfig):
    """Optimizer of fine-tuning, with a tenth of the run as the default warm-up.

    With LAMB the head has no trust ratio. The head begins with small random weights, of which each
    update could change a thousandth only: on MRPC the accuracy was 71.1 % with the ratio, and
    79.4 % without it (docs/measured.md).
    """

    name: Literal["auto", "lamb", "adamw", "muon"] = setting(
        "auto",
        "lamb or adamw, both without bias correction, or muon. auto is lamb for models with a "
        f"hidden size below {_BASE}, and adamw for others and for a head on a frozen encoder.",
    )
    unscaled: ClassVar[tuple[str, ...]] = _NEW_WEIGHTS

    @staticmethod
    def usual_warmup(num_steps: int) -> int:
        return num_steps // 10
