"""Raw text to answers, by the functions behind the commands."""

import pytest

from albert_keras import evaluate, pretrain
from data_pipeline import PretrainingDataConfig, Tokenizer, build_records, read_corpus
from data_pipeline.tokenizers.vocabulary import train_vocabulary


@pytest.mark.slow
def test_books_teach_masked_pieces_and_sentence_order(shared_data, tmp_path):
    """Real text: a small model, 240 updates, unseen books."""
    books = sorted((shared_data / "corpus" / "books-en").glob("*.txt"))
    heldout = [path for path in books if path.stem in ("Doyle_Lost_1912", "Austen_Pride")]
    train = [path for path in books if path not in heldout]
    paragraphs = (part for document in read_corpus(train) for part in document.paragraphs)
    train_vocabulary(paragraphs, tmp_path / "tokenizer", 8000)
    tokenizer = Tokenizer.load(tmp_path / "tokenizer")
    data = PretrainingDataConfig(max_seq_length=64)
    build_records(train, tokenizer, tmp_path / "records", data)
    build_records(heldout, tokenizer, tmp_path / "heldout", data)
    result = pretrain(
        tmp_path / "records", tmp_path / "run", size="albert-mini", steps=240, batch_size=32
    )
    assert result.report["loss"] < 7
    scores = evaluate(tmp_path / "run", tmp_path / "heldout")
    assert scores.masked_lm_accuracy > 1.5 * scores.unigram_accuracy
    assert (
        scores.sentence_order_accuracy - scores.sentence_order_error > scores.sentence_order_chance
    )
