"""Configuration of the stages of a pre-training run, and the conditions between them."""

import math
from collections.abc import Sequence
from pathlib import Path

from albert_keras.config import AlbertConfig
from data_pipeline.settings import Problem, Settings, setting

#: By how much the sum of the shares may differ from 1: three of 0.333 are meant to be a third each.
_TOLERANCE = 0.002


class StageConfig(Settings):
    """A stage of a run: its share of the run, and the settings that differ from the run's."""

    share: float = setting(
        ..., "Fraction of the steps of the run, or of its time budget.", gt=0, le=1
    )
    data: Path | None = setting(
        None, "Folder of records built with the run's tokenizer; None takes the run's records."
    )
    batch_size: int | None = setting(
        None, "Global batch size, over all replicas; None takes the value of the run.", ge=1
    )
    num_hidden_layers: int | None = setting(
        None,
        "Depth of the encoder, whose layers must share all weights; None takes the depth of the "
        "model. It may only grow, and the last stage has the depth of the model.",
        ge=1,
    )
    mask_rate: float | None = setting(
        None,
        "Fraction of the tokens to predict with dynamic masks; None takes the value of the run.",
        gt=0,
        lt=1,
    )
    leave_unmasked: float | None = setting(
        None,
        "Fraction of the tokens to predict that dynamic masks leave unchanged; None takes the "
        "value of the run.",
        ge=0,
        le=1,
    )

    def changes(self, *names: str) -> dict:
        """Returns the named settings in which the stage differs from the run, by name."""
        values = {name: getattr(self, name) for name in names}
        return {name: value for name, value in values.items() if value is not None}


def share_problems(stages: Sequence[StageConfig]) -> list[Problem]:
    """Returns what is wrong with the shares of stages, each of them valid on its own."""
    total = math.fsum(stage.share for stage in stages)
    if not stages or abs(total - 1) <= _TOLERANCE:
        return []
    shares = " + ".join(f"{stage.share:g}" for stage in stages)
    message = f"must sum to 1 over all stages. Received: {shares} = {total:g}."
    return [Problem(("stages", "0", "share"), message)]


def depth_problems(stages: Sequence[StageConfig], albert_config: AlbertConfig) -> list[Problem]:
    """Returns what is wrong with the depths of stages of this model."""
    full = albert_config.num_hidden_layers
    depths = [stage.num_hidden_layers or full for stage in stages]
    shares_all = albert_config.sharing == "all" and albert_config.num_hidden_groups == 1
    problems = []
    for number, depth in enumerate(depths):
        if depth > full:
            message = f"must not exceed the depth of the model. Received: {depth}, and {full}."
        elif number and depth < min(depths[number - 1], full):
            message = (
                "must not be smaller than in the stage before: a model can only grow. Received: "
                f"{depth} after {depths[number - 1]}."
            )
        elif depth < full and number == len(depths) - 1:
            message = (
                f"must be the depth of the model in the last stage. Received: {depth}, not {full}."
            )
        elif depth < full and not shares_all:
            message = (
                "requires a model whose layers share all weights. Received: "
                f"{albert_config.sharing!r} in {albert_config.num_hidden_groups} group(s)."
            )
        else:
            continue
        problems.append(Problem(("stages", str(number), "num_hidden_layers"), message))
    return problems
