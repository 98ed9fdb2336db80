"""New text, files and splits in, answers out."""

import json

import pytest

from albert_keras.config import AlbertConfig
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.finetuned import FinetunedModels
from albert_keras.tasks.predict import predict_task

PAIR = {"text": "The ferry left.", "pair": "Nobody knew why."}


@pytest.fixture(scope="module")
def tuned(tiny_corpus, tiny_tokenizer, end_at_once, tmp_path_factory):
    """Returns the folder of a fine-tuning to scores of pairs that learnt nothing."""
    folder = tmp_path_factory.mktemp("predicted")
    rows = [
        f"{first}\t{second}\t{len(first) / 10}"
        for first, second in zip(tiny_corpus[:30], tiny_corpus[30:60], strict=True)
    ]
    (folder / "train.tsv").write_text("\n".join(["one\tother\tscore", *rows]) + "\n")
    shape = AlbertConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        embedding_size=16,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
    )
    config = FinetuneConfig(
        task={
            "name": "regression",
            "train": str(folder / "train.tsv"),
            "text": "one",
            "pair": "other",
            "label": "score",
            "max_seq_length": 24,
        },
        training={"steps": 1, "batch_size": 4, "precision": "float32", "peak_tflops": 1.0},
    )
    out = folder / "out"
    with end_at_once():
        finetune("random", out, config, albert_config=shape, tokenizer=tiny_tokenizer)
    (folder / "train.tsv").unlink()
    return out


@pytest.fixture(scope="module")
def typed(tuned):
    """Returns the answers to what the table holds, typed."""
    return predict_task(tuned, [PAIR, {"text": "Rain.", "pair": "Why?"}]).answers


@pytest.fixture
def table(tmp_path):
    """Returns a table without scores, its columns named as in training."""
    path = tmp_path / "new.tsv"
    path.write_text("other\tone\nNobody knew why.\tThe ferry left.\nWhy?\tRain.\n")
    return path


def test_typed_pairs_are_answered_without_any_training_file(tuned):
    predictions = predict_task(tuned, [PAIR, {"id": "k", "text": "Rain.", "pair": "Why?"}])
    assert predictions.task == "regression" and predictions.files == ()
    assert [answer.id for answer in predictions.answers] == ["0", "k"]
    assert [example.first for example in predictions.examples] == ["The ferry left.", "Rain."]
    assert all(isinstance(answer.score, float) for answer in predictions.answers)


def test_a_single_input_needs_no_list(tuned, typed):
    (answer,) = predict_task(tuned, PAIR).answers
    assert answer.score == pytest.approx(typed[0].score, rel=1e-5)


def test_a_file_answers_as_its_rows_do_when_typed(tuned, table, typed):
    assert predict_task(tuned, file=table).answers == typed


def test_columns_of_a_file_may_be_others(tuned, table, typed, tmp_path):
    other = tmp_path / "other.tsv"
    other.write_text(table.read_text().replace("one", "body").replace("other", "reply"))
    assert predict_task(tuned, file=other, text="body", pair="reply").answers == typed


def test_answers_are_written_as_lines_of_json(tuned, table, tmp_path):
    predictions = predict_task(tuned, file=table, out=tmp_path / "out")
    assert predictions.files == (f"{tmp_path}/out/predictions-new.jsonl",)
    lines = (tmp_path / "out" / "predictions-new.jsonl").read_text().splitlines()
    assert [json.loads(line) for line in lines] == [one._asdict() for one in predictions.answers]


def test_several_models_answer_with_their_mean(tuned, typed):
    together = predict_task([tuned, tuned], [PAIR, {"text": "Rain.", "pair": "Why?"}])
    assert together.answers == typed
    assert len(FinetunedModels([tuned, tuned]).runs) == 2
