"""Who takes part in `benchmark learn`: our recipe, and each peer with several learning rates."""

from collections.abc import Sequence
from typing import NamedTuple

from albert_keras.formats.hugging_face_config import to_values
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.strategy import build_strategy, choose_precision
from data_pipeline.records.record_folder import RecordFiles
from tests.benchmarks.learning.comparison import OURS

#: The second one is the first one with a few lines of user code.
PEERS = ("transformers", "transformers-masked")
PEER_RATES = (2e-4, 5e-4, 1e-3)
_TRAINERS = "tests.benchmarks.learning"
_NEEDS = ("torch", "transformers")
_NAMES = {
    "transformers": "transformers, compiled",
    "transformers-masked": "transformers, compiled, masked positions",
}
#: The usual recipe of the peers: AdamW with these values, linear warm-up and decay.
PEER_RECIPE = {"weight_decay": 0.01, "clip_norm": 1.0, "mask_rate": 0.15}


class Learner(NamedTuple):
    """A contestant."""

    label: str
    peer: str  #: "ours", or one of `PEERS`.
    rate: float
    module: str  #: Its trainer.
    needs: tuple[str, ...]  #: Packages.
    settings: dict  #: Of the trainer.
    precision: str

    @property
    def folder(self) -> str:
        """Name of its folder."""
        return self.peer if self.peer == OURS else f"{self.peer}-{self.rate:g}"


def resolve(config: PretrainingConfig, records: RecordFiles) -> PretrainingConfig:
    """Returns our recipe with all choices made, as `pretrain` makes them here."""
    precision = choose_precision(build_strategy("single"))
    return config.resolved(precision, records.info.objective != "none")


def learners_for(
    records: RecordFiles,
    held_out: RecordFiles,
    config: PretrainingConfig,
    recipe: str,
    peers: Sequence[str],
    rates: Sequence[float] = PEER_RATES,
    batch_size: int = 32,
) -> list[Learner]:
    """Returns who takes part: ours, then each peer with each rate.

    Peers have ALBERT of the same width and depth, with one block shared by all depths and absolute
    positions.
    """
    resolved = resolve(config, records)
    precision = resolved.training.precision
    paths = {
        "records": str(records.folder.absolute()),
        "eval_data": str(held_out.folder.absolute()),
    }
    ours = {**paths, "config": config.model_dump(mode="json", exclude_unset=True)}
    label = f"ours, {recipe}"
    found = [Learner(label, OURS, resolved.optimizer.lr, f"{_TRAINERS}.ours", (), ours, precision)]
    if not peers:
        return found
    shape = config.albert_config(records.info.vocab_size).replace(
        sharing="all",
        num_hidden_groups=1,
        inner_group_num=1,
        hidden_act="gelu",
        position_embedding="absolute",
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        embedding_projection="always",
    )
    theirs = to_values(shape, ("masked_lm",))
    module = f"{_TRAINERS}.transformers_trainer"
    for peer in peers:
        for rate in dict.fromkeys(rates):
            settings = {
                **PEER_RECIPE,
                "config": theirs,
                "at_masked_positions": peer == "transformers-masked",
                "lr": rate,
                "batch_size": batch_size,
            }
            label = f"{_NAMES[peer]}, rate {rate:g}"
            found.append(Learner(label, peer, rate, module, _NEEDS, settings, precision))
    return found
