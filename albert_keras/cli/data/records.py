"""`albert-keras data inspect`, `verify` and `adopt`: commands on a folder of records."""

from pathlib import Path

from albert_keras.cli.command import Output, command
from albert_keras.report import count_of
from data_pipeline.errors import InputError


@command("data_pipeline.reports.inspection:inspect_records")
def inspect(call):
    """Print statistics of a random sample, and examples as text.

    Example:
      albert-keras data inspect records/ --examples 5

    Options:
      folder <RECORDS>: Folder of records.
      examples {0..}: Records to print as text.
      seed {0..}: Random seed of the sample.
      sample {1..}: Records in the random sample.
    """
    seen = call()
    return Output(seen, _inspection_lines(seen))


def _inspection_lines(seen):
    yield f"{count_of(seen.num_records, 'record')}, sample of {seen.num_sampled}: {seen.folder}"
    yield from (f"  {name:19}  {text}" for name, text in seen.findings())
    for example in seen.examples:
        yield ""
        padding = f", {count_of(example.padding, 'padding position')}" if example.padding else ""
        yield f"record {example.record}, order: {example.order}{padding}"
        for segment in example.segments:
            yield f"  {segment}"


@command()
def verify(records: Path):
    """Check every byte of the records and report all problems.

    Example:
      albert-keras data verify records/

    Options:
      records <RECORDS>: Folder of records.
    """
    from data_pipeline.reports.inspection import verify_records

    found = verify_records(records)
    speed = found.num_bytes / 1e6 / max(found.seconds, 1e-9)
    line = (
        f"no problems: {count_of(found.num_records, 'record')} in "
        f"{count_of(found.num_shards, 'shard')}, "
        f"{found.num_bytes / 1e6:.1f} MB at {speed:.0f} MB/s: {found.folder}"
    )
    if not found.problems:
        return Output(found, [line])
    title = f"{count_of(len(found.problems), 'problem')} in `{found.folder}`:"
    return Output(found, [], InputError("\n  ".join([title, *map(str, found.problems)])))


@command("data_pipeline.records.adoption:adopt_records")
def adopt(call, tokenizer: Path | None = None):
    """Adopt records of ALBERT, BERT, tensorflow/models or NVIDIA.

    All records are checked, and the missing dataset_info.json is written.

    Example:
      albert-keras data adopt records/ --tokenizer 30k-clean.model

    Options:
      folder <FOLDER>: Folder of record files.
      tokenizer
      vocab_size: Size of the vocabulary, if there is no tokenizer.
      objective (as in the program that wrote them): Meaning of label 1: sop (swapped), nsp (random
        second segment) or none.
    """
    from albert_keras.formats.vocabulary import load_tokenizer
    from data_pipeline.records.adoption import LABELS

    folder = call.given["folder"]
    loaded = load_tokenizer(tokenizer) if tokenizer else None
    info = call(tokenizer=loaded)
    names = "num_records", "fingerprint", "max_seq_length", "max_predictions_per_seq", "objective"
    values = {"path": folder, "written_by": info.builder_version}
    values |= {name: getattr(info, name) for name in names}
    lines = [
        f"{info.num_records} records of {info.max_seq_length} tokens, "
        f"{info.max_predictions_per_seq} of them masked, written by {info.builder_version}",
        f"label 1 means: {LABELS[info.objective]} (change it with --objective)",
        f"{count_of(len(info.shards), 'file')} ready for training: {folder}",
    ]
    return Output(values, lines)
