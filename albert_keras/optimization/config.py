"""Configuration of the optimizer and the learning rate, and the two rules for their defaults.

`build.py` creates the Keras optimizer.
"""

import math
import re
from typing import Annotated, Literal

from pydantic import Field, NonNegativeInt, field_validator

from data_pipeline.errors import InputError
from data_pipeline.settings import Settings, option, setting

#: Far above any rate that works, and far below the rates at which an update is not finite.
_MAX_LR = 1_000

PositiveNumber = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeNumber = Annotated[float, Field(ge=0, allow_inf_nan=False)]
DecayRate = Annotated[float, Field(ge=0, lt=1)]


def scaled_lr(batch_size, reference_lr=1.76e-3, reference_batch=4096):
    """Returns the peak learning rate for a batch size, by the square-root rule.

    Args:
        batch_size: int. Sequences per update, over all replicas and accumulated batches.
        reference_lr: float. Rate that works at `reference_batch`.
        reference_batch: int. Sequences per update.

    Returns:
        float. 1.76e-3 for 4096, 6.2e-4 for 512, 2.2e-4 for 64.

    Source:
        LAMB, section 4 (https://arxiv.org/abs/1904.00962) for the rule; ALBERT, section 4.1
        (https://arxiv.org/abs/1909.11942) for rate and batch size. The unscaled rate diverges or
        plateaus at 512 and below (google-research/albert#29, #111).
    """
    return reference_lr * math.sqrt(batch_size / reference_batch)


def default_warmup_steps(num_steps):
    """Returns the default warm-up of a run, in steps.

    2.5 % of the run as in the paper (3125 of 125 000), but at least 100: the second moment averages
    over about 1000 steps and is not bias-corrected, so that it is least reliable in the first
    updates. Never more than a tenth of the run.

    Args:
        num_steps: int. Length of the run.

    Returns:
        int. 3125 for 125 000, 100 for 1000 to 4000, 2 for 20, 0 below 10.
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
        "the blocks' matrices and learns most per step in small models. auto is muon for the "
        "sizes tiny and mini, otherwise lamb.",
    )
    lr: PositiveNumber | Literal["auto"] = option(
        "auto",
        "Peak learning rate; auto computes it from the batch size in pre-training, and from the "
        "hidden size in fine-tuning.",
        default_text="by model size",
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
    momentum: DecayRate = setting(0.95, "Decay rate of the momentum of muon's matrices.")
    epsilon: PositiveNumber = setting(1e-6, "Added to the square root of the second moment.")
    clip_norm: PositiveNumber | None = setting(
        1.0, "Maximum global norm of the gradients; None disables clipping."
    )
    exclude_patterns: tuple[str, ...] = setting(
        ("LayerNorm", "layer_norm", "bias"),
        "Regular expressions searched in variable names. Matching variables have no "
        "weight decay and, with LAMB, no trust ratio.",
    )

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

    @field_validator("exclude_patterns")
    @classmethod
    def _patterns_compile(cls, patterns):
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(
                    f"contains {pattern!r}, which is not a regular expression: {error}"
                ) from error
        return patterns

    def peak_lr(self, batch_size: int) -> float:
        """Returns the highest learning rate of a run with this batch size (float)."""
        return scaled_lr(batch_size) if self.lr == "auto" else self.lr

    def lr_advice(self, batch_size: int) -> str | None:
        """Returns a warning about a chosen rate: str, or None if it is near the rule of LAMB."""
        rule = scaled_lr(batch_size)
        if (
            self.lr == "auto"
            or self.name not in ("auto", "lamb")
            or rule / 2 <= self.lr <= rule * 2
        ):
            return None
        return (
            f"the learning rate {self.lr:.3g} is {self.lr / rule:.2g} times the rate of the "
            f"square-root rule for batches of {batch_size} (1.76e-3 · √({batch_size}/4096) = "
            f"{rule:.3g}), which --lr auto uses. A rate that is too high makes training diverge, "
            "above all in large models"
        )

    def warmup_for(self, num_steps: int) -> int:
        """Returns the warm-up of a run of `num_steps` steps (int).

        Raises:
            InputError: If the chosen warm-up is longer than the run.
        """
        if self.warmup_steps is None:
            return default_warmup_steps(num_steps)
        if self.warmup_steps > num_steps:
            raise InputError(
                "`warmup_steps` must not exceed the steps of the run. Received: "
                f"warmup_steps={self.warmup_steps}, num_steps={num_steps}. Omit `warmup_steps` "
                "for a fraction of the run."
            )
        return self.warmup_steps
