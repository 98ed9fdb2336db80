"""What benchmarks of data read: a corpus and records made of the documentation of packages."""

import itertools
import shutil
from pathlib import Path, PurePath

import numpy as np

from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.files import sha256_of
from data_pipeline.instances.masking import unmask
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER, ShardInfo
from data_pipeline.records.examples import decode_instance, encode_instances
from data_pipeline.records.record_files import RecordWriter, index_path, write_index
from data_pipeline.records.record_folder import RecordFiles
from data_pipeline.records.schema import PRETRAINING_FEATURES
from data_pipeline.text import storage
from data_pipeline.text.corpus import read_corpus, write_jsonl
from data_pipeline.text.installed_docs import installed_documentation
from data_pipeline.text.text_files import find_files
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary

_BATCH = 256
_UNMASKED = "unmasked-00000-of-00001.tfrecord"


def write_documentation(folder: str | Path) -> Path:
    """Writes the documentation of the installed Python packages as a file of JSON lines."""
    path = Path(folder, "documentation.jsonl")
    write_jsonl(installed_documentation(), path)
    return path


def train_on(corpus, corpus_format: str, vocab_size: int, out: Path) -> Path:
    """Trains a vocabulary of at most `vocab_size` pieces on a corpus; returns its folder."""
    paragraphs = (
        paragraph
        for document in read_corpus(corpus, corpus_format)
        for paragraph in document.paragraphs
    )
    return train_vocabulary(paragraphs, out, vocab_size, hard_limit=False).path


def build_documentation(folder: str | Path, vocab_size=8000) -> Path:
    """Builds records of 512 tokens from the documentation; returns their folder."""
    corpus = write_documentation(folder)
    tokenizer = Tokenizer.load(train_on([corpus], "auto", vocab_size, Path(folder, "tokenizer")))
    return build_records([corpus], tokenizer, Path(folder, "records"), PretrainingDataConfig()).path


def repeat_files(corpus, megabytes: float, folder: Path):
    """Copies the files of a corpus into a new folder, repeatedly, until they are large enough."""
    folder.mkdir()
    paths, size = [file.path for file in find_files(corpus)], 0
    for number, path in enumerate(itertools.cycle(paths)):
        target = folder / f"{number:06d}-{PurePath(path).name}"
        with storage.open_to_read(path) as source, open(target, "wb") as copy:
            shutil.copyfileobj(source, copy)
        size += target.stat().st_size
        if size >= megabytes * 1e6 or (size == 0 and number + 1 == len(paths)):
            return


def copy_unmasked(records: RecordFiles, folder: str | Path, count: int) -> Path:
    """Copies the first `count` records without masks, as with `static_masks=false`."""
    folder, count = Path(folder), min(count, len(records))
    path = folder / _UNMASKED
    with RecordWriter(path) as writer:
        for begin in range(0, count, _BATCH):
            numbers = np.arange(begin, min(begin + _BATCH, count))
            decoded = [decode_instance(record) for record in records.read(numbers)]
            features = {
                name: np.stack([example[name] for example in decoded])
                for name in PRETRAINING_FEATURES
                if name in decoded[0]
            }
            masks = [name for name in features if name.startswith("masked_lm_")]
            features["input_ids"] = unmask(features["input_ids"], *map(features.get, masks))
            features |= {name: np.zeros_like(features[name]) for name in masks}
            writer.write(encode_instances(features))
    write_index(index_path(path), writer.offsets)
    shard = ShardInfo.of(_UNMASKED, writer.offsets, writer.sha256, sha256_of(index_path(path)))
    shutil.copytree(records.folder / TOKENIZER_FOLDER, folder / TOKENIZER_FOLDER)
    config = records.info.config | {"static_masks": False}
    records.info.replace(shards=(shard,), config=config).save(folder)
    return folder
