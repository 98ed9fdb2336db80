"""Folders as other people have them: of current transformers, and of sentence-transformers."""

import json

import numpy as np
import pytest
from scipy.stats import spearmanr

from albert_keras.conversion.convert import convert
from albert_keras.formats import hugging_face
from albert_keras.formats.foreign_vocabulary import tokenizer_of
from albert_keras.formats.hugging_face import read_safetensors, write_safetensors
from albert_keras.formats.open_weights import open_weights
from albert_keras.formats.vocabulary import load_tokenizer
from albert_keras.texts.encoder import TextEncoder
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.albert_keras.formats.random_weights import pretraining_weights, without

tokenizers = pytest.importorskip("tokenizers")

SIZES = {
    "embedding_size": 32,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 40,
    "sharing": "none",
    "hidden_act": "gelu_erf",
}
SPECIAL = {
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
}
MODULES = ("Transformer", "Pooling", "Normalize")


@pytest.fixture(scope="module")
def pieces(word_pieces):
    return word_pieces.decode().splitlines()


@pytest.fixture
def folder(pieces, tmp_path):
    """Writes a BERT encoder as sentence-transformers does; tests add or change files."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    weights = pretraining_weights(vocab_size=len(pieces), **SIZES)
    hugging_face.write(without(weights, "cls/"), folder)
    write_tokenizer(folder, pieces)
    return folder


def write_tokenizer(folder, pieces, added=(), **normalizer):
    """Writes the files that a fast tokenizer of transformers saves, without a vocab.txt."""
    model = tokenizers.models.WordPiece(
        {piece: id for id, piece in enumerate(pieces)}, unk_token="[UNK]"
    )
    tokenizer = tokenizers.Tokenizer(model)
    normalizer = {"lowercase": True} | normalizer
    tokenizer.normalizer = tokenizers.normalizers.BertNormalizer(**normalizer)
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    tokenizer.add_special_tokens(list(SPECIAL.values()))
    tokenizer.add_tokens(list(added))
    tokenizer.save(str(folder / "tokenizer.json"))
    (folder / "special_tokens_map.json").write_text(json.dumps(SPECIAL))
    settings = SPECIAL | {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return tokenizer


def write_modules(folder, kinds=MODULES, **pooling):
    modules = [
        {"idx": n, "name": str(n), "path": f"{n}_{kind}" if n else "", "type": f"x.models.{kind}"}
        for n, kind in enumerate(kinds)
    ]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    pooling = pooling or {"pooling_mode_mean_tokens": True, "pooling_mode_cls_token": False}
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling))
    (folder / "sentence_bert_config.json").write_text('{"max_seq_length": 12}')


def change_settings(folder, **changes):
    path = folder / "tokenizer_config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))


def test_a_tokenizer_json_without_vocab_txt_is_read(folder, pieces):
    theirs = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    text = "The Old Ferry, before sunrise!"
    wanted = theirs.encode(text, add_special_tokens=False).ids
    given = folder / "tokenizer.json"
    for tokenizer in (
        open_weights(folder).tokenizer,
        open_weights(folder, tokenizer=given).tokenizer,
        load_tokenizer(folder),
        load_tokenizer(given),
    ):
        assert tokenizer.encode(text) == wanted and tokenizer.config.kind == "wordpiece"


def test_what_auto_tokenizer_reads_wins_over_a_vocab_txt(folder, pieces):
    other = [*pieces[:5], *reversed(pieces[5:])]
    (folder / "vocab.txt").write_text("\n".join(other) + "\n")
    found = open_weights(folder).tokenizer
    assert [found.piece_of(id) for id in range(found.vocab_size)] == pieces


@pytest.mark.parametrize("has_json", [True, False])
def test_settings_that_cannot_be_expressed_are_refused_by_name(folder, pieces, has_json):
    kept = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}
    cases = [{"tokenize_chinese_chars": False}, {"word_tokenizer_type": "mecab"}]
    if not has_json:
        (folder / "tokenizer.json").unlink()
        (folder / "vocab.txt").write_text("\n".join(pieces) + "\n")
        cases += [{"subword_tokenizer_type": "character"}, {"tokenizer_class": "XTokenizer"}]
        cases += [{"auto_map": {"AutoTokenizer": ["x.X"]}}]
    for changes in cases:
        change_settings(folder, **changes)
        with pytest.raises(InputError, match=f"`{next(iter(changes))}` .* as `tokenizer`"):
            open_weights(folder)
        change_settings(folder, **dict.fromkeys(changes) | kept)
    if has_json:
        change_settings(folder, do_lower_case=False)
        with pytest.raises(
            InputError, match="must agree. Received: `lower_case` True in the first"
        ):
            load_tokenizer(folder)


def test_other_ids_for_a_sample_of_text_are_refused(folder, monkeypatch):
    """A difference that no setting shows is found by the ids of a sample."""
    monkeypatch.setattr(Tokenizer, "encode", lambda *_: [7])
    with pytest.raises(
        InputError, match="same ids here as in the library tokenizers. For 'The old"
    ):
        open_weights(folder)


def test_added_tokens_are_refused(folder, pieces, tiny_tokenizer):
    write_tokenizer(folder, pieces, added=["covid"])
    with pytest.raises(InputError, match=r"no added tokens. Received: covid. .*_embeddings\("):
        open_weights(folder)
    size = tiny_tokenizer.vocab_size
    files = {"spiece.model": tiny_tokenizer.model_bytes}
    files["tokenizer_config.json"] = b"{}"
    decoder = {str(size): {"content": "[X]"}, "0": {"content": "<pad>"}}
    for name, values in (
        ("added_tokens.json", {"[X]": size}),
        ("tokenizer_config.json", {"added_tokens_decoder": decoder}),
        ("tokenizer.json", {"added_tokens": [{"content": "[X]", "id": size}]}),
    ):
        with pytest.raises(InputError, match=r"no added tokens. Received: \[X\]"):
            tokenizer_of(files | {name: json.dumps(values).encode()}, "x")
    settings = b'{"tokenizer_class": "XLNetTokenizer"}'
    with pytest.raises(InputError, match="splits text as a unigram .* Received: XLNetTokenizer"):
        tokenizer_of(files | {"tokenizer_config.json": settings}, "x")


def test_heads_that_we_do_not_have_are_dropped_and_named(folder, tmp_path, caplog):
    tensors = read_safetensors(folder / "model.safetensors")
    tensors = {f"bert.{name}": array for name, array in tensors.items()}
    more = {"crf.transitions": (3, 3), "intent.weight": (4, 32), "classifier.weight": (3, 32)}
    more |= {"classifier.bias": (3,)}
    tensors |= {name: np.ones(shape, np.float32) for name, shape in more.items()}
    write_safetensors(folder / "model.safetensors", tensors)
    result = convert(folder, tmp_path / "ours")
    assert "dropped: crf.transitions, intent.weight" in caplog.text
    assert result.heads == ("classifier",)


def test_sentence_transformers_say_how_vectors_are_computed(folder, tmp_path):
    write_modules(folder)
    convert(folder, tmp_path / "ours")
    described = TextEncoder(tmp_path / "ours").describe()
    assert (described["pooling"], described["max_seq_length"]) == ("mean", 12)
    write_modules(folder, MODULES[:2], pooling_mode_cls_token=True)
    found = open_weights(folder)
    assert (found.pooling, found.longest_text) == ("cls", 12)


def test_without_a_limit_of_its_own_the_one_of_the_tokenizer_holds(folder):
    write_modules(folder)
    (folder / "sentence_bert_config.json").unlink()
    change_settings(folder, model_max_length=16)
    assert TextEncoder(folder).sequence_length == 16
    change_settings(folder, model_max_length=int(1e30))  # as transformers writes that there is none
    assert TextEncoder(folder).sequence_length == SIZES["max_position_embeddings"]


def test_a_tokenizer_that_cuts_texts_at_their_beginning_is_refused(folder):
    path = folder / "tokenizer.json"
    values = json.loads(path.read_text())
    truncation = {"direction": "Left", "max_length": 8, "strategy": "LongestFirst", "stride": 0}
    path.write_text(json.dumps(values | {"truncation": truncation}))
    with pytest.raises(InputError, match="`direction` of the tokenizer .* must be right,"):
        load_tokenizer(folder)
    path.write_text(json.dumps(values | {"truncation": truncation | {"direction": "Right"}}))
    load_tokenizer(folder)
    change_settings(folder, truncation_side="left")
    with pytest.raises(InputError, match="`truncation_side` of the tokenizer .* must be right,"):
        open_weights(folder)


def test_other_ways_to_vectors_are_refused_by_name(folder):
    write_modules(folder, pooling_mode_max_tokens=True)
    with pytest.raises(InputError, match="must be mean or cls. Received: pooling_mode_max_tokens"):
        open_weights(folder)
    write_modules(folder, (*MODULES[:2], "Dense", "Normalize"))
    with pytest.raises(InputError, match="Received: Transformer, Pooling, Dense, Normalize"):
        open_weights(folder)
    write_modules(folder)
    prompts = {"prompts": {"query": "query: "}, "default_prompt_name": "query"}
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    with pytest.raises(InputError, match="must be null. Received: the prompt 'query: '"):
        open_weights(folder)
    prompts["default_prompt_name"] = None
    (folder / "config_sentence_transformers.json").write_text(json.dumps(prompts))
    (folder / "sentence_bert_config.json").write_text('{"do_lower_case": true}')
    with pytest.raises(InputError, match="`do_lower_case` in .* must be false"):
        open_weights(folder)
    write_modules(folder)
    modules = json.loads((folder / "modules.json").read_text())
    modules[1]["path"] = "../1_Pooling"
    (folder / "modules.json").write_text(json.dumps(modules))
    with pytest.raises(InputError, match="must name files of its own folder"):
        open_weights(folder)


@pytest.mark.slow
def test_a_model_of_sentence_transformers_gives_the_vectors_of_its_library(shared_data, tmp_path):
    """all-MiniLM-L6-v2 on the development set of STS-B; its own library has 0.867."""
    package = pytest.importorskip("all_minilm_l6_v2")
    folder = package.extract_model(str(tmp_path))
    encoder = TextEncoder(folder)
    assert (encoder.describe()["pooling"], encoder.sequence_length) == ("mean", 256)
    lines = (shared_data / "glue/STS-B/dev.tsv").read_text(encoding="utf-8").splitlines()[1:]
    rows = [line.split("\t") for line in lines]
    first, second = (encoder.encode([row[column] for row in rows]).vectors for column in (7, 8))
    scores = [float(row[9]) for row in rows]
    assert round(spearmanr((first * second).sum(axis=1), scores).statistic, 3) == 0.867
    result = convert(folder, tmp_path / "ours")
    assert result.embedding == {"pooling": "mean", "longest_text": 256}
    assert TextEncoder(tmp_path / "ours").sequence_length == 256
