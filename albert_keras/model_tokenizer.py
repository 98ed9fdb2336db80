"""The tokenizer of a model, for records and tables that the model will read."""

from pathlib import Path

from albert_keras.serving.layout import versions
from albert_keras.shipped_models import find_model
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer


def load_tokenizer(path: str | Path) -> Tokenizer:
    """Loads a tokenizer, or the tokenizer of a model.

    Args:
        path: str or Path. A tokenizer, as in `Tokenizer.load`; or the folder of a run, of a
            fine-tuning, of a converted model or of an export, whose newest version counts; or the
            name of a shipped model.

    Raises:
        InputError: If there is no tokenizer, or it is damaged.

    Example:
        load_tokenizer("albert-mini-en").encode("The ship sailed.")
    """
    path = find_model(path)
    newest = [path / str(version) for version in versions(path)[-1:]]
    folders = [path, *sorted(path.glob("seed-*")), *newest]
    found = (folder / TOKENIZER_FOLDER for folder in folders)
    return Tokenizer.load(next((folder for folder in found if folder.is_dir()), path))
