"""Configuration of a training loop, whatever the model learns."""

import copy
from typing import Any, ClassVar, Literal

from pydantic import field_validator
from typing_extensions import Self

from data_pipeline.errors import InputError
from data_pipeline.limits import MAX_LONG_INTEGER
from data_pipeline.progress import parse_duration
from data_pipeline.settings import Rule, Settings, did_you_mean, option, options_of, setting

#: Where training runs; `strategy.py` explains each of them.
STRATEGIES = ("auto", "tpu", "mirrored", "multiworker", "single")

#: Data types of the computation; weights and moments are float32 in all of them. "auto" is
#: mixed_bfloat16 on hardware that multiplies it faster (TPUs, newer GPUs and CPUs),
#: see `choose_precision`.
PRECISIONS = ("auto", "float32", "mixed_bfloat16", "mixed_float16")

#: What XLA compiles of a step; `ObjectiveModel.compiled_part` says what "auto" means.
COMPILED = ("auto", "step", "kernels", "none")


class RunConfig(Settings):
    """Base of the configurations of a run, whose fields may also be set by keyword."""

    @classmethod
    def of(cls, values: dict[str, Any], **flags: Any) -> Self:
        """Creates a configuration from nested values and single settings.

        Args:
            values: dict of section -> dict, or None for an empty section; of a field that is no
                section, such as `stages`, its value.
            **flags: Settings by the keywords of `options_of`; they take precedence. None means not
                given.

        Raises:
            InputError: If a section is not a mapping. `SettingsError` if a value is invalid.
            TypeError: If a keyword is unknown.
        """
        sections = {name for name, field in cls.model_fields.items() if field.default != ()}
        for name, section in values.items():
            if name in sections and not isinstance(section, dict | None):
                raise InputError(f"`{name}` must contain keys and values. Received: {section!r}.")
        values = {
            name: section or {} if name in sections else () if section is None else section
            for name, section in values.items()
        }
        options, given = options_of(cls), {}
        for keyword, value in flags.items():
            if keyword not in options:
                hint = did_you_mean(keyword, options)
                raise TypeError(f"`{keyword}` is not a known setting{hint}")
            if value is not None:
                given[options[keyword].path] = value
        return cls(**merged(values, given))

    def with_flags(self, **flags: Any) -> Self:
        """Returns a checked copy with some settings changed, see `of`."""
        return type(self).of(self.model_dump(exclude_unset=True), **flags)


def merged(values: dict[str, Any], given: dict[tuple[str, ...], Any]) -> dict[str, Any]:
    """Returns the settings of a recipe or file with given ones in their place.

    Given epochs replace its steps.

    Args:
        values: dict, nested. It is not changed.
        given: dict of the keys that lead to a setting, the outermost first -> its value.

    Raises:
        InputError: If one of the keys leads through a value that is no section.
    """
    merged = copy.deepcopy(values)
    if ("training", "epochs") in given and isinstance(merged.get("training"), dict):
        merged["training"].pop("steps", None)
    for (*path, last), value in given.items():
        section = merged
        for name in path:
            if section.get(name) is None:  # there is no such section, or it is empty
                section[name] = {}
            section = section[name]
            if not isinstance(section, dict):
                keys = ".".join([*path, last])
                raise InputError(f"`{keys}` cannot be set: `{name}` is a value, not a section.")
        section[last] = value
    return merged


class LoopConfig(Settings):
    """Settings that pre-training and fine-tuning share."""

    batch_size: int = option(32, "Global batch size, over all replicas.", ge=1, le=2**20)
    seed: int = option(
        12345, "Random seed for weights and the order of examples.", ge=0, le=MAX_LONG_INTEGER
    )
    strategy: Literal[STRATEGIES] = option("auto", "Distribution strategy.")
    precision: Literal[PRECISIONS] = option(
        "auto",
        "Data type of the computation. auto is mixed_bfloat16 where the hardware multiplies it "
        "faster, otherwise float32.",
    )
    compile: Literal[COMPILED] = setting(
        "auto",
        "What XLA compiles: the whole step, the kernels between the products, or none. auto is "
        "step for pre-training on GPUs, kernels for other training on a GPU and on a single CPU.",
    )
    accumulation_steps: int = option(
        1,
        "Number of parts a batch is split into to save memory; gradients are accumulated.",
        flag="--accumulate",
        ge=1,
    )
    recompute: bool = option(
        False, "Recompute the blocks in the backward pass: a third more work, much less memory."
    )
    padding: Literal["auto", "skip", "compute"] = setting(
        "auto",
        "skip computes (almost) no padding, with shapes that depend on the batch. "
        "compute treats padding like text, as TPUs require. auto skips it where that is faster.",
    )
    steps_per_execution: int = option(
        1, "Steps per host call; raise it on TPUs, e.g. to 100.", ge=1
    )
    skip_spikes: bool = setting(
        False,
        "Also skip updates whose loss is an outlier. Updates that are not finite are always "
        "skipped.",
    )
    keep_checkpoints: int = setting(
        3, "Number of newest checkpoints to keep, besides the best one.", ge=1
    )
    report_every: int = setting(50, "Steps between log lines.", ge=1)
    time_budget: str | None = option(
        None,
        "Total training time, such as 8h or 1h30m. The schedule is scaled to end then, whatever "
        "the number of steps.",
        metavar="DURATION",
    )
    rules: ClassVar[tuple[Rule, ...]] = tuple(
        Rule(
            (name, "steps_per_execution"),
            lambda every, together: every is None or every % together == 0,
            "must be a multiple of `steps_per_execution`",
        )
        for name in ("checkpoint_every", "report_every")
    )

    @field_validator("time_budget")
    @classmethod
    def _is_a_duration(cls, time_budget):
        try:
            parse_duration("1s" if time_budget is None else time_budget)
        except InputError:
            raise ValueError('must be a duration such as "8h", "1h30m" or "2d"') from None
        return time_budget
