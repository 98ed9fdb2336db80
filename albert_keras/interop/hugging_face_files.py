"""The files in a folder of Hugging Face: weights in one file or several, and tokenizers."""

from pathlib import Path

from albert_keras.interop.hugging_face_config import read_values
from albert_keras.interop.safetensors_file import read_safetensors
from albert_keras.interop.torch_file import read_torch_file
from data_pipeline.errors import InputError

CONFIG, WEIGHTS = "config.json", "model.safetensors"
_PICKLE = "pytorch_model.bin"
_INDEX = ".index.json"
#: What weights may lie in, the best first.
_SOURCES = (WEIGHTS, WEIGHTS + _INDEX, _PICKLE, _PICKLE + _INDEX)
#: Files of tokenizers, of SentencePiece and of WordPiece.
TOKENIZER_FILES = (
    "spiece.model",
    "vocab.txt",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "added_tokens.json",
)


def find_weights(folder):
    """Returns the file with the weights, or the one that lists their files; None without one."""
    return next((Path(folder, name) for name in _SOURCES if Path(folder, name).is_file()), None)


def read_weights(folder, trust_pickle=False):
    """Reads all tensors of a folder.

    Args:
        folder: Path.
        trust_pickle: bool. Whether `pytorch_model.bin` may be read, see `read_torch_file`.

    Returns:
        dict of name -> array.

    Raises:
        InputError: If there are none, they cannot be read, or the list of files does not fit.
    """
    path = find_weights(folder)
    if path is None:
        raise InputError(f"`{folder}` should hold weights: {WEIGHTS} or {_PICKLE}. It does not.")
    if not path.name.endswith(_INDEX):
        return _read_file(path, trust_pickle)
    files = _listed_files(path)
    tensors = {}
    for name in sorted(set(files.values())):
        found = _read_file(folder / name, trust_pickle)
        listed = {tensor for tensor, file in files.items() if file == name}
        if found.keys() != listed:
            difference = ", ".join(sorted(found.keys() ^ listed))
            raise InputError(f"`{path}` and `{name}` should name the same tensors: {difference}.")
        tensors |= found
    return tensors


def read_tokenizer_files(folder):
    """Returns the files of a tokenizer that are there: dict of name -> bytes."""
    paths = [Path(folder, name) for name in TOKENIZER_FILES]
    return {path.name: path.read_bytes() for path in paths if path.is_file()}


def require_plain(name, where):
    """Refuses a file's name that leads anywhere else than into its folder.

    Args:
        name: str. As a file of others has it.
        where: str or Path. What names it, for the message.

    Raises:
        InputError: If it is one.
    """
    is_plain = isinstance(name, str) and name not in ("", ".", "..")
    if not is_plain or any(mark in name for mark in "/\\:\0"):
        raise InputError(f"`{where}` should name files of its own folder. Received: {name!r}.")


def _listed_files(path):
    """Returns the list of files: dict of tensor's name -> file's name."""
    files = read_values(path).get("weight_map")
    if not isinstance(files, dict) or not files:
        raise InputError(f"`{path}` should hold a `weight_map`. It does not.")
    for name in files.values():
        require_plain(name, path)
    return files


def _read_file(path, trust_pickle):
    if path.suffix == ".safetensors":
        return read_safetensors(path)
    return read_torch_file(path, trust_pickle)
