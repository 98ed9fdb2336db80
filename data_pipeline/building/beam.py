"""The build as an Apache Beam pipeline: the same functions and bytes, on any number of machines.

This process checks the options and the folder, launches the pipeline and reports its result. The
pipeline writes the info file, so that a job completes even if the process that launched it has
ended. Its steps, and how they are connected:

    ranges ─encode─▶ documents ─group equal ones─▶ keys ─┬─▶ tokens per bin ─▶ plan of the shards
                                                         └─group by shard─▶ shards ─▶ info file

Steps only share the file system: a shard is written in a temporary folder of its worker, copied to
`.beam/` in the output folder and renamed. A step that runs twice writes the same bytes.
"""

import bisect
import contextlib
import functools
import importlib
import io
import re
import shutil
import tempfile
import time
import uuid
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from data_pipeline.building.document_order import BIN_BITS, document_keys, plan_shards
from data_pipeline.building.encoding import LENGTH, encode_documents, ids_dtype, range_digest
from data_pipeline.building.folder import BuildResult, info_of, is_result_of, warn_of_lost_text
from data_pipeline.building.sample_check import check_sample
from data_pipeline.building.shards import shard_name, write_shard
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.instances.masking import MaskingVocabulary
from data_pipeline.instances.segments import DocumentBlock
from data_pipeline.records.dataset_info import INFO_FILE, DatasetInfo
from data_pipeline.records.record_files import index_path
from data_pipeline.text import storage
from data_pipeline.text.corpus import corpus_ranges, read_range
from data_pipeline.text.sentences import check_splitter
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER, TokenizerConfig

try:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, StandardOptions
    from apache_beam.runners.runner import PipelineState
except ImportError:  # an optional dependency; `build_with_beam` reports it
    beam = None

#: In the output folder: a folder that exists until the build is done.
WORK = ".beam"
_UNFINISHED = f"{WORK}/unfinished"

#: Runners whose job server may have additional options.
_SERVER_RUNNERS = ("portablerunner", "flinkrunner", "sparkrunner", "prismrunner")
#: A document in the steps after its key is known: key, ids and lengths.
_KEYED = tuple[bytes, bytes, bytes]


def build_with_beam(
    corpus: str | Path | list,
    tokenizer: Tokenizer,
    out: str | Path,
    config: PretrainingDataConfig,
    corpus_format: str = "auto",
    beam_options: Iterable[str] = (),
) -> BuildResult:
    """Converts a corpus to a folder of pre-training records by an Apache Beam pipeline.

    The folder is identical, byte for byte, to the result of `build_records`. Two pipelines must not
    build in the same folder at the same time.

    Args:
        corpus: As in `read_corpus`. The workers must be able to read it.
        out: Folder to create, where the workers can write: `gs://bucket/records`. The files of an
            unfinished pipeline are replaced; a finished build of the same corpus and settings is
            left unchanged.
        corpus_format: As in `read_corpus`.
        beam_options: Such as "--runner=DataflowRunner" and "--project=...". Without a runner, and
            with the DirectRunner, this machine builds, with all documents in memory.

    Raises:
        InputError: If Beam is not installed or does not know an option, the corpus cannot be read
            or yields no instance, its language must be given (see `check_sample`), or `out`
            contains something else.
    """
    started = time.monotonic()
    if beam is None:
        raise InputError(
            "Building with Apache Beam needs the extra `beam`: pip install 'albert-keras[beam]'",
            Mistake.EXTRA_MISSING,
        )
    check_splitter(config.splitter, config.language)
    pipeline = _new_pipeline(list(beam_options))
    remote = storage.is_remote(out)
    path = out if remote else Path(out)
    folder = out.rstrip("/") if remote else str(path.absolute())
    ranges = corpus_ranges(corpus, corpus_format)
    names = _names_in(folder)
    if INFO_FILE in names:
        info = _read_info(folder)
        if is_result_of(info, ranges, tokenizer, config):
            if WORK in names:
                storage.remove(f"{folder}/{WORK}")
            return BuildResult(path, info, time.monotonic() - started, len(info.shards))
    _check_folder(folder, names, out)
    check_sample(ranges, tokenizer, config)

    _clear(folder)
    storage.make_folders(f"{folder}/{WORK}")
    with storage.open_to_write(f"{folder}/{_UNFINISHED}") as file:
        file.write(b"An Apache Beam pipeline is building here, or has failed.\n")
    job = Job(folder, config, tokenizer.model_bytes, tokenizer.config)
    _add_steps(pipeline, ranges, job)
    fault = _run(pipeline)
    if storage.exists(f"{folder}/{INFO_FILE}"):
        storage.remove(f"{folder}/{WORK}")
        info = _read_info(folder)
        return warn_of_lost_text(BuildResult(path, info, time.monotonic() - started, 0))
    storage.remove(folder)
    raise fault or InputError(
        f"The pipeline has ended, but `{out}` contains no {INFO_FILE}: its workers write to other "
        "disks. Choose a location that all machines can access, such as `gs://bucket/records`."
    )


