"""A `.keras` file cannot read other files into weights, nor unpack or describe more than it has."""

import io
import json
import zipfile

import h5py
import numpy as np
import pytest

from albert_keras.config import AlbertConfig
from albert_keras.formats.keras_file import KerasFile
from albert_keras.models.encoder import AlbertEncoder
from data_pipeline.errors import InputError
from tests.albert_keras.formats.random_weights import SMALL

CONFIG = AlbertConfig(**SMALL)
SECRET = np.arange(32, dtype=np.float32).tobytes()
WEIGHTS, SHAPE = "model.weights.h5", "config.json"


@pytest.fixture(scope="module")
def members(tmp_path_factory):
    """Returns the files in a `.keras` file, name -> bytes."""
    path = tmp_path_factory.mktemp("keras") / "encoder.keras"
    AlbertEncoder(CONFIG).save(path)
    with zipfile.ZipFile(path) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.fixture
def pack(members, tmp_path):
    """Returns a function that writes a `.keras` file with some members changed."""

    def pack(changes=(), **options):
        path = tmp_path / "model.keras"
        with zipfile.ZipFile(path, "w", **options) as archive:
            for name, content in (members | dict(changes)).items():
                archive.writestr(name, content)
        return path

    return pack


@pytest.fixture
def pooler(members):
    """Returns the name of the pooler's kernel, float32 [8, 8], in the HDF5 file."""
    names = []
    with h5py.File(io.BytesIO(members[WEIGHTS])) as file:
        file.visititems(lambda name, item: names.append(name) if is_kernel(name, item) else None)
    (name,) = names
    return name


def is_kernel(name, item):
    return isinstance(item, h5py.Dataset) and item.shape == (8, 8) and "pooler" in name


def external(file, name, secret):
    file.create_dataset(name, (8, 8), "f4", external=[(str(secret), 0, h5py.h5f.UNLIMITED)])


def virtual(file, name, secret):
    with h5py.File(f"{secret}.h5", "w") as other:
        other["x"] = np.ones((8, 8), np.float32)
    layout = h5py.VirtualLayout((8, 8), np.float32)
    layout[:] = h5py.VirtualSource(f"{secret}.h5", "x", (8, 8))
    file.create_virtual_dataset(name, layout)


def external_link(file, name, secret):
    with h5py.File(f"{secret}.h5", "w") as other:
        other["x"] = np.ones((8, 8), np.float32)
    file[name] = h5py.ExternalLink(f"{secret}.h5", "x")


def fill_value(file, name, secret):
    file.create_dataset(name, (10**6, 10**6), "f4", fillvalue=1.0)


def many_names(file, name, secret):
    file[name] = np.ones((1000, 1000), np.float32)
    for number in range(20):
        file[f"{name}{number}"] = file[name]


@pytest.mark.parametrize(
    "change",
    [external, virtual, external_link, fill_value, many_names],
    ids=lambda change: change.__name__,
)
def test_weights_are_in_the_file_itself(change, members, pack, pooler, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(SECRET * 2)
    content = io.BytesIO(members[WEIGHTS])
    with h5py.File(content, "a") as file:
        del file[pooler]
        change(file, pooler, secret)
    path = pack({WEIGHTS: content.getvalue()})
    for read in (lambda: KerasFile(path).shapes, KerasFile(path).load):
        with pytest.raises(InputError, match="must be a plain array|4 times the size of the file"):
            read()


def test_what_keras_writes_is_loaded(pack):
    path = pack()
    assert KerasFile(path).albert_config == CONFIG
    assert KerasFile(path).shapes["bert/pooler/dense/kernel"] == [8, 8]
    assert KerasFile(pack(compression=zipfile.ZIP_DEFLATED)).shapes


def test_an_archive_that_unpacks_to_far_more_is_refused(pack):
    bomb = pack({WEIGHTS: bytes(10**8)}, compression=zipfile.ZIP_DEFLATED)
    with pytest.raises(InputError, match="must unpack to at most .* bytes, 16 times its size"):
        KerasFile(bomb)
    with pytest.raises(InputError, match="and nothing else. Received: assets/a"):
        KerasFile(pack({"assets/a": b""}))


@pytest.mark.parametrize("tokenizer", [{"model": ""}, {"config": 1, "model": ""}, "folder", None])
def test_a_damaged_tokenizer_is_refused(tokenizer, members, pack):
    content = json.loads(members[SHAPE])
    content["config"]["preprocessor"] = {"tokenizer": tokenizer}
    with pytest.raises(InputError, match="The tokenizer of .*model.keras` is damaged"):
        KerasFile(pack({SHAPE: json.dumps(content)})).tokenizer()
