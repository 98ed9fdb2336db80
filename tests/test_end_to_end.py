"""Raw text to answers, by the functions behind the commands."""

import pytest

from albert_keras import PretrainingConfig, evaluate, export, fill_mask, pretrain
from data_pipeline import PretrainingDataConfig, Tokenizer, build_records, read_corpus
from data_pipeline.tokenizers.vocabulary import train_vocabulary


@pytest.mark.slow
def test_text_becomes_a_model_that_answers(tiny_corpus, tmp_path):
    text = tmp_path / "text.txt"
    # Few sentences in one order, many times: a model soon knows many of them by heart.
    text.write_text("\n\n".join(tiny_corpus[::29] * 20))
    vocabulary_text = tmp_path / "vocabulary.txt"
    vocabulary_text.write_text("\n\n".join(tiny_corpus))
    paragraphs = [
        part for document in read_corpus([vocabulary_text]) for part in document.paragraphs
    ]
    train_vocabulary(paragraphs, tmp_path / "tokenizer", 280)
    tokenizer = Tokenizer.load(tmp_path / "tokenizer")
    data = PretrainingDataConfig(max_seq_length=32, copies=4)
    build_records([text], tokenizer, tmp_path / "records", data)
    config = PretrainingConfig(
        model={
            "size": "albert-tiny",
            "hidden_size": 64,
            "embedding_size": 32,
            "max_position_embeddings": 64,
        },
        training={"steps": 400, "batch_size": 32, "report_every": 100, "precision": "float32"},
        optimizer={"name": "adamw", "lr": 0.002},
    )
    pretrain(tmp_path / "records", tmp_path / "run", config)
    scores = evaluate(tmp_path / "run", tmp_path / "records", allow_trained_rows=True)
    assert scores.masked_lm_accuracy > 1.5 * scores.unigram_accuracy
    export(tmp_path / "run", tmp_path / "models" / "tiny")
    (answer,) = fill_mask(tmp_path / "models" / "tiny", ["The old ferry left the [MASK]."])
    assert len(answer.masks[0]) == 5 and "[MASK]" not in answer.filled_text


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