def _new_pipeline(flags):
    """Creates an empty pipeline, and rejects options that Beam would silently ignore."""
    stderr = io.StringIO()
    try:
        with contextlib.redirect_stderr(stderr):
            options = PipelineOptions(flags)
            runner = options.view_as(StandardOptions).runner or "DirectRunner"
            known = options.get_all_options()
            given = options.get_all_options(retain_unknown_options=True)
        if runner.lower() not in _SERVER_RUNNERS:
            for name in sorted(given.keys() - known.keys()):
                raise InputError(f"`--{name}` is not an option of Apache Beam.")
        if runner.lower() in ("direct", "directrunner"):
            # What the DirectRunner uses after failing to download another.
            runner = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
        if runner.lower() in ("dataflow", "dataflowrunner"):
            _check_google_cloud()
        options.view_as(SetupOptions).save_main_session = False
        return beam.Pipeline(runner, options)
    except SystemExit:
        lines = stderr.getvalue().splitlines() or ["error: asked for help"]
        reason = lines[-1].partition("error: ")[2]
        raise InputError(f"Apache Beam rejects its options: {reason}.") from None
    except InputError:
        raise
    except (ValueError, AttributeError, ImportError) as error:
        reason = " ".join(str(error).split())  # Beam lists several on separate lines
        raise InputError(f"Apache Beam rejects its options: {reason}") from error


def _check_google_cloud():
    try:
        importlib.import_module("apache_beam.io.gcp.gcsio")
    except ImportError:
        raise InputError(
            "The DataflowRunner needs Apache Beam's own extra `gcp`: pip install 'apache-beam[gcp]'"
        ) from None


def _run(pipeline):
    """Runs a pipeline to its end; returns the InputError that it failed with, or None.

    Any other error is raised. The files are kept then: the pipeline may still run elsewhere.
    """
    result = None
    try:
        result = pipeline.run()
        result.wait_until_finish()
        return None
    except Exception as error:
        # An error of another process arrives as the text of its traceback.
        text = f"{type(error).__name__}: {error}"
        found = re.search(r"\bInputError: (.*?)(?: \[while running .*)?$", text, re.MULTILINE)
        if found and (result is None or PipelineState.is_terminal(result.state)):
            return InputError(found[1])
        raise


def _names_in(folder):
    if not storage.is_folder(folder):
        return []
    _, folders, files = next(storage.walk(folder))
    return [name.rstrip("/") for name in (*folders, *files)]


def _check_folder(folder, names, out):
    """Rejects a folder that contains anything else than the files of an unfinished pipeline."""
    unfinished = WORK in names and all(
        name in (WORK, TOKENIZER_FOLDER) or name.startswith("pretraining-") for name in names
    )
    if (names and not unfinished) or (storage.exists(folder) and not storage.is_folder(folder)):
        raise InputError(
            f"`{out}` is not empty, and nothing is ever overwritten. "
            "Remove it or choose another `out`.",
            Mistake.OUTPUT_EXISTS,
        )


def _clear(folder):
    for name in _names_in(folder):
        storage.remove(f"{folder}/{name}")


def _read_info(folder):
    with tempfile.TemporaryDirectory() as copy:
        with storage.open_to_read(f"{folder}/{INFO_FILE}") as file:
            Path(copy, INFO_FILE).write_bytes(file.read())
        return DatasetInfo.read(copy)


class Job(NamedTuple):
    """The input of all steps, sent along with each of them."""

    out: str  # the output folder, by a name that every worker can use
    config: PretrainingDataConfig
    model_bytes: bytes  # of the tokenizer, which cannot be sent itself
    tokenizer_config: TokenizerConfig


@functools.lru_cache(maxsize=1)
def _tools_of(job):
    """Returns the tokenizer of a job and what masking depends on, made once in each process."""
    tokenizer = Tokenizer(job.model_bytes, job.tokenizer_config)
    return tokenizer, MaskingVocabulary.of(tokenizer, job.config.masking.word_start)


