"""Every family with every objective, input format and kind of masks: from records to an answer."""

import numpy as np
import pytest

from albert_keras.formats.open_weights import open_weights
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.publish import export
from albert_keras.serving.serve_check import serve_check
from albert_keras.tasks.finetune import finetune
from albert_keras.texts.encoder import TextEncoder
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain
from data_pipeline.building.build import build_records
from data_pipeline.tokenizers.library_training import train_byte_bpe, train_wordpiece
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.albert_keras.serving.local.running import running
from tests.albert_keras.tasks.small_tasks import build_model

pytestmark = pytest.mark.slow

#: Beginning of the names of models -> what model cards call them.
FAMILIES = {"albert": "ALBERT", "bert": "BERT", "roberta": "RoBERTa", "distilbert": "DistilBERT"}
#: Each format, objective and kind of masks once, and each objective of ALBERT. Formats with one
#: segment have no objective.
CASES = [
    ("albert", "segment-pair", "sop", "static"),
    ("albert", "sentence-pair", "nsp", "dynamic"),
    ("albert", "segment-pair", "none", "static"),
    ("bert", "sentence-pair", "nsp", "dynamic"),
    ("bert", "full-sentences", "none", "static"),
    ("roberta", "doc-sentences", "none", "dynamic"),
    ("roberta", "full-sentences", "none", "static"),
    ("roberta", "segment-pair", "sop", "dynamic"),
    ("distilbert", "doc-sentences", "none", "static"),
    ("distilbert", "sentence-pair", "sop", "dynamic"),
]


@pytest.fixture(scope="module")
def tokenizers(tiny_tokenizer, tiny_corpus, tmp_path_factory):
    """Returns the tokenizer of each family."""
    folder = tmp_path_factory.mktemp("vocabulary")
    pieces = Tokenizer.load(train_wordpiece(tiny_corpus, folder / "wordpiece", 350).path)
    byte_bpe = Tokenizer.load(train_byte_bpe(tiny_corpus, folder / "bpe", 400).path)
    return {"albert": tiny_tokenizer, "bert": pieces, "roberta": byte_bpe, "distilbert": pieces}


@pytest.fixture
def make_records(tiny_documents, tokenizers, tiny_data_config, tmp_path):
    """Returns a function that builds the records for a family."""

    def make(family, input_format, objective, masks):
        settings = tiny_data_config.replace(
            input_format=input_format, objective=objective, static_masks=masks == "static"
        )
        return build_records(
            tiny_documents, tokenizers[family], tmp_path / "records", settings
        ).path

    return make


def settings(family, **model):
    shape = {"size": f"{family}-tiny", "hidden_size": 32, "num_attention_heads": 2}
    shape |= {"embedding_size": 16 if family == "albert" else 32, "intermediate_size": 64}
    training = {"steps": 2, "batch_size": 8, "report_every": 1, "precision": "float32"}
    return PretrainingConfig(
        model=shape | {"max_position_embeddings": 32} | model,
        training=training,
    )


@pytest.mark.parametrize("family, input_format, objective, masks", CASES)
def test_a_family_trains_saves_resumes_exports_and_answers(
    family, input_format, objective, masks, make_records, tmp_path
):
    records = make_records(family, input_format, objective, masks)
    first = pretrain(records, tmp_path / "run", settings(family), max_steps=1)
    result = pretrain(records, tmp_path / "run", settings(family))
    assert (first.step, result.resumed_from, result.step) == (1, 1, 2)
    assert np.isfinite(result.report["loss"])
    model = open_weights(tmp_path / "run").build()
    assert (model.sentence_order_head is not None) == (objective != "none")
    has_pooler = family in ("albert", "bert") or objective != "none"
    assert (model.encoder.pooler is not None) == has_pooler
    predictor = Predictor(export(tmp_path / "run", tmp_path / "exported").path)
    (filled,) = predictor.fill_mask(["The [MASK] left the harbour."])
    assert filled.filled_text.startswith("The ")
    assert filled.filled_text.endswith(" left the harbour.")
    assert np.isfinite(predictor.ask("embed", text=["a ferry"])["embedding"]).all()
    card = (tmp_path / "exported" / "1" / "README.md").read_text(encoding="utf-8")
    assert f"\n{FAMILIES[family]}, " in card
    # A task starts from the run.
    weights = open_weights(tmp_path / "run")
    report = weights.load(build_model("classification", weights.albert_config, 2))
    assert ("bert/pooler/dense/kernel" in report.new) == (not has_pooler)


def test_rotary_positions_train_resume_and_answer_alike_in_run_and_export(make_records, tmp_path):
    records = make_records("albert", "segment-pair", "sop", "dynamic")
    config = settings("albert", position_embedding="rotary")
    pretrain(records, tmp_path / "run", config, max_steps=1)
    assert pretrain(records, tmp_path / "run", config).resumed_from == 1
    predictor = Predictor(export(tmp_path / "run", tmp_path / "exported").path)
    texts = ["a ferry", "the ferry left at six in the morning"]
    wanted = TextEncoder(tmp_path / "run").encode(texts).vectors
    found = predictor.ask("embed", text=texts)["embedding"]
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    card = (tmp_path / "exported" / "1" / "README.md").read_text(encoding="utf-8")
    assert "\nALBERT, 2 layers that share one set of weights, rotary positions, " in card


@pytest.mark.parametrize("family", ["albert", "roberta"])
def test_the_exports_of_a_family_pass_the_checks_of_a_server(family, make_records, tmp_path):
    records = make_records(family, "segment-pair", "none", "dynamic")
    pretrain(records, tmp_path / "run", settings(family))
    rows = ["text\tlabel", *(f"The ferry {n} left\t{'ab'[n % 2]}" for n in range(20))]
    table = tmp_path / "table.tsv"
    table.write_text("\n".join(rows) + "\n", encoding="utf-8")
    options = {"task": "classification", "train": table, "text": "text", "label": "label"}
    options |= {"max_seq_length": 16, "steps": 2}
    finetune(tmp_path / "run", tmp_path / "tuned", **options)
    for run in ("run", "tuned"):
        out = tmp_path / "exports" / run
        export(tmp_path / run, out)
        with running([out]) as server:
            checked = serve_check(server.url, run)
        assert checked.answered and checked.faults == {}
