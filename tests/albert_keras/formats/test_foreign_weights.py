"""Training starts from a model in any format that `convert` reads."""

import pytest

from albert_keras.cli import main
from albert_keras.formats.loading import ArrayTensors, encoder_digest
from albert_keras.formats.open_model import format_module, open_model
from albert_keras.formats.vocabulary import files_for, read_vocabulary, vocabulary_of
from albert_keras.models.pretraining import AlbertForPretraining
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.library_training import train_byte_bpe
from tests.albert_keras.formats.random_weights import ROBERTA, pretraining_weights
from tests.albert_keras.loaded_weights import values_of

SIZES = {
    "embedding_size": 16,
    "hidden_size": 32,
    "num_attention_heads": 2,
    "intermediate_size": 48,
    "max_position_embeddings": 64,
}


@pytest.fixture(scope="module")
def foreign_folder(tokenizer_files, word_pieces, tmp_path_factory):
    """Returns a function of a format that writes a folder of it; the folder and the weights."""
    vocabularies = {
        "google-bert": vocabulary_of({"vocab.txt": word_pieces}, "a test"),
        "other": vocabulary_of(tokenizer_files, "a test"),
    }

    def write(name):
        sizes, vocabulary = SIZES, vocabularies.get(name, vocabularies["other"])
        if name == "google-bert":
            sizes = SIZES | {"embedding_size": 32, "sharing": "none", "hidden_act": "gelu_erf"}
        weights = pretraining_weights(vocab_size=vocabulary.tokenizer.vocab_size, **sizes)
        weights = weights._replace(tokenizer_files=files_for(vocabulary, name, 64))
        folder = tmp_path_factory.mktemp("foreign") / name
        folder.mkdir()
        format_module(name).write(weights, folder)
        return folder, weights, vocabulary.tokenizer

    return write


@pytest.fixture(scope="module")
def hugging_face(foreign_folder):
    """Returns a folder of Hugging Face; tests that change it copy it first."""
    return foreign_folder("hugging-face")[0]


@pytest.mark.parametrize("name", ["google", "google-bert", "hugging-face", "keras-nlp"])
def test_each_format_gives_the_weights_of_its_model(foreign_folder, name, caplog):
    folder, weights, tokenizer = foreign_folder(name)
    config = folder / "albert_config.json"  # is in a folder of google-research/albert
    caplog.set_level("INFO")
    found = open_model(folder)
    assert found.digest == encoder_digest(ArrayTensors(weights.tensors))
    assert found.tokenizer.digest == tokenizer.digest
    assert found.albert_config.hidden_size == 32
    if name == "google":  # its names are ours
        assert found.kind == "checkpoint" and config.is_file()
        return
    assert found.kind == name
    assert f"was recognized as {name} and is converted while loading" in caplog.text
    assert caplog.text.count("recognized") == 1


def test_a_roberta_is_loaded_with_its_vocabulary(tiny_corpus, tmp_path):
    path = train_byte_bpe(tiny_corpus, tmp_path / "bpe", 300).path
    vocabulary = read_vocabulary(path)
    sizes = ROBERTA | SIZES | {"embedding_size": 32, "vocab_size": 300}
    weights = pretraining_weights(**sizes)
    files = files_for(vocabulary, "hugging-face", 64, has_segments=False)
    folder = tmp_path / "theirs"
    folder.mkdir()
    format_module("hugging-face").write(weights._replace(tokenizer_files=files), folder)
    found = open_model(folder)
    assert found.tokenizer.digest == vocabulary.tokenizer.digest
    model = AlbertForPretraining(found.albert_config, sentence_head=False, dtype="float32")
    found.load(model, with_head=True)
    values = values_of(model)
    for name, array in weights.tensors.items():
        assert (values[name] == array).all(), name


def test_a_missing_vocabulary_is_named_with_its_option(hugging_face, tiny_tokenizer, tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    for name in ("config.json", "model.safetensors"):
        (folder / name).write_bytes((hugging_face / name).read_bytes())
    with pytest.raises(InputError, match="has no tokenizer. Pass .* as `tokenizer`"):
        _ = open_model(folder).tokenizer
    assert open_model(folder, tokenizer=tiny_tokenizer).kind == "hugging-face"


@pytest.mark.parametrize("kept", ["model.safetensors", "config.json"])
def test_a_missing_file_is_named(hugging_face, tmp_path, kept):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / kept).write_bytes((hugging_face / kept).read_bytes())
    with pytest.raises(InputError, match="has config.json, which .*, and model.safetensors: copy"):
        open_model(folder)


@pytest.mark.parametrize(
    "command",
    [
        ("predict", "{}", "a text"),
        ("serve", "{}"),
    ],
)
def test_commands_that_take_no_foreign_model_name_the_conversion(hugging_face, command, capsys):
    assert main([word.format(hugging_face) for word in command]) == 2
    message = capsys.readouterr().err
    assert f"`albert-keras convert {hugging_face} models/hugging-face`" in message


def test_a_damaged_export_is_not_taken_for_a_foreign_model(tmp_path):
    (tmp_path / "1" / "variables").mkdir(parents=True)
    for name in ("saved_model.pb", "variables/variables.index", "export.json"):
        (tmp_path / "1" / name).write_text("{}")
    with pytest.raises(InputError, match="weights of the export .* are missing"):
        open_model(tmp_path)
