"""The steps of the build with Apache Beam, and how they are connected.

    ranges ─encode─▶ documents ─group equal ones─▶ keys ─┬─▶ tokens per bin ─▶ plan of the shards
                                                         └─group by shard─▶ shards ─▶ info file

Steps only share the file system: a shard is written in a temporary folder of its worker, copied to
`.beam/` in the output folder and renamed. A step that runs twice writes the same bytes.
"""

import bisect
import functools
import shutil
import tempfile
import uuid
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.document_order import BIN_BITS, document_keys, plan_shards
from data_pipeline.building.encoding import (
    LENGTH,
    encode_document,
    ids_dtype,
    range_digest,
    text_bytes,
)
from data_pipeline.building.folder import info_of, why_no_records
from data_pipeline.building.shards import shard_name, write_shard
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError
from data_pipeline.instances.masking import MaskingVocabulary
from data_pipeline.instances.segments import DocumentBlock
from data_pipeline.records.dataset_info import INFO_FILE, TOKENIZER_FOLDER
from data_pipeline.records.record_files import index_path
from data_pipeline.text import storage
from data_pipeline.text.corpus import read_range
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import TokenizerConfig

try:
    import apache_beam as beam
except ImportError:  # an optional dependency; `build_with_beam` reports it
    beam = None

#: In the output folder: a folder that exists until the build is done, and why it failed.
WORK = ".beam"
FAULT = f"{WORK}/fault"


class Job(NamedTuple):
    """The input of all steps, sent along with each of them.

    `out` is the output folder, by a name that every worker can use. A tokenizer cannot be sent, so
    its model and configuration are.
    """

    out: str
    config: PretrainingDataConfig
    model_bytes: bytes
    tokenizer_config: TokenizerConfig

    @property
    def tokenizer(self):
        return _tokenizer(self.model_bytes, self.tokenizer_config)

    @property
    def vocabulary(self):
        return _vocabulary(self.tokenizer, self.config.masking.word_start)


@functools.lru_cache(maxsize=1)
def _tokenizer(model_bytes, config):
    return Tokenizer(model_bytes, config)  # once per process


@functools.lru_cache(maxsize=1)
def _vocabulary(tokenizer, word_start):
    return MaskingVocabulary.of(tokenizer, word_start)


class _Plan(NamedTuple):
    """The shards as of `plan_shards`, none if nothing is to be written, and their first bins."""

    shards: list
    first_bins: list


def add_steps(pipeline, ranges, job):
    """Adds the steps from a corpus (list of TextRange) to a folder of records to a pipeline.

    When they have run, `job.out` contains the info file, or a file `FAULT` that says why not. If it
    contains neither, the workers write to other disks.
    """
    encoded = (
        pipeline
        | "ranges" >> beam.Create(list(enumerate(ranges)))
        | "spread" >> beam.Reshuffle()
        | "encode" >> beam.FlatMap(_encode, job).with_outputs("sources", "faults", main="documents")
    )
    faults = beam.pvalue.AsList(encoded.faults)
    documents = (
        encoded.documents
        | "typed" >> beam.Map(tuple).with_output_types(tuple[bytes, tuple[bytes, bytes]])
        | "equal documents" >> beam.GroupByKey()
        | "keys"
        >> beam.FlatMap(_number_equal, job.config.seed).with_output_types(
            tuple[bytes, bytes, bytes]
        )
    )
    plan = beam.pvalue.AsSingleton(
        documents
        | "bins" >> beam.Map(_bin_and_tokens).with_output_types(tuple[int, int])
        | "tokens per bin" >> beam.CombinePerKey(sum)
        | "all bins" >> beam.combiners.ToList()
        | "plan" >> beam.Map(_plan, faults, job.config)
    )
    shards = (
        documents
        | "shard numbers"
        >> beam.FlatMap(_with_shard, plan).with_output_types(tuple[int, tuple[bytes, bytes, bytes]])
        | "shards" >> beam.GroupByKey()
        | "write" >> beam.Map(_write_shard, plan, job)
    )
    sources, shards = beam.pvalue.AsList(encoded.sources), beam.pvalue.AsList(shards)
    _ = pipeline | "end" >> beam.Create([None]) | beam.Map(_finish, sources, shards, faults, job)


