"""A vocabulary is found among files, fits the model, and gets the name each format has for it."""

import io
import json

import pytest
import sentencepiece

from albert_keras.formats.foreign_vocabulary import tokenizer_of
from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.vocabulary import load_tokenizer
from albert_keras.formats.vocabulary_writing import files_for
from albert_keras.runs.run import Run
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.library_training import train_byte_bpe
from data_pipeline.tokenizers.tokenization import Tokenizer


def test_files_of_every_kind_give_the_same_tokenizer(tiny_tokenizer, tokenizer_files, tmp_path):
    assert tokenizer_of(tokenizer_files, "x").digest == tiny_tokenizer.digest
    model = tiny_tokenizer.model_bytes
    for name in ("30k-clean.model", "spiece.model", "vocabulary.spm"):
        assert tokenizer_of({name: model}, "x").digest == tiny_tokenizer.digest
    both = {"spiece.model": model, "tokenizer.json": b"{}"}
    assert tokenizer_of(both, "x").digest == tiny_tokenizer.digest
    (tmp_path / "my.model").write_bytes(model)
    for path in (tmp_path, tmp_path / "my.model"):
        assert load_tokenizer(path).digest == tiny_tokenizer.digest


def test_the_tokenizer_of_a_model_is_found(tiny_run):
    expected = Run.open(tiny_run).tokenizer.digest
    for below in ("", "tokenizer", "checkpoints/step-00000012"):
        assert load_tokenizer(tiny_run / below).digest == expected
    assert load_tokenizer("albert-mini-en").vocab_size > 1000
    assert open_weights(tiny_run, tokenizer=tiny_run).tokenizer.digest == expected


def test_settings_of_transformers_are_heeded(official_model):
    settings = {"do_lower_case": False, "keep_accents": True, "sp_model_kwargs": {}}
    files = {"spiece.model": official_model.read_bytes()}
    files["tokenizer_config.json"] = json.dumps(settings).encode()
    config = tokenizer_of(files, "x").config
    assert (config.lower_case, config.strip_accents) == (False, False)


def test_several_none_and_damaged_ones_are_refused(tiny_tokenizer, tmp_path):
    files = {"a.model": tiny_tokenizer.model_bytes, "b.model": b"other"}
    with pytest.raises(InputError, match="several vocabularies. Pass one: a.model, b.model"):
        tokenizer_of(files, "x")
    with pytest.raises(InputError, match="`x` does not contain a vocabulary.* contains: notes.md"):
        tokenizer_of({"notes.md": b""}, "x")
    for damaged in (b"no model", b"\1"):
        with pytest.raises(InputError, match="Received: x: a.model."):
            tokenizer_of({"a.model": damaged}, "x")
    (tmp_path / "empty").mkdir()
    for name in ("empty", "nowhere"):
        with pytest.raises(InputError, match=f"A tokenizer must be a folder .*{name}"):
            load_tokenizer(tmp_path / name)


def test_each_format_has_its_names(tiny_tokenizer, tokenizer_files):
    model = tiny_tokenizer.model_bytes
    files = files_for(tiny_tokenizer, "albert-keras", 24)
    assert files == {f"tokenizer/{name}": content for name, content in tokenizer_files.items()}
    for name in ("google", "google-bert"):
        assert files_for(tiny_tokenizer, name, 24)["30k-clean.model"] == model
    files = files_for(tiny_tokenizer, "keras-nlp", 24)
    assert files.keys() == {"tokenizer.json", "assets/tokenizer/vocabulary.spm"}
    assert files["assets/tokenizer/vocabulary.spm"] == model
    files = files_for(tiny_tokenizer, "hugging-face", 24)
    assert files.keys() == {"spiece.model", "tokenizer.json", "tokenizer_config.json"}
    settings = json.loads(files["tokenizer_config.json"])
    special = {name: value for name, value in settings.items() if name.endswith("_token")}
    assert special["mask_token"] == "[MASK]" and special["pad_token"] == "<pad>"
    assert "token_type_ids" in settings["model_input_names"]
    names = {"model_input_names", *special}
    assert {name: value for name, value in settings.items() if name not in names} == {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "do_lower_case": True,
        "keep_accents": False,
        "model_max_length": 24,
    }


def test_word_pieces_keep_their_case_in_transformers(word_pieces):
    settings = b'{"do_lower_case": false}'
    files = {"vocab.txt": word_pieces, "tokenizer_config.json": settings}
    tokenizer = tokenizer_of(files, "x")
    written = files_for(tokenizer, "hugging-face", 24)
    assert written["vocab.txt"] == word_pieces
    config = tokenizer_of(written, "x").config
    assert (config.lower_case, config.strip_accents) == (False, False)
    assert files_for(tokenizer, "google-bert", 24) == {"vocab.txt": word_pieces}


def test_byte_level_bpe_is_refused_by_formats_that_cannot_store_it(tiny_corpus, tmp_path):
    tokenizer = load_tokenizer(train_byte_bpe(tiny_corpus, tmp_path / "bpe", 300).path)
    assert set(files_for(tokenizer, "albert-keras", 64)) == {
        "tokenizer/tokenizer.json",
        "tokenizer/tokenizer_config.json",
    }
    for name in ("google", "google-bert", "keras-nlp"):
        with pytest.raises(InputError, match="must be one of unigram.* Received: bpe"):
            files_for(tokenizer, name, 64)


def test_models_without_segments_get_no_segment_ids(tiny_tokenizer, word_pieces):
    for one in (tiny_tokenizer, tokenizer_of({"vocab.txt": word_pieces}, "x")):
        files = files_for(one, "hugging-face", 24, has_segments=False)
        settings = json.loads(files["tokenizer_config.json"])
        assert settings["model_input_names"] == ["input_ids", "attention_mask"]


def test_a_bare_model_with_capitals_keeps_case_and_accents(tmp_path, caplog):
    """SentencePiece trains it as a user would who knows no other program."""
    model, texts = io.BytesIO(), ["Für Élise spielt Anna.", "Привет, Élise!", "Ein Fest für Anna."]
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts * 20),
        model_writer=model,
        vocab_size=60,
        pad_id=0,
        unk_id=1,
        bos_id=-1,
        eos_id=-1,
        control_symbols=["[CLS]", "[SEP]", "[MASK]"],
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path = tmp_path / "spiece.model"
    path.write_bytes(model.getvalue())
    cased = Tokenizer.load(path)
    assert not cased.config.lower_case and not cased.config.strip_accents
    assert cased.unk_id not in cased.encode(texts[0]) and "capital letters" in caplog.text
    caplog.clear()
    lowered = Tokenizer.load(path, lower_case=True)
    assert lowered.encode(texts[0]) == lowered.encode(texts[0].lower()) and not caplog.text
    files = {"spiece.model": model.getvalue()}
    assert not tokenizer_of(files, "x").config.lower_case
    files["tokenizer_config.json"] = b"{}"
    assert not tokenizer_of(files, "x").config.lower_case
    files["tokenizer_config.json"] = b'{"tokenizer_class": "AlbertTokenizer"}'
    assert tokenizer_of(files, "x").config.lower_case
