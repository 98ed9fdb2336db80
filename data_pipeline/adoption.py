"""Records made by other programs, google-research/albert first of all: the missing info file."""

from pathlib import Path

from data_pipeline.dataset_info import INFO_FILE, TOKENIZER_FOLDER, DatasetInfo, ShardInfo
from data_pipeline.decoding import decode_batch
from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of, whole_folder
from data_pipeline.record_files import map_file, record_edges


def adopt_records(
    folder,
    max_seq_length,
    max_predictions_per_seq,
    tokenizer=None,
    vocab_size=None,
    pattern="*.tfrecord*",
    objective="sop",
):
    """Writes `dataset_info.json` for record files that came without one.

    The files stay as they are. Records need the features of `PRETRAINING_FEATURES`, fixed length;
    `token_boundary` may be absent and others may be there.

    Args:
        folder: str or Path. Where the files lie.
        max_seq_length: int. S of the program that wrote them.
        max_predictions_per_seq: int. P of it.
        tokenizer: Tokenizer or None. The one they were made with, copied beside them; without it
            a model can be trained on them but not exported.
        vocab_size: int or None. Number of pieces; needed if `tokenizer` is None.
        pattern: str. Which files are records.
        objective: str. "sop" or "nsp".

    Returns:
        DatasetInfo.

    Raises:
        InputError: If there are no such files, they already have an info file, or a record does
            not have these lengths or holds ids beyond the vocabulary.
    """
    folder = Path(folder)
    paths = sorted(path for path in folder.glob(pattern) if path.is_file())
    if not paths:
        raise InputError(f"`{folder}` holds no file that matches `{pattern}`.")
    if (folder / INFO_FILE).exists():
        raise InputError(f"`{folder}` has a {INFO_FILE} already.")
    vocab_size = tokenizer.vocab_size if tokenizer else vocab_size
    if not vocab_size:
        raise InputError("`vocab_size` is needed when no tokenizer is given.")

    info = DatasetInfo(
        max_seq_length=max_seq_length,
        max_predictions_per_seq=max_predictions_per_seq,
        vocab_size=vocab_size,
        tokenizer_digest=tokenizer.digest if tokenizer else None,
        objective=objective,
        shards=(),
    )
    shards = []
    for path in paths:
        data = map_file(path)
        edges = record_edges(data, path)
        for begin, end in edges[:1]:
            decode_batch(
                [data[begin:end]], info, name_of=lambda row, path=path: f"Record {row} of `{path}`"
            )
        shards.append(
            ShardInfo(
                file=path.name,
                num_records=len(edges),
                num_bytes=path.stat().st_size,
                sha256=sha256_of(path),
            )
        )
    if tokenizer and not (folder / TOKENIZER_FOLDER).exists():
        with whole_folder(folder / TOKENIZER_FOLDER) as temporary:
            tokenizer.save(temporary)
    info = info.replace(shards=tuple(shards))
    info.save(folder)
    return info
