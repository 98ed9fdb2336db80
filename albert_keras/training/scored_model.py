"""A pre-trained model that is scored on records: the model of a run, or any other weights."""

from pathlib import Path
from typing import NamedTuple

from albert_keras.config import AlbertConfig
from albert_keras.formats.open_model import open_model
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.run import Run
from data_pipeline.errors import InputError, Mistake
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_files import RecordFiles


class ScoredModel(NamedTuple):
    """A pre-trained model, not yet loaded."""

    weights: OpenedModel
    run: Run | None  # None if the weights do not come from a run

    def check_records(self, records: RecordFiles) -> None:
        """Raises InputError unless the model can read records."""
        weights, run = self.weights, self.run
        digest = weights.tokenizer.digest if run is None else run.record["tokenizer_digest"]
        check_records(records, weights.path, weights.albert_config, digest)

    def piece_of(self, piece_id: int) -> str:
        """Returns a piece, or its id if the model has no tokenizer."""
        weights = self.weights
        return weights.tokenizer.piece_of(piece_id) if weights.has_tokenizer else str(piece_id)

    def load(self) -> AlbertForPretraining:
        """Builds the model with its weights; call it in the scope of a strategy."""
        if self.run is not None:
            return self.run.load_model(self.weights.step)
        return AlbertForPretraining.from_preset(self.weights, dtype="float32")


def open_scored_model(path: str | Path, step: int | str | None = None) -> ScoredModel:
    """Finds a pre-trained model to score; the arguments are those of `open_model`.

    Raises:
        InputError: If there is no such model, or it has no masked-LM head.
    """
    weights = open_model(path, step)
    if "masked_lm" not in weights.heads:
        raise InputError(
            f"`{path}` must be a pre-trained model with a masked-LM head, to be scored on records. "
            f"Received: heads {', '.join(weights.heads) or 'none'}."
        )
    return ScoredModel(weights, Run.open(weights.place) if weights.kind == "run" else None)


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
