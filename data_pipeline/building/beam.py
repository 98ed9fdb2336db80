"""The build as an Apache Beam pipeline: the same functions and bytes, on any number of machines.

This process checks the options and the folder, launches the pipeline and reports its result; the
steps are in `beam_steps.py`. The pipeline writes the info file, so that a job completes even if the
process that launched it has ended.
"""

import contextlib
import importlib
import io
import re
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from data_pipeline.building.beam_steps import FAULT, WORK, Job, add_steps
from data_pipeline.building.folder import BuildResult, is_result_of, warn_of_lost_text
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.records.dataset_info import INFO_FILE, TOKENIZER_FOLDER, DatasetInfo
from data_pipeline.text import storage
from data_pipeline.text.corpus import corpus_ranges
from data_pipeline.text.sentences import check_splitter
from data_pipeline.tokenizers.tokenization import Tokenizer

try:
    import apache_beam as beam
    from apache_beam.options.pipeline_options import PipelineOptions, SetupOptions, StandardOptions
    from apache_beam.runners.runner import PipelineState
except ImportError:  # an optional dependency; `build_with_beam` reports it
    beam = None

_UNFINISHED = f"{WORK}/unfinished"

#: Runners whose job server may have additional options.
_SERVER_RUNNERS = ("portablerunner", "flinkrunner", "sparkrunner", "prismrunner")


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
            or yields no instance, or `out` contains something else.
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
        if is_result_of(info, ranges, tokenizer, config) and _has_shards_of(info, folder):
            if WORK in names:
                storage.remove_folder(f"{folder}/{WORK}")
            return BuildResult(path, info, time.monotonic() - started, len(info.shards))
    _check_folder(folder, names, out)

    missing = _highest_missing(folder)
    _clear(folder)
    storage.make_folders(f"{folder}/{WORK}")
    with storage.open_to_write(f"{folder}/{_UNFINISHED}") as file:
        file.write(b"An Apache Beam pipeline is building here, or has failed.\n")
    job = Job(folder, config, tokenizer.model_bytes, tokenizer.config)
    add_steps(pipeline, ranges, job)
    fault = _run(pipeline)
    if storage.exists(f"{folder}/{INFO_FILE}"):
        storage.remove_folder(f"{folder}/{WORK}")
        info = _read_info(folder)
        return warn_of_lost_text(BuildResult(path, info, time.monotonic() - started, 0))
    if storage.exists(f"{folder}/{FAULT}"):
        with storage.open_to_read(f"{folder}/{FAULT}") as file:
            fault = InputError(file.read().decode())
    _clear(folder)
    if missing and not any(files for _, _, files in storage.walk(missing)):
        storage.remove_folder(missing)
    raise fault or InputError(
        f"The pipeline has ended, but `{out}` contains no {INFO_FILE}: its workers write to other "
        "disks. Choose a location that all machines can access, such as `gs://bucket/records`."
    )


def _new_pipeline(flags):
    """Creates an empty pipeline, and rejects options that Beam would silently ignore."""
    for flag in flags:
        if not flag.startswith("--"):
            raise InputError(f"A Beam option must be written `--name=value`. Received: {flag!r}.")
    stderr = io.StringIO()
    try:
        with contextlib.redirect_stderr(stderr):
            options = PipelineOptions(flags)
            runner = options.view_as(StandardOptions).runner or "DirectRunner"
            module, _, name = runner.rpartition(".")
            if module:  # the class of a runner; its module may define options
                importlib.import_module(module)
            known = options.get_all_options()
            given = options.get_all_options(retain_unknown_options=True)
        kind = name.lower().removesuffix("runner")
        if name.lower() not in _SERVER_RUNNERS:
            for name in sorted(given.keys() - known.keys()):
                raise InputError(f"`--{name}` is not an option of Apache Beam.")
        if kind.endswith("direct"):
            # What the DirectRunner uses after failing to download another.
            runner = "apache_beam.runners.portability.fn_api_runner.FnApiRunner"
        if kind.endswith("dataflow"):
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
            "Remove it or choose another --out.",
            Mistake.OUTPUT_EXISTS,
        )


def _clear(folder):
    for name in _names_in(folder):
        if name in (WORK, TOKENIZER_FOLDER):
            storage.remove_folder(f"{folder}/{name}")
        else:
            storage.remove(f"{folder}/{name}")


def _highest_missing(folder):
    """Returns the folder, or the highest of its parents, that does not exist yet, or None."""
    if storage.is_remote(folder):
        return None if storage.exists(folder) else folder
    missing = [path for path in (Path(folder), *Path(folder).parents) if not path.exists()]
    return str(missing[-1]) if missing else None


def _read_info(folder):
    with tempfile.TemporaryDirectory() as copy:
        with storage.open_to_read(f"{folder}/{INFO_FILE}") as file:
            Path(copy, INFO_FILE).write_bytes(file.read())
        return DatasetInfo.read(copy)


def _has_shards_of(info, folder):
    paths = [(f"{folder}/{shard.file}", shard.num_bytes) for shard in info.shards]
    return all(storage.exists(path) and storage.size_of(path) == size for path, size in paths)
