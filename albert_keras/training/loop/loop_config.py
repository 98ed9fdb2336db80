"""How long a run trains, how wide and how careful, whatever it learns."""

from typing import ClassVar, Literal

from pydantic import Field, field_validator

from albert_keras.training.loop.names import PRECISIONS, STRATEGIES
from albert_keras.training.loop.time_budget import parse_duration
from data_pipeline.errors import InputError
from data_pipeline.settings import Rule, Settings


class LoopConfig(Settings):
    """What pre-training and fine-tuning have in common.

    Attributes:
        batch_size: int. Global batch size, B, over all replicas.
        seed: int. Decides the first weights and the order of the examples.
        strategy: str. Where to train, see `strategy.py`.
        precision: str. "float32", "mixed_bfloat16" (float32 weights, bfloat16 products),
            "mixed_float16" (the same with float16 and a scaled loss), or "auto", see
            `choose_precision`.
        accumulation_steps: int. Parts each replica splits its share of the batch into, one after
            the other: memory for one part, the update of the whole batch.
        recompute: bool. Whether blocks are computed again for their gradient instead of kept: about
            a third more work, several times less memory.
        padding: str. "skip" spends (almost) no work on padding, with shapes that depend on the
            batch; "compute" treats it like text, as TPUs need it; "auto" skips it where that pays.
        steps_per_execution: int. Steps between two looks of the host at the run; TPUs want
            hundreds.
        skip_spikes: bool. Whether to leave out updates whose loss is far out of line, see
            `UpdateGuard`. Those that are not finite are left out always.
        keep_checkpoints: int. The newest this many stay, and the best.
        report_every: int. Steps between lines of the log.
        time_limit_seconds: float or None. Ends the run early, saved, once training has taken this
            long; the same command goes on with it.
        time_budget: str or None. Time all training of the run may take, such as "8h" or "1h30m":
            the schedule is stretched so that it ends then, whatever `steps` is.
        peak_tflops: float or None. What one replica can do at most, in 10^12 floating-point
            operations a second, for the share used; None measures it (not on a TPU).
    """

    batch_size: int = Field(32, ge=1)
    seed: int = Field(12345, ge=0)
    strategy: Literal[STRATEGIES] = "auto"
    precision: Literal[PRECISIONS] = "auto"
    accumulation_steps: int = Field(1, ge=1)
    recompute: bool = False
    padding: Literal["auto", "skip", "compute"] = "auto"
    steps_per_execution: int = Field(1, ge=1)
    skip_spikes: bool = False
    keep_checkpoints: int = Field(3, ge=1)
    report_every: int = Field(50, ge=1)
    time_limit_seconds: float | None = Field(None, gt=0)
    time_budget: str | None = None
    peak_tflops: float | None = Field(None, gt=0)

    rules: ClassVar[tuple[Rule, ...]] = (
        Rule(
            ("checkpoint_every", "steps_per_execution"),
            lambda every, together: every is None or every % together == 0,
            "should be a multiple of `steps_per_execution`",
        ),
        Rule(
            ("report_every", "steps_per_execution"),
            lambda every, together: every is None or every % together == 0,
            "should be a multiple of `steps_per_execution`",
        ),
    )

    @field_validator("time_budget")
    @classmethod
    def _is_a_duration(cls, time_budget):
        try:
            parse_duration("1s" if time_budget is None else time_budget)
        except InputError:
            raise ValueError('should be a duration such as "8h", "1h30m" or "2d"') from None
        return time_budget
