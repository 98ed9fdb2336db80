"""A pre-trained model that is scored on records: the model of a run, or any other weights."""

from pathlib import Path

from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.opened_model import OpenedModel
from data_pipeline.errors import InputError
from data_pipeline.records.record_files import RecordFiles


def open_scored_model(
    path: str | Path, records: RecordFiles, step: int | str | None = None
) -> OpenedModel:
    """Opens a pre-trained model to score on records; arguments as of `open_weights`.

    Raises:
        InputError: If there is no such model, it has no masked-LM head, or cannot read the records.
    """
    weights = open_weights(path, step)
    if "masked_lm" not in weights.heads:
        raise InputError(
            f"`{path}` must be a pre-trained model with a masked-LM head, to be scored on records. "
            f"Received: heads {', '.join(weights.heads) or 'none'}."
        )
    run = weights.run
    digest = weights.tokenizer.digest if run is None else run.record["tokenizer_digest"]
    config = weights.albert_config
    records.check_for(weights.path, config.vocab_size, config.max_position_embeddings, digest)
    return weights
