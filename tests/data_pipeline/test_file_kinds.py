"""A file of another kind is named by each reader, with the command that helps; text is read."""

import bz2
import codecs
import gzip
import io
import lzma
import pickle
import tarfile
import zipfile
import zlib

import h5py
import numpy as np
import pytest

from data_pipeline.errors import InputError
from data_pipeline.files import sha256_of
from data_pipeline.limits import read_json, read_yaml
from data_pipeline.records.record_files import RecordWriter
from data_pipeline.text.corpus import read_corpus
from data_pipeline.tokenizers.tokenization import Tokenizer

TEXT = b"The mill stands by the river.\nIts wheel turns slowly.\n" * 40
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:ab12\nsize 97\n"


def archive_of(*names):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name in names:
            archive.writestr(name, TEXT)
    return file.getvalue()


def archive_of_mime():
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("content.xml", TEXT)
    return file.getvalue()


def tar():
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(tarfile.TarInfo("a.txt"))
    return file.getvalue()


def hdf5():
    file = io.BytesIO()
    with h5py.File(file, "w") as content:
        content["weight"] = np.zeros(3)
    return file.getvalue()


def array():
    file = io.BytesIO()
    np.save(file, np.zeros(3))
    return file.getvalue()


OTHERS = {
    "git lfs install && git lfs pull`": POINTER,
    "git annex get": b"/annex/objects/SHA256E-s102345--ab12.txt\n",
    "Snappy": b"\xff\x06\0\0sNaPpY\x01\x08\0\0",
    "zlib-flate": zlib.compress(TEXT),
    "compressed by compress": b"\x1f\x9d\x90T\xd0",
    "table in the XML of Excel": b'<?xml version="1.0"?>\n<?mso-application progid="Excel.Sheet"?>',
    "gzip -dc < ": gzip.compress(TEXT),
    "bzip2 -dc < ": bz2.compress(TEXT),
    "xz -dc < ": lzma.compress(TEXT),
    "zstd -dc < ": b"\x28\xb5\x2f\xfd\x64\x00" + bytes(range(200)),
    "read_parquet": b"PAR1\x15\x04\x15\x9c" + bytes(range(200)),
    "read_feather": b"ARROW1\0\0\xff\xff",
    "Dataset.from_file": b"\xff\xff\xff\xff\x78\x02\x00\x00\x10\x00",
    "read_excel": archive_of("[Content_Types].xml", "xl/workbook.xml"),
    "office": archive_of("_rels/.rels", "word/document.xml"),
    "or as plain text": archive_of_mime(),
    "program that runs": pickle.dumps({"text": "a"}),
    "safetensors.torch": archive_of("archive/data.pkl", "archive/data/0"),
    "unzip": archive_of("a.txt"),
    "tar -xf": tar(),
    "pdftotext": b"%PDF-1.7\n%\xe2\xe3\n1 0 obj",
    "HDF5": hdf5(),
    "NumPy": array(),
    "SQLite": b"SQLite format 3\0\x10\0",
    "iconv -f UTF-32": "One mill.".encode("utf-32"),
    "iconv -f UTF-16": codecs.BOM_UTF16_BE + "One mill.".encode("utf-16-be"),
    "--format=lzma": lzma.compress(TEXT, lzma.FORMAT_ALONE),
    "read_orc": b"ORC\x1d\x00\x00",
    "OCR": b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR",
    "ebook-convert": b"A book".ljust(60, b"\0") + b"BOOKMOBI\0",
    "format safetensors": b"\x80\x02\0\0\0\0\0\0" + b'{"weight":{"dtype":"F32"',
}


@pytest.mark.parametrize("advice", OTHERS)
def test_a_corpus_of_another_kind_is_named(advice, tmp_path):
    path = tmp_path / "a file.txt"
    path.write_bytes(OTHERS[advice])
    with pytest.raises(InputError, match="cannot be read: it is") as refused:
        list(read_corpus([path]))
    assert advice in str(refused.value)
    assert "{" not in str(refused.value).replace("{name: tensor", "")


@pytest.mark.parametrize(
    "text",
    [
        "PK is a code of pistols.",
        "BZh and PAR1, %PDF and Rar! are words.",
        "version https://example.org/spec",
        "<!DOCTYPE html><p>A page as it is.</p>",
        "7z.",
        "x^2 is a square, and x\u009c is odd.",
        '{"weight": 1} is no safetensors.',
        "\ufeffA mark is at the start.",
    ],
)
def test_what_is_text_stays_text(text, tmp_path):
    (tmp_path / "a.txt").write_text(text)
    (document,) = read_corpus([tmp_path / "a.txt"], format="prose")
    assert text.removeprefix("\ufeff") in "".join(document.paragraphs)


@pytest.mark.parametrize("name", ["big.model", "vocab.txt", "tokenizer.json"])
def test_a_pointer_or_a_page_is_no_vocabulary(name, tmp_path):
    for content, named in ((POINTER, "Git LFS"), (b"\n<!doctype html><html>", "/resolve/")):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=named):
            Tokenizer.load(tmp_path / name)


@pytest.mark.parametrize("read", [read_yaml, read_json])
def test_a_configuration_of_another_kind_is_named(read, tmp_path):
    path = tmp_path / "config.json"
    for content, named in ((POINTER, "Git LFS"), (gzip.compress(b"{}"), "gzip -dc")):
        path.write_bytes(content)
        with pytest.raises(InputError, match=named):
            read(path)


@pytest.mark.parametrize("size", [640, 0x88B1F])
def test_records_may_begin_with_any_length(size, tmp_path):
    """These are the first bytes of a pickle and of a file of gzip."""
    with RecordWriter(tmp_path / "a.tfrecord") as writer:
        writer.write([b"\n" + bytes(size - 1)])
    assert sha256_of(tmp_path / "a.tfrecord") == writer.sha256


@pytest.mark.parametrize("encoding", ["windows-1251", "utf-16-le", "utf-16-be"])
def test_the_text_of_a_corpus_in_another_encoding_is_refused_with_a_way(encoding, tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("Мельница stands by the river.".encode(encoding))
    with pytest.raises(InputError, match="another encoding.*`iconv -f ENCODING -t UTF-8 "):
        list(read_corpus([path], format="prose"))


def test_archives_of_web_pages_are_named(tmp_path):
    (tmp_path / "a.wet").write_bytes(b"WARC/1.0\r\nWARC-Type: conversion\r\n\r\nText.")
    with pytest.raises(InputError, match="it is a WARC or WET archive of web pages"):
        list(read_corpus([tmp_path / "a.wet"]))
