import collections

import pytest

from albert_keras.cli import main
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.library_training import train_wordpiece
from data_pipeline.tokenizers.tokenization import Tokenizer


@pytest.fixture(scope="module")
def vocabulary(tiny_corpus, tmp_path_factory):
    return train_wordpiece(tiny_corpus, tmp_path_factory.mktemp("wordpiece") / "tiny", 400)


def test_the_folder_is_a_wordpiece_tokenizer_of_the_requested_size(vocabulary, tiny_corpus):
    tokenizer = Tokenizer.load(vocabulary.path)
    assert tokenizer.config.kind == "wordpiece"
    assert tokenizer.vocab_size == vocabulary.size == 400
    assert tokenizer.model.special_ids == [0, 1, 2, 3, 4]
    assert vocabulary.coverage.fraction == 1
    # Frequent words are pieces, and nothing in the corpus is unknown.
    assert {"the", "and"} <= set(tokenizer.model.vocabulary)
    counts = collections.Counter(id for text in tiny_corpus for id in tokenizer.encode(text))
    assert tokenizer.unk_id not in counts
    assert counts.total() < 0.5 * sum(map(len, tiny_corpus))


def test_case_and_accents_are_kept_on_request(tmp_path):
    texts = ["Déjà vu! Déjà vécu? Élan."] * 3
    cased = train_wordpiece(texts, tmp_path / "cased", 400, lower_case=False, strip_accents=False)
    tokenizer = Tokenizer.load(cased.path)
    assert tokenizer.pieces("Déjà") == ["Déjà"]
    folded = train_wordpiece(texts, tmp_path / "folded", 400, strip_accents=True)
    folded = Tokenizer.load(folded.path)
    assert folded.pieces("DÉJÀ") == ["deja"]


def test_rare_characters_are_unknown_unless_they_are_required(tmp_path):
    texts = ["a common text of common letters " * 2000, "one ψ"]
    result = train_wordpiece(texts, tmp_path / "rare", 300)
    assert result.coverage.uncovered == {"ψ": 1}
    assert Tokenizer.load(result.path).encode("ψ") == [1]
    result = train_wordpiece(texts, tmp_path / "required", 300, required_characters="ψ")
    assert not result.coverage.uncovered
    assert Tokenizer.load(result.path).encode("ψ") != [1]


def test_a_size_below_the_number_of_characters_is_refused(tiny_corpus, tmp_path):
    with pytest.raises(InputError, match=r"`size` must be at least \d+ .* Received: 50. Raise it."):
        train_wordpiece(tiny_corpus, tmp_path / "small", 50)
    with pytest.raises(InputError, match="contains no words"):
        train_wordpiece(["", " "], tmp_path / "empty", 500)
    assert not list(tmp_path.iterdir())


def test_the_command_trains_wordpiece(tiny_corpus, tmp_path, capsys):
    (tmp_path / "corpus.txt").write_text("\n\n".join(tiny_corpus))
    command = ["vocab", "--kind", "wordpiece", "--corpus", f"{tmp_path}/corpus.txt"]
    assert main([*command, "--size", "350", "--out", f"{tmp_path}/out"]) == 0
    assert "vocabulary of 350 pieces" in capsys.readouterr().out
    assert Tokenizer.load(tmp_path / "out").config.kind == "wordpiece"
