"""Settings of the optimizer and its learning rate, and the two rules behind their defaults.

Plain Python; `build.py` turns them into a Keras optimizer.
"""

import math
import re
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, field_validator

from data_pipeline.errors import InputError
from data_pipeline.settings import Settings

PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeNumber = Annotated[float, Field(ge=0, allow_inf_nan=False)]
DecayRate = Annotated[float, Field(ge=0, lt=1)]


def scaled_lr(batch_size, reference_lr=1.76e-3, reference_batch=4096):
    """Returns the peak learning rate for a batch size, by the square-root rule.

    Args:
        batch_size: int. Sequences per update, over all replicas and accumulated batches.
        reference_lr: float. Rate known to work at `reference_batch`.
        reference_batch: int. Sequences per update.

    Returns:
        float. 1.76e-3 for 4096, 6.2e-4 for 512, 2.2e-4 for 64.

    Source:
        LAMB, section 4 (https://arxiv.org/abs/1904.00962) for the rule; ALBERT, section 4.1
        (https://arxiv.org/abs/1909.11942) for rate and batch size. The unscaled rate blows up or
        plateaus at 512 and below (google-research/albert#29, #111).
    """
    return reference_lr * math.sqrt(batch_size / reference_batch)


def default_warmup_steps(num_steps):
    """Returns the warm-up of a run for which none was chosen, in steps.

    2.5 % of the run as in the paper (3125 of 125 000), but at least 100: the second moment averages
    over about 1000 steps and is not bias-corrected, so that the first updates are its least
    reliable. Never more than a tenth of the run.

    Args:
        num_steps: int. Length of the run.

    Returns:
        int. 3125 for 125 000, 100 for 1000 to 4000, 2 for 20, 0 below 10.
    """
    return min(max(num_steps // 40, 100), num_steps // 10)


class OptimizerConfig(Settings):
    """How weights are updated. The defaults are those of ALBERT's pre-training.

    Attributes:
        name: "lamb" (pre-training) or "adamw" (fine-tuning), both without bias correction.
        lr: Peak learning rate, or "auto" for `scaled_lr` of the batch size.
        warmup_steps: Steps of linear warm-up; 0 for none, None for `default_warmup_steps`.
        power: Exponent of the polynomial decay to 0; 1 is linear, 0 keeps the rate.
        decay_from_warmup_end: Whether the decay starts where the warm-up ends. False is the
            reference, where it starts at step 0 and the rate falls by W/T when warm-up ends.
        weight_decay: Decoupled weight decay, multiplied by the learning rate.
        beta_1: Decay rate of the first moment.
        beta_2: Decay rate of the second moment.
        epsilon: Added to the root of the second moment.
        clip_norm: Largest global norm of the gradients; None for no clipping.
        exclude_patterns: Regular expressions, searched in the names of variables. Those found are
            neither decayed nor, under LAMB, given a trust ratio.

    Source:
        google-research/albert, `optimization.py` and `lamb_optimizer.py`; rates in
        `run_pretraining.py`.
    """

    name: Literal["lamb", "adamw"] = "lamb"
    lr: PositiveNumber | Literal["auto"] = "auto"
    warmup_steps: NonNegativeInt | None = None
    power: NonNegativeNumber = 1.0
    decay_from_warmup_end: bool = False
    weight_decay: NonNegativeNumber = 0.01
    beta_1: DecayRate = 0.9
    beta_2: DecayRate = 0.999
    epsilon: PositiveNumber = 1e-6
    clip_norm: PositiveNumber | None = 1.0
    exclude_patterns: tuple[str, ...] = ("LayerNorm", "layer_norm", "bias")

    @field_validator("lr", mode="before")
    @classmethod
    def _one_message_for_both_kinds(cls, lr):
        # pydantic would report each member of the union apart.
        if lr == "auto":
            return lr
        try:
            number = math.nan if isinstance(lr, bool) else float(lr)  # YAML reads 1e-3 as a word
        except (TypeError, ValueError):
            number = math.nan
        if not 0 < number < math.inf:
            raise ValueError('should be a positive number or "auto"')
        return number

    @field_validator("exclude_patterns")
    @classmethod
    def _patterns_compile(cls, patterns):
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"holds {pattern!r}, no regular expression: {error}") from error
        return patterns

    def peak_lr(self, batch_size):
        """Returns the highest learning rate of a run with this batch size (float)."""
        return scaled_lr(batch_size) if self.lr == "auto" else self.lr

    def lr_advice(self, batch_size):
        """Says what may be wrong with a chosen rate: str, or None if it is near the rule.

        The rule is that of LAMB; for AdamW there is none.
        """
        rule = scaled_lr(batch_size)
        if self.lr == "auto" or self.name != "lamb" or rule / 2 <= self.lr <= rule * 2:
            return None
        return (
            f"the learning rate {self.lr:.3g} is {self.lr / rule:.2g} times what the square-root "
            f"rule gives for batches of {batch_size} (1.76e-3 · √({batch_size}/4096) = "
            f"{rule:.3g}); --lr auto takes that. Too high a rate blows up, more so on large models"
        )

    def warmup_for(self, num_steps):
        """Returns the warm-up of a run of `num_steps` steps (int).

        Raises:
            InputError: If the chosen warm-up is longer than the run.
        """
        if self.warmup_steps is None:
            return default_warmup_steps(num_steps)
        if self.warmup_steps > num_steps:
            raise InputError(
                "`warmup_steps` should not exceed the steps of the run. Received: "
                f"warmup_steps={self.warmup_steps}, num_steps={num_steps}. Leave `warmup_steps` "
                "out for a share of the run."
            )
        return self.warmup_steps