def _encode(numbered_range, job):
    """Yields (digest, (ids, lengths)) of each document; sources and faults are side outputs."""
    number, text_range = numbered_range
    counts = Counter()
    try:
        content = range_digest(text_range)
        for document in read_range(text_range):
            encoded = encode_document(document, job.tokenizer, job.config)
            counts.update(bytes=text_bytes(document), documents_without_text=int(encoded is None))
            if encoded is not None:
                sizes = {"sentences": len(encoded.lengths), "pieces": len(encoded.ids)}
                counts.update(documents=1, **sizes)
                yield encoded.digest, (encoded.ids.tobytes(), encoded.lengths.tobytes())
        yield beam.pvalue.TaggedOutput("sources", (content, dict(counts)))
    except InputError as error:  # if raised, Beam would retry the step and return a long text
        yield beam.pvalue.TaggedOutput("faults", (number, str(error)))


def _number_equal(group, seed):
    """Yields (key, ids, lengths) of equal documents; keys are big-endian bytes, so they sort."""
    digest, contents = group[0], iter(group[1])
    ids, lengths = next(contents)
    count = 1 + sum(1 for _ in contents)
    digests = np.frombuffer(digest, "<u8").reshape(1, 2).repeat(count, axis=0)
    for key in document_keys(digests, seed).tolist():
        yield key.to_bytes(8, "big"), ids, lengths


def _bin_of(key):
    return int.from_bytes(key, "big") >> (64 - BIN_BITS)


def _bin_and_tokens(document):
    key, _, lengths = document
    return _bin_of(key), int(np.frombuffer(lengths, LENGTH).sum())


def _plan(tokens_of_bins, faults, config):
    if faults or not tokens_of_bins:
        return _Plan([], [])
    bins, tokens = zip(*tokens_of_bins, strict=True)
    tokens_per_bin = np.zeros(1 << BIN_BITS, np.int64)
    tokens_per_bin[list(bins)] = tokens
    shards = plan_shards(tokens_per_bin, config.copies, config.num_shards)
    return _Plan(shards, [blocks[0].begin for blocks in shards])


def _with_shard(document, plan):
    if plan.shards:
        yield bisect.bisect(plan.first_bins, _bin_of(document[0])) - 1, document


def _write_shard(group, plan, job):
    """Writes a shard, one block at a time; returns its number, ShardInfo and counts."""
    number, documents = group
    blocks = (
        _block(documents, key_range, job.tokenizer.vocab_size) for key_range in plan.shards[number]
    )
    counts = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, shard_name(number, len(plan.shards)))
        files, settings = (path, index_path(path)), (job.config, job.vocabulary)
        info = write_shard(path.name, *files, blocks, *settings, counts)
        for file in files:
            _publish(file, job.out, file.name)
    return number, info, dict(counts)


def _block(documents, key_range, vocab_size):
    chosen = (each for each in documents if key_range.begin <= _bin_of(each[0]) < key_range.end)
    keys, ids, lengths = zip(*sorted(chosen), strict=True)
    return DocumentBlock.of(
        np.frombuffer(b"".join(ids), ids_dtype(vocab_size)).astype(np.int32),
        np.frombuffer(b"".join(lengths), LENGTH),
        [len(each) // LENGTH.itemsize for each in lengths],
        np.frombuffer(b"".join(keys), ">u8").astype(np.uint64),
    )


def _finish(_, sources, shards, faults, job):
    """Writes tokenizer and info file, or the reason why there are none."""
    counts = Counter()
    for *_, counted in (*sources, *shards):
        counts.update(counted)
    fault = min(faults)[1] if faults else why_no_records(counts, job.config)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        if fault:
            (folder / "fault").write_text(fault, encoding="utf-8")
            _publish(folder / "fault", job.out, FAULT)
            return
        job.tokenizer.save(folder / TOKENIZER_FOLDER)
        storage.make_folders(f"{job.out}/{TOKENIZER_FOLDER}")
        for file in sorted((folder / TOKENIZER_FOLDER).iterdir()):
            _publish(file, job.out, f"{TOKENIZER_FOLDER}/{file.name}")
        infos = [info for _, info, _ in sorted(shards, key=lambda shard: shard[0])]
        contents = [content for content, _ in sources]
        info_of(infos, counts, contents, job.tokenizer, job.config).save(folder)
        _publish(folder / INFO_FILE, job.out, INFO_FILE)


def _publish(file, out, name):
    """Copies a file of this worker to the output folder, where it appears complete."""
    # Two workers may be writing the same file.
    temporary = f"{out}/{WORK}/{file.name}-{uuid.uuid4().hex}"
    with open(file, "rb") as source, storage.open_to_write(temporary) as target:
        shutil.copyfileobj(source, target, storage.BUFFER_BYTES)
    storage.rename(temporary, f"{out}/{name}")
