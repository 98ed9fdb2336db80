import io
import random
import unicodedata

import numpy as np
import pytest
import sentencepiece
import tensorflow as tf

from data_pipeline.tokenizers.library_training import train_byte_bpe, train_wordpiece
from data_pipeline.tokenizers.offsets import aligning_tokenizer
from data_pipeline.tokenizers.sentencepiece_model import replace_surrogates
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary import train_vocabulary
from tests.data_pipeline.tokenizers.test_graph_tokenization import TEXTS, TIES_DIFFER, TOO_NEW


def random_texts(count):
    """Returns texts of rare characters, marks, letters that join, and spaces, at random."""
    choose = random.Random(5)
    marks = [chr(code) for code in range(0x3100) if unicodedata.combining(chr(code))]
    joining = [*map(chr, range(0x1100, 0x1200)), *"\u09be\u09c7\u0dcf\u0dd9\u1b35"]
    kinds = (marks, joining, "  \t\u3000", "aAeE0,Σİ", "½ﬁ´ＡÅüパ\uff9e")
    rare = [chr(code) for code in range(1, 0xD800) if unicodedata.decomposition(chr(code))]
    rare = [character for character in rare if character not in TOO_NEW]
    for _ in range(count):
        parts = (choose.choice(choose.choice((*kinds, rare))) for _ in range(choose.randrange(12)))
        yield "".join(parts)


def plain_tokenizer(folder, **options):
    """Returns a tokenizer of a model that leaves the clean-up to us."""
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the cat (or dog) sat on a mat", "cafe 12 fine"] * 10),
        model_writer=model,
        vocab_size=options.pop("vocab_size", 60),
        hard_vocab_limit=False,
        minloglevel=2,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        **options,
    )
    path = folder / "plain.model"
    path.write_bytes(model.getvalue())
    return path


@pytest.fixture(scope="module")
def tokenizers(tiny_corpus, digit_tokenizer, tmp_path_factory):
    """Returns tokenizers of all kinds by name."""
    folder = tmp_path_factory.mktemp("models")
    (folder / "bytes").mkdir()
    plain = plain_tokenizer(folder)
    with_bytes = plain_tokenizer(folder / "bytes", byte_fallback=True, vocab_size=320)
    words = Tokenizer.load(train_wordpiece(tiny_corpus, folder / "words", 350).path)
    byte_pairs = Tokenizer.load(train_byte_bpe(tiny_corpus, folder / "byte pairs", 400).path)
    settings = {"lower_case": False, "strip_accents": False}
    accents = train_vocabulary(tiny_corpus, folder / "accents", size=280, **settings)
    return {
        "model, accents kept": Tokenizer.load(accents.path),
        "digits": digit_tokenizer,
        "reference": Tokenizer.load(plain),
        "reference, accents kept": Tokenizer.load(plain, strip_accents=False),
        "bytes": Tokenizer.load(with_bytes),
        "words": words,
        "words, cased": Tokenizer(
            words.model_bytes, words.config.replace(lower_case=False, strip_accents=False)
        ),
        "byte pairs": byte_pairs,
        "byte pairs, no space": Tokenizer(
            byte_pairs.model_bytes, byte_pairs.config.replace(add_prefix_space=False)
        ),
    }


KINDS = ("model, accents kept", "digits", "reference", "reference, accents kept", "bytes")
KINDS += ("words", "words, cased", "byte pairs", "byte pairs, no space")


@pytest.mark.parametrize("kind", KINDS)
def test_ids_are_those_of_the_tokenizer_and_their_sources_stand_in_order(kind, tokenizers):
    texts = [*TEXTS, "\ud83d\ude00 a \U0001f600 b", *random_texts(150)]
    if kind == "bytes":  # the graph replaces a NUL by a character without piece
        texts = [text for text in texts if "\0" not in text]
    for text, (ids, starts, ends) in zip(texts, aligned(tokenizers[kind], texts), strict=True):
        assert TIES_DIFFER or ids.tolist() == tokenizers[kind].encode(text), ascii(text)
        assert (starts <= ends).all() and (ends <= len(text)).all()
        assert (np.diff(starts) >= 0).all() and (np.diff(ends) >= 0).all()


@pytest.mark.parametrize("kind", KINDS)
def test_of_plain_text_each_piece_is_its_source(kind, tokenizers):
    text = "  the ferry   left,\tand it rained (again) "
    for piece, source in sources(tokenizers[kind], text):
        known = piece.strip("\u2581#\u0120")
        assert not (known.isascii() and known.isalpha()) or source == known
    covered = "".join(source.strip() for _, source in sources(tokenizers[kind], text))
    assert covered == "".join(text.split())


def aligned(tokenizer, texts):
    """Yields ids, starts and ends of each text, int64 [T]."""
    found = aligning_tokenizer(tokenizer).align(tf.constant(list(map(replace_surrogates, texts))))
    for row in zip(*(part.to_list() for part in found), strict=True):
        yield [np.array(part, np.int64) for part in row]


def sources(tokenizer, text):
    ((ids, starts, ends),) = aligned(tokenizer, [text])
    spans = zip(ids.tolist(), starts, ends, strict=True)
    return [(tokenizer.piece_of(id), text[start:end]) for id, start, end in spans]


def test_official_pieces_and_their_sources(official_model):
    tokenizer = Tokenizer.load(official_model)
    assert sources(tokenizer, "o\ufb03x 7, １２，") == [
        ("▁of", "o\ufb03"),
        ("fix", "\ufb03x"),
        ("▁7", "7"),
        (",", ","),
        ("▁12", "１２"),
        (",", "，"),
    ]
    assert sources(tokenizer, "  ½  CAFE\u0301 (1999,") == [
        ("▁1", "½"),
        ("<unk>", "½"),
        ("2", "½"),
        ("▁cafe", "CAFE\u0301"),
        ("▁", " "),
        ("(", "("),
        ("1999", "1999"),
        (",", ","),
    ]
