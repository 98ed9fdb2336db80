"""Trains SentencePiece in a process of its own, which can be ended at any time.

SentencePiece trains inside a single call that blocks the interpreter: in this process Ctrl-C would
have to wait for its end.

The process reads lines of JSON from its standard input: the options of the trainer, the sentences,
and null as the end.
"""

import contextlib
import fcntl
import itertools
import json
import os
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import sentencepiece

from data_pipeline.child_processes import environment, module_command
from data_pipeline.errors import InputError

_MODEL, _ERROR = "trained.model", "error.txt"


class TrainerError(Exception):
    """SentencePiece cannot train; the message is its own."""


def train_model(sentences: Iterable[str], folder: Path, options: dict) -> bytes:
    """Trains a model and returns its file.

    Args:
        sentences: iterable of str.
        folder: Path. An existing folder for temporary files.
        options: dict. The options of `SentencePieceTrainer.train`.

    Raises:
        TrainerError: If SentencePiece refuses the sentences or the options.
        InputError: If the process is ended by another one.
        Any error of `sentences`.
    """
    process = subprocess.Popen(
        module_command(__name__, folder),
        env=environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,  # the parent handles Ctrl-C
    )
    try:
        _send(process.stdin, options, sentences)
        code = process.wait()
    finally:
        process.kill()
        with contextlib.suppress(BrokenPipeError):  # what is buffered cannot be sent any more
            process.stdin.close()
        process.wait()
    if (folder / _ERROR).exists():
        raise TrainerError((folder / _ERROR).read_text(encoding="utf-8"))
    if code:
        raise InputError(
            "The process that trains the vocabulary ended before its work was done: it ran out of "
            f"memory or was killed (exit code {code}). Less text needs less memory."
        )
    return (folder / _MODEL).read_bytes()


def _send(stream, options, sentences):
    """Sends options, sentences and the end; stops if the process has ended."""
    with contextlib.suppress(BrokenPipeError):
        for message in itertools.chain([options], sentences, [None]):
            stream.write(json.dumps(message).encode() + b"\n")
        stream.flush()


def _sentences(stream):
    for line in stream:
        sentence = json.loads(line)
        if sentence is None:
            _end_with_parent(stream)
            return
        yield sentence
    os._exit(1)  # the parent has ended before it sent everything


def _end_with_parent(stream):
    """Makes the kernel end this process when the parent closes its end of `stream`."""
    fcntl.fcntl(stream, fcntl.F_SETOWN, os.getpid())
    flags = fcntl.fcntl(stream, fcntl.F_GETFL)
    fcntl.fcntl(stream, fcntl.F_SETFL, flags | os.O_ASYNC)  # SIGIO, whose default is to end


def _main(folder):
    stream = sys.stdin.buffer
    options = json.loads(stream.readline())
    try:
        with open(folder / _MODEL, "wb") as model:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=_sentences(stream), model_writer=model, **options
            )
    except (RuntimeError, SystemError) as error:
        (folder / _ERROR).write_text(str(error), encoding="utf-8")


if __name__ == "__main__":
    _main(Path(sys.argv[1]))
