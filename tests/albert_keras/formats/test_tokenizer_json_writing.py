"""With the `tokenizer.json` of an export, Hugging Face's library finds the same ids as we do."""

import functools
import importlib.util
import itertools
import json
import os
import subprocess
import sys

import pytest
from sentencepiece.sentencepiece_model_pb2 import ModelProto

from albert_keras.formats.tokenizer_json import read_tokenizer_json
from albert_keras.formats.tokenizer_json_writing import tokenizer_json
from albert_keras.formats.vocabulary_writing import files_for
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary
from data_pipeline.tokenizers.vocabulary_files import CONTROL_SYMBOLS

TEXTS = (
    "The pre-season (which ended) took 9 days.",
    'She said: "try again" - for £25 or €30...(now)',
    "Ünïcode CAFÉ ﬁne ½ ＡＢＣ   two  spaces\tand\r\nlines ",
    "E\u0301te\u0301 A\u200db 한국어 \u1112\u1161\u11ab ΣΑΣ İstanbul straße ẞ ÷ \x07 \ufeff",
    "\u0301\u0302 marks first",
    "\ufeff\x01 control characters first",
    "",
    " \u3000\n",
    "\u0301",
    "x12,x12,7 and 7, then 12,000 or x12,'",
    "〖unknown〗字字 ▁",
)
#: Folders of /shared/data, and how many of their lines are skipped between two that are read.
STEPS = {
    "glue": 800,
    "squad": 40,
    "race": 4,
    "corpus": 400,
    "dirty/blns": 2,
    "dirty/utf8": 1,
    "dirty/encodings": 60,
    "dirty/derived": 100,
    "dirty/crlf-bom": 60,
}
#: SentencePiece adds the scores of a whole text in float32 and so cuts near ties at random. They
#: are frequent in damaged text, such as runs of the same digit, and in long texts.
ALLOWED = 0.005
_LONGEST = 1000


@pytest.fixture(scope="module")
def tokenizers():
    return pytest.importorskip("tokenizers")


@pytest.fixture(scope="module")
def cased(tiny_corpus, tmp_path_factory):
    """Returns a Tokenizer that keeps case and accents."""
    texts = [*tiny_corpus, "Éclair à la crème, ÀÉÎ", "naïve ﬁancé"]
    path = tmp_path_factory.mktemp("vocabulary") / "cased"
    train_vocabulary(texts, path, 300, lower_case=False, strip_accents=False, hard_limit=False)
    return Tokenizer.load(path)


@pytest.fixture(scope="module")
def all_tokenizers(tiny_tokenizer, digit_tokenizer, cased, tmp_path_factory):
    """Returns Tokenizers: dict by name."""
    bare = tmp_path_factory.mktemp("bare") / "spiece.model"
    bare.write_bytes(_not_ours(tiny_tokenizer))
    return {
        "uncased": tiny_tokenizer,
        "digits": digit_tokenizer,
        "cased": cased,
        "reference": Tokenizer.load(bare),
    }


def _not_ours(tokenizer):
    model = ModelProto.FromString(tokenizer.model_bytes)
    model.normalizer_spec.name = "nmt_nfkc"
    return model.SerializeToString()


def real_texts(folder):
    """Yields every few lines of all files of real text, see `STEPS`."""
    for name, step in STEPS.items():
        for path in sorted((folder / name).rglob("*")):
            if path.is_file() and "utf16" not in path.name and "utf32" not in path.name:
                with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
                    for line in itertools.islice(file, 0, None, step):
                        yield line[:_LONGEST]


#: It takes half a second, and several tests need that of the same tokenizer.
json_of = functools.cache(tokenizer_json)


def differing(tokenizers, tokenizer, texts):
    """Returns the texts without names of special tokens that become other ids."""
    theirs = tokenizers.Tokenizer.from_str(json_of(tokenizer).decode())
    names = (*CONTROL_SYMBOLS, "<unk>", "<pad>")
    texts = [text for text in texts if not any(name in text for name in names)]
    found = theirs.encode_batch(texts, add_special_tokens=False)
    expected = tokenizer.encode_batch(texts)
    pairs = zip(texts, found, expected, strict=True)
    return [text for text, one, ids in pairs if one.ids != ids.tolist()], len(texts)


