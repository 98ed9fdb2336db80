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
from data_pipeline.records.schema import PRETRAINING_FEATURES
from data_pipeline.text import storage
from data_pipeline.text.corpus import read_corpus, write_jsonl
from data_pipeline.text.installed_docs import installed_documentation
from data_pipeline.text.text_files import find_files
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary

_BATCH = 256
_UNMASKED = "unmasked-00000-of-00001.tfrecord"


def write_documentation(folder):
    """Writes the documentation of the installed Python packages as JSON lines: Path of the file."""
    path = Path(folder, "documentation.jsonl")
    write_jsonl(installed_documentation(), path)
    return path


def train_on(corpus, corpus_format, vocab_size, out):
    """Trains a vocabulary of at most `vocab_size` pieces on a corpus: Path of its folder."""
    paragraphs = (
        paragraph
        for document in read_corpus(corpus, corpus_format)
        for paragraph in document.paragraphs
    )
    return train_vocabulary(paragraphs, out, vocab_size, hard_limit=False).path


def build_documentation(folder, vocab_size=8000):
    """Builds records of 512 tokens from the documentation: Path of their folder."""
    corpus = write_documentation(folder)
    tokenizer = Tokenizer.load(train_on([corpus], "auto", vocab_size, Path(folder, "tokenizer")))
    return build_records([corpus], tokenizer, Path(folder, "records"), PretrainingDataConfig()).path


def repeat_files(corpus, megabytes, folder):
    """Copies the files of a corpus into a new folder, repeatedly, until they are large enough."""
    folder.mkdir()
    files, size = find_files(corpus), 0
    sizes = [storage.size_of(file.path) for file in files]
    for number in itertools.count():
        file = files[number % len(files)]
        target = folder / f"{number:06d}-{PurePath(file.path).name}"
        with storage.open_to_read(file.path) as source, open(target, "wb") as copy:
            shutil.copyfileobj(source, copy)
        size += sizes[number % len(files)]
        if size >= megabytes * 1e6 or not sum(sizes):
            return


def copy_unmasked(records, folder, count):
    """Copies the first `count` of some RecordFiles without masks, as with `static_masks=false`.

    Returns:
        Path of the folder.
    """
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
