"""A pre-trained model that is scored on records: the model of a run, or any other weights."""

from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.opened_model import OpenedModel
from data_pipeline.errors import InputError, Mistake
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
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
    check_records(records, weights.path, weights.albert_config, digest)
    return weights


def check_records(
    records: RecordFiles,
    model: str | Path,
    albert_config: AlbertConfig,
    tokenizer_digest: str | None,
) -> None:
    """Raises InputError unless a model can read records.

    They must be built with the tokenizer of the model and be no longer than its positions.

    Args:
        records: RecordFiles.
        model: The model as given, for the message.
        albert_config: AlbertConfig of the model.
        tokenizer_digest: Of the model; None if it is not known.
    """
    found, problem = records.info.tokenizer_digest, None
    if records.info.vocab_size != albert_config.vocab_size:
        problem = f"{records.info.vocab_size} pieces, not {albert_config.vocab_size}"
    elif tokenizer_digest and found and tokenizer_digest != found:
        problem = "another one of the same size"
    if problem:
        tokenizer = Path(model, TOKENIZER_FOLDER)
        option = f"`tokenizer={tokenizer}`" if tokenizer.is_dir() else "that tokenizer"
        raise InputError(
            f"`{records.folder}` must be built with the tokenizer of `{model}`. Received: "
            f"{problem}. Build the records with {option}.",
            Mistake.OTHER_TOKENIZER,
        )
    length, longest = records.info.max_seq_length, albert_config.max_position_embeddings
    if length > longest:
        raise InputError(
            f"The records of `{records.folder}` must have at most {longest} tokens, the positions "
            f"of `{model}`. Received: {length}. Build the records with "
            f"`max_seq_length={longest}`.",
            Mistake.TOO_LONG,
        )
