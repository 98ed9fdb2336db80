"""Fine-tuned runs are exported: what their exports hold, and that they answer as the runs do."""

import json

import numpy as np
import pytest
import tensorflow as tf
from tensorflow import keras

from albert_keras.conversion.convert import convert
from albert_keras.runs.run import Run
from albert_keras.serving.export.checks import TEXTS, compare
from albert_keras.serving.export.lite import write_lite
from albert_keras.serving.export.source import open_source
from albert_keras.serving.predictor import Predictor
from albert_keras.serving.publish import export
from albert_keras.serving.saved_model.signatures import WARM_UP_FILE, read_signatures
from albert_keras.tasks.finetuned import open_finetuned
from data_pipeline.errors import InputError
from tests.albert_keras.serving.small_exports import make_model, write_run
from tests.albert_keras.tasks.small_tasks import SETTINGS, make_task


@pytest.fixture(scope="module")
def runs(tiny_tokenizer, tiny_corpus, tmp_path_factory):
    """Returns a function of a kind that gives the folder of a fine-tuned run, made once."""
    made, out = {}, tmp_path_factory.mktemp("runs")

    def of_kind(kind):
        if kind not in made:
            task = make_task(kind)
            model = make_model(task, tiny_tokenizer)
            made[kind] = write_run(out / kind, task, model, tiny_tokenizer, tiny_corpus)
        return made[kind]

    return of_kind


@pytest.fixture(scope="module")
def exported(runs, tmp_path_factory):
    """Returns the ExportResult of pairs that are classified."""
    out = tmp_path_factory.mktemp("models") / "pairs"
    return export(runs("classification"), out)


def test_a_version_holds_what_servers_and_readers_want(exported):
    signatures = {one.name: one for one in read_signatures(exported.path)}
    assert set(signatures) == set(exported.signatures)
    assert set(signatures) == {
        *("serving_default", "text_pair", "classify", "encode", "embed"),
        *("explain_tokens", "attention", "predict_tokens"),
    }
    assert {one.method for one in signatures.values()} == {"predict", "classify"}
    assert not any(name.endswith("_bytes") for one in signatures.values() for name in one.outputs)
    assert (exported.path / WARM_UP_FILE).stat().st_size > 1000
    assert exported.largest_difference < 1e-5
    record = json.loads((exported.path / "export.json").read_text())
    assert record["kind"] == "finetuning" and record["task"]["labels"] == ["no", "yes", "maybe"]
    assert record["task"]["takes_pair"] and record["task"]["max_seq_length"] == 40
    assert record["fingerprint"] == exported.fingerprint and len(exported.fingerprint) == 5
    assert set(record["signatures"]) == set(signatures)


def test_where_files_lay_and_what_was_typed_stays_at_home(exported, tiny_export):
    for version in (exported.path, tiny_export / "1"):
        text = (version / "export.json").read_text()
        assert '"/' not in text and "command" not in json.loads(text)["run"]


def test_it_answers_as_the_run(exported, runs):
    texts = [text for text in TEXTS if text.strip()]
    inputs = [{"text": one, "pair": other} for one in texts for other in texts]
    predictor, model = Predictor(exported.path.parent), open_finetuned(runs("classification"))
    expected = model.answers(model.examples(inputs))
    assert len({answer.label for answer in expected}) > 1
    for one, other in zip(predictor.answer(inputs), expected, strict=True):
        assert one.label == other.label
        assert one.probability == pytest.approx(other.probability, abs=1e-5)


def test_shorter_rows_can_be_asked_for(runs):
    source = open_source(runs("classification"), max_seq_length=16)
    assert source.task.max_seq_length == 16
    packer = source.string_model("float32").packer
    assert packer.max_seq_length == 16


def test_what_is_no_checkpoint_or_option_is_refused(runs, tmp_path):
    run = runs("classification")
    with pytest.raises(InputError, match="from 8 to `max_position_embeddings`"):
        export(run, tmp_path / "name", max_seq_length=65)
    with pytest.raises(InputError, match="7"):
        export(run, tmp_path / "name", step=7)
    with pytest.raises(InputError, match="contains no trained model"):
        export(tmp_path, tmp_path / "name")
    assert not list(tmp_path.iterdir())


def test_a_converted_model_is_one_to_export(tiny_run, tmp_path):
    run = Run.open(tiny_run)
    convert(tiny_run, tmp_path / "other", to="hugging-face")
    convert(tmp_path / "other", tmp_path / "converted")
    source, meant = open_source(tmp_path / "converted"), open_source(tiny_run)
    assert source.max_seq_length == run.albert_config.max_position_embeddings
    assert source.step is None  # it is unknown
    for weight, other in zip(source.model.weights, meant.model.weights, strict=True):
        np.testing.assert_array_equal(weight, other)
    told = source.describe()
    assert told["kind"] == "pretraining" and told["run"]["tokenizer_digest"] == run.tokenizer.digest


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["float32", "bfloat16", "int8"])
@pytest.mark.parametrize("kind", SETTINGS)
def test_every_kind_passes_all_checks(runs, tmp_path, kind, precision):
    result = export(runs(kind), tmp_path / "name", precision=precision)
    if precision == "float32":
        assert result.largest_difference < 1e-5 and not result.losses
    else:
        assert 0 < result.losses[precision].num_predictions <= 256
        loss = result.losses[precision]
        # Scores of a head that was drawn are far apart; half a hundredth more is another one.
        assert loss.largest_difference < 0.5 if kind == "regression" else loss.agreement > 0.8
    assert result.num_bytes > result.saved_model_bytes


@pytest.mark.slow
def test_block_sparse_attention_passes_all_checks(tiny_tokenizer, tiny_corpus, tmp_path):
    task = make_task("classification")
    sparse = {"attention": "block-sparse", "attention_block_size": 4, "attention_random_blocks": 1}
    model = make_model(task, tiny_tokenizer, **sparse)
    assert 5 * 4 < task.max_seq_length  # more positions than one attends to
    run = write_run(tmp_path / "run", task, model, tiny_tokenizer, tiny_corpus)
    result = export(run, tmp_path / "name")
    assert result.largest_difference < 1e-5
    assert keras.models.load_model(f"{result.path}.keras").config.attention == "block-sparse"


@pytest.mark.parametrize(
    "kind",
    ["spans", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("choice", "similarity"))],
)
def test_tensorflow_lite_answers_as_the_run(kind, runs, tmp_path):
    source = open_source(runs(kind))
    files = write_lite(tmp_path, source, ["float16"])
    losses = compare(source, "float32", None, files)
    assert losses["lite float16"].num_predictions > 1
    assert losses["lite float16"].largest_difference < 0.01
    signatures = tf.lite.Interpreter(str(files["float16"])).get_signature_list()
    assert signatures["predict_tokens"]["inputs"] == ["input_ids", "input_mask", "segment_ids"]