@pytest.mark.parametrize("name", ["uncased", "digits", "cased", "reference"])
def test_difficult_texts_become_the_same_ids(tokenizers, all_tokenizers, name, tmp_path):
    tokenizer = all_tokenizers[name]
    assert differing(tokenizers, tokenizer, TEXTS)[0] == []
    # Programs that save a tokenizer of transformers write this file alone.
    found = read_tokenizer_json(json_of(tokenizer))
    (tmp_path / found.file_name).write_bytes(found.content)
    settings = {"lower_case": found.lower_case, "strip_accents": found.strip_accents}
    again = Tokenizer.load(tmp_path / found.file_name, **settings)
    for text in TEXTS[:-1]:
        assert again.encode(text) == tokenizer.encode(text), text


@pytest.mark.parametrize("name", ["cased", "digits"])
def test_real_and_dirty_text_becomes_the_same_ids(tokenizers, all_tokenizers, shared_data, name):
    different, count = differing(tokenizers, all_tokenizers[name], real_texts(shared_data))
    assert count > 3_000
    assert len(different) <= ALLOWED * count, different[:10]


def test_text_around_a_mask_becomes_the_ids_of_our_masked_texts(tokenizers, tiny_tokenizer):
    theirs = tokenizers.Tokenizer.from_str(json_of(tiny_tokenizer).decode())
    ids = theirs.encode("the old [MASK]s left, [MASK].").ids
    ours = tiny_tokenizer
    assert ids == [
        ours.cls_id,
        *ours.encode("the old"),
        ours.mask_id,
        *ours.continuation_ids("s left,"),
        ours.mask_id,
        *ours.continuation_ids("."),
        ours.sep_id,
    ]
    pair = theirs.encode("the old", "ferry")
    first = len(ours.encode("the old")) + 2
    assert pair.type_ids == [0] * first + [1] * (len(ours.encode("ferry")) + 1)


def test_other_models_get_none(tiny_tokenizer, word_pieces, tmp_path):
    (tmp_path / "vocab.txt").write_bytes(word_pieces)
    assert tokenizer_json(Tokenizer.load(tmp_path / "vocab.txt")) is None
    model = ModelProto.FromString(tiny_tokenizer.model_bytes)
    model.normalizer_spec.add_dummy_prefix = False
    assert tokenizer_json(Tokenizer(model.SerializeToString(), tiny_tokenizer.config)) is None


_ASK = """
import json, sys
from transformers import AutoTokenizer
folder, texts = sys.argv[1], json.load(sys.stdin)
tokenizer = AutoTokenizer.from_pretrained(folder)
pair = tokenizer(texts[0], texts[1])
ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
print(json.dumps([ids, pair["token_type_ids"], tokenizer.mask_token_id, tokenizer.pad_token_id]))
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["uncased", "cased", "word pieces"])
def test_the_auto_tokenizer_of_transformers_reads_the_folder(
    all_tokenizers, word_pieces, name, tmp_path
):
    python = sys.executable if importlib.util.find_spec("transformers") else None
    python = os.environ.get("ALBERT_KERAS_TRANSFORMERS_PYTHON", python)
    if python is None:
        pytest.skip("needs transformers: ALBERT_KERAS_TRANSFORMERS_PYTHON names a Python with it")
    if name == "word pieces":
        tokenizer = Tokenizer.of_bytes({"vocab.txt": word_pieces})
    else:
        tokenizer = all_tokenizers[name]
    folder = tmp_path / "model"
    folder.mkdir()
    kind = "bert" if name == "word pieces" else "albert"
    files = files_for(tokenizer, "hugging-face", 64)
    for file, content in (files | {"config.json": f'{{"model_type": "{kind}"}}'.encode()}).items():
        (folder / file).write_bytes(content)
    command, texts = [python, "-c", _ASK, folder], list(TEXTS[:-1])
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        command, input=json.dumps(texts), capture_output=True, text=True, env=environment
    )
    assert done.returncode == 0, done.stderr
    ids, segments, mask_id, pad_id = json.loads(done.stdout.splitlines()[-1])
    assert ids == [tokenizer.encode(text) for text in texts]
    first, second = len(ids[0]) + 2, len(ids[1]) + 1
    assert segments == [0] * first + [1] * second
    assert (mask_id, pad_id) == (tokenizer.mask_id, tokenizer.pad_id)