def _add_steps(pipeline, ranges, job):
    """Adds the steps from a corpus (list of TextRange) to a folder of records to a pipeline.

    When they have run, `job.out` contains the info file, unless the workers write to other disks.
    """
    encoded = (
        pipeline
        | "ranges" >> beam.Create(list(enumerate(ranges)))
        | "spread" >> beam.Reshuffle()
        | "encode" >> beam.FlatMap(_encode, job).with_outputs("sources", main="documents")
    )
    documents = (
        encoded.documents
        | "typed" >> beam.Map(tuple).with_output_types(tuple[bytes, tuple[bytes, bytes]])
        | "equal documents" >> beam.GroupByKey()
        | "keys" >> beam.FlatMap(_number_equal, job.config.seed).with_output_types(_KEYED)
    )
    plan = beam.pvalue.AsSingleton(
        documents
        | "bins" >> beam.Map(_bin_and_tokens).with_output_types(tuple[int, int])
        | "tokens per bin" >> beam.CombinePerKey(sum)
        | "all bins" >> beam.combiners.ToList()
        | "plan" >> beam.Map(_plan, job.config)
    )
    shards = (
        documents
        | "shard numbers" >> beam.FlatMap(_with_shard, plan).with_output_types(tuple[int, _KEYED])
        | "shards" >> beam.GroupByKey()
        | "write" >> beam.Map(_write_shard, plan, job)
    )
    sources, shards = beam.pvalue.AsList(encoded.sources), beam.pvalue.AsList(shards)
    _ = pipeline | "end" >> beam.Create([None]) | beam.Map(_finish, sources, shards, job)


def _encode(numbered_range, job):
    """Yields (digest, (ids, lengths)) of each document; sources are a side output."""
    number, text_range = numbered_range
    tokenizer, _ = _tools_of(job)
    counts = Counter()
    content = range_digest(text_range)
    for one in encode_documents(read_range(text_range), tokenizer, job.config, counts):
        yield one.digest, (one.ids.tobytes(), one.lengths.tobytes())
    yield beam.pvalue.TaggedOutput("sources", (number, [content], dict(counts)))


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


def _plan(tokens_of_bins, config):
    """Returns the shards as `plan_shards` does, none if nothing is to be written."""
    if not tokens_of_bins:
        return []
    bins, tokens = zip(*tokens_of_bins, strict=True)
    tokens_per_bin = np.zeros(1 << BIN_BITS, np.int64)
    tokens_per_bin[list(bins)] = tokens
    return plan_shards(tokens_per_bin, config.copies, config.num_shards)


def _with_shard(document, plan):
    if plan:
        bin = _bin_of(document[0])
        yield bisect.bisect(plan, bin, key=lambda blocks: blocks[0].begin) - 1, document


def _write_shard(group, plan, job):
    """Writes a shard, one block at a time; returns its number, ShardInfo and counts."""
    number, documents = group
    tokenizer, vocabulary = _tools_of(job)
    blocks = (_block(documents, key_range, tokenizer.vocab_size) for key_range in plan[number])
    counts = Counter()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, shard_name(number, len(plan)))
        files = path, index_path(path)
        info = write_shard(path.name, *files, blocks, job.config, vocabulary, counts)
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


def _finish(_, sources, shards, job):
    """Writes tokenizer and info file."""
    tokenizer, _ = _tools_of(job)
    info = info_of(sources, shards, tokenizer, job.config)
    with tempfile.TemporaryDirectory() as folder:
        folder = Path(folder)
        tokenizer.save(folder / TOKENIZER_FOLDER)
        storage.make_folders(f"{job.out}/{TOKENIZER_FOLDER}")
        for file in sorted((folder / TOKENIZER_FOLDER).iterdir()):
            _publish(file, job.out, f"{TOKENIZER_FOLDER}/{file.name}")
        info.save(folder)
        _publish(folder / INFO_FILE, job.out, INFO_FILE)


def _publish(file, out, name):
    """Copies a file of this worker to the output folder, where it appears complete."""
    # Two workers may be writing the same file.
    temporary = f"{out}/{WORK}/{file.name}-{uuid.uuid4().hex}"
    with open(file, "rb") as source, storage.open_to_write(temporary) as target:
        shutil.copyfileobj(source, target, storage.BUFFER_BYTES)
    storage.rename(temporary, f"{out}/{name}")
