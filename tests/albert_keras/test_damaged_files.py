"""Files of every kind that the program reads, with flipped bits, cuts and hostile values.

Each kind has a process of its own, with limits of memory and time, so that an abort or an endless
loop of a library is a failure too. Every case must be read or end with an InputError.
"""

import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from data_pipeline.child_processes import environment

_CASES = 250
_SECONDS = 600
_MEMORY = 2 * 2**30
#: Words that are put into text files, as whole lines, values or names.
_WORDS = (
    b"[" * 100_000,
    b"1e30",
    b"-1",
    b"9" * 5000,
    b"null",
    b"NaN",
    b'{"a": {}}',
    b"\xff",
    b"\0",
)


def mutated(content: bytes, rng) -> bytes:
    """Returns the bytes with flipped bits, a cut, a repeated part or a hostile word."""
    if not content:
        return content
    kind = rng.integers(5)
    begin, end = sorted(int(place) for place in rng.integers(len(content) + 1, size=2))
    if kind == 0:
        changed = bytearray(content)
        for place in rng.integers(len(content), size=int(rng.integers(1, 9))):
            changed[place] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    if kind == 1:
        return content[:begin]
    if kind == 2:
        return content[:begin] + content[end:]
    if kind == 3:
        return content[:end] + content[begin:]
    word = _WORDS[rng.integers(len(_WORDS))]
    # In front of a digit or a quote, so that many cases stay valid JSON or YAML.
    places = [place for place in range(begin, len(content)) if content[place] in b'0123456789"'][:1]
    place = places[0] if places else begin
    return content[:place] + word + content[place + int(rng.integers(2)) :]


def example(kind, folder):
    """Writes an example of a kind; returns the file to damage and a function that reads it."""
    if kind == "yaml":
        from albert_keras.cli.arguments import read_values

        path = folder / "config.yaml"
        path.write_text("model:\n  hidden_size: 8\ntraining: {steps: 5, seed: 3}\nlist: [1, 'a']\n")
        return path, lambda: read_values(path)
    if kind == "albert_config.json":
        from albert_keras.config import AlbertConfig

        path = folder / kind
        AlbertConfig().save(path)
        return path, lambda: AlbertConfig.from_json_file(path)
    if kind == "dataset_info.json":
        from data_pipeline.records.dataset_info import DatasetInfo

        info = DatasetInfo(max_seq_length=8, max_predictions_per_seq=2, vocab_size=9, shards=[])
        path = folder / kind
        path.write_text(info.model_dump_json(indent=2))
        return path, lambda: DatasetInfo.read(folder)
    if kind == "safetensors":
        from albert_keras.interop.safetensors_file import read_safetensors, write_safetensors

        path = folder / "model.safetensors"
        write_safetensors(path, {"a": np.ones((3, 4), np.float32), "b": np.arange(5)})
        return path, lambda: read_safetensors(path)
    if kind == "hdf5":
        from albert_keras.interop.keras_nlp_preset import read_arrays, write_arrays

        path = folder / "model.weights.h5"
        arrays = {f"layers/dense_{n}/vars/0": np.ones((n, 4), np.float32) for n in range(1, 9)}
        write_arrays(path, arrays)
        return path, lambda: read_arrays(path)
    if kind == "keras":
        from albert_keras.config import AlbertConfig
        from albert_keras.models.encoder import AlbertEncoder
        from albert_keras.weights.load import open_keras_file

        path, sizes = folder / "encoder.keras", {"hidden_size": 8, "num_attention_heads": 2}
        sizes |= {"embedding_size": 4, "intermediate_size": 12, "num_hidden_layers": 1}
        AlbertEncoder(AlbertConfig(vocab_size=20, max_position_embeddings=9, **sizes)).save(path)
        return path, lambda: open_keras_file(path)
    if kind == "sentencepiece":
        from data_pipeline.tokenizers.tokenization import Tokenizer
        from data_pipeline.tokenizers.vocabulary import train_vocabulary

        text = [f"The number {number} is a word in a line." for number in range(300)]
        train_vocabulary(text, folder / "tokenizer", size=120)
        path = folder / "tokenizer" / "tokenizer.model"
        return path, lambda: Tokenizer.load(path).encode("The number 12 is é.")
    raise ValueError(kind)


KINDS = ("yaml", "albert_config.json", "dataset_info.json", "safetensors", "hdf5", "keras")
KINDS += ("sentencepiece",)


def main(kind, folder):
    """Damages an example again and again, in this process."""
    from data_pipeline.errors import InputError

    path, read = example(kind, Path(folder))
    resource.setrlimit(resource.RLIMIT_DATA, (_MEMORY, _MEMORY))
    read()
    content, rng = path.read_bytes(), np.random.default_rng(7)
    for case in range(_CASES):
        Path(folder, "case").write_text(str(case))
        path.write_bytes(mutated(content, rng))
        try:
            read()
        except InputError:
            pass


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files_are_read_or_refused(kind, tmp_path):
    code = (
        f"import sys; sys.path.insert(0, {str(Path(__file__).parents[2])!r}); "
        f"from tests.albert_keras.test_damaged_files import main; main({kind!r}, sys.argv[1])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path],
        env=environment(TF_CPP_MIN_LOG_LEVEL="3"),
        capture_output=True,
        text=True,
        timeout=_SECONDS,
    )
    case = (tmp_path / "case").read_text() if (tmp_path / "case").exists() else "none"
    assert done.returncode == 0, f"case {case}: exit code {done.returncode}\n{done.stderr[-2000:]}"
