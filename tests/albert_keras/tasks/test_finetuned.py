"""Fine-tuned models that answer, alone and together."""

import hashlib
import json
import shutil

import numpy as np
import pytest
from scipy.special import softmax

from albert_keras.config import AlbertConfig
from albert_keras.runs.run import Run
from albert_keras.tasks.finetune import finetune
from albert_keras.tasks.finetune_config import FinetuneConfig
from albert_keras.tasks.finetuned import (
    FinetunedModels,
    find_runs,
    is_finetuned,
)
from albert_keras.tasks.request_checks import check_answers_folder
from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

TEXTS = ["The ferry left early.", "Nobody knew why, and nobody asked.", "Rain."]


@pytest.fixture(scope="module")
def tuned(tiny_corpus, tiny_tokenizer, end_at_once, tmp_path_factory):
    """Returns the folder of a fine-tuning to two classes, with two seeds that learnt nothing."""
    folder = tmp_path_factory.mktemp("finetuned")
    rows = [f"{text}\t{'ab'[number % 2]}" for number, text in enumerate(tiny_corpus[:40])]
    (folder / "train.tsv").write_text("\n".join(["text\tlabel", *rows]) + "\n")
    shape = AlbertConfig(
        vocab_size=tiny_tokenizer.vocab_size,
        embedding_size=16,
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=32,
        initializer_range=0.5,  # so that they differ clearly
    )
    config = FinetuneConfig(
        task={
            "name": "classification",
            "train": str(folder / "train.tsv"),
            "text": "text",
            "label": "label",
            "max_seq_length": 24,
        },
        training={"steps": 2, "batch_size": 4, "precision": "float32", "peak_tflops": 1.0},
    )
    out = folder / "out"
    with end_at_once():
        finetune("random", out, config, 2, albert_config=shape, tokenizer=tiny_tokenizer)
    return out


@pytest.fixture(scope="module")
def models(tuned):
    """Returns the models of all seeds."""
    return FinetunedModels(tuned, all_seeds=True)


@pytest.fixture
def copy(tuned, tmp_path):
    """Returns a copy of the fine-tuning, to be broken."""
    return shutil.copytree(tuned, tmp_path / "copy")


def runs_of(folder):
    return sorted(folder.glob("seed-*"))


def change_record(run, change):
    record = json.loads((run / "run.json").read_text())
    change(record)
    (run / "run.json").write_text(json.dumps(record))


def probabilities(models, texts=TEXTS):
    answers = models.answers(models.examples(texts))
    return np.array([[answer.probabilities[name] for name in "ab"] for answer in answers])


def test_probabilities_of_several_are_the_mean_of_each(tuned, models):
    one, other = (probabilities(FinetunedModels(run)) for run in runs_of(tuned))
    both = probabilities(models)
    assert np.abs(one - other).max() > 1e-3
    np.testing.assert_allclose(both, (one + other) / 2, rtol=1e-12)


def test_a_model_twice_answers_as_it_does_once(tuned):
    run = runs_of(tuned)[0]
    once, twice = FinetunedModels(run), FinetunedModels([run, str(run)])
    assert once.answers(once.examples(TEXTS)) == twice.answers(twice.examples(TEXTS))


def test_all_seeds_are_all_runs(tuned, models):
    assert [run.path for run in models.runs] == runs_of(tuned)
    assert len(FinetunedModels(tuned).runs) == 1


def test_a_fine_tuning_means_its_best_seed(copy):
    results = json.loads((copy / "results.json").read_text())
    results["seeds"][0]["scores"]["dev"]["accuracy"] = 0.25
    results["seeds"][1]["scores"]["dev"]["accuracy"] = 0.75
    (copy / "results.json").write_text(json.dumps(results))
    assert find_runs(copy) == [copy / results["seeds"][1]["path"]]


def test_outputs_of_each_model_are_given(models):
    features, results = models.outputs(models.examples(TEXTS))
    assert len(features) == 3 and [result["logits"].shape for result in results] == [(3, 2)] * 2
    mean = np.mean([softmax(result["logits"].astype(np.float64), 1) for result in results], 0)
    np.testing.assert_allclose(probabilities(models), mean, rtol=1e-12)


def test_batches_make_no_difference(tuned, models):
    one_by_one = FinetunedModels(tuned, all_seeds=True, batch_size=1)
    np.testing.assert_allclose(probabilities(one_by_one), probabilities(models), atol=1e-6)


def change_name(record):
    record["config"]["task"] |= {"name": "pair", "pair": "second"}


def change_labels(record):
    record["config"]["task"]["labels"] = ["a", "c"]


@pytest.mark.parametrize(
    "change, says",
    [
        (change_name, "Received: `name` is 'classification' in .*, but 'pair' in"),
        (change_labels, r"Received: `labels` is \['a', 'b'\] in .*, but \['a', 'c'\] in"),
    ],
)
def test_different_tasks_are_refused(tuned, copy, change, says):
    other = runs_of(copy)[1]
    change_record(other, change)
    with pytest.raises(InputError, match=f"must have the same task. {says}"):
        FinetunedModels([runs_of(tuned)[0], other])


def test_models_of_other_kinds_tokenizers_and_lengths_answer_together(
    tuned, digit_tokenizer, end_at_once, tmp_path
):
    model = digit_tokenizer.model_bytes
    config = digit_tokenizer.config.replace(sha256=hashlib.sha256(model).hexdigest())
    own = json.loads((runs_of(tuned)[0] / "run.json").read_text())["config"]["task"]
    with end_at_once():
        finetune(
            "random",
            tmp_path / "other",
            FinetuneConfig(
                task=own | {"max_seq_length": 8},
                training={"steps": 2, "batch_size": 4, "precision": "float32", "peak_tflops": 1.0},
            ),
            albert_config=AlbertConfig(
                vocab_size=digit_tokenizer.vocab_size,
                embedding_size=24,
                hidden_size=24,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=32,
                max_position_embeddings=16,
                sharing="none",
                initializer_range=0.5,
            ),
            tokenizer=Tokenizer(model, config),
            bag_of_words=False,
        )
    texts = [*TEXTS, "x12,7, x12, 7,", " ".join(TEXTS)]
    members = [runs_of(tuned)[0], *runs_of(tmp_path / "other")]
    one, other, both = (FinetunedModels(runs) for runs in (*members, members))
    expected = [probabilities(models, texts) for models in (one, other)]
    assert np.abs(expected[0] - expected[1]).max() > 1e-3
    np.testing.assert_allclose(probabilities(both, texts), np.mean(expected, 0), rtol=1e-6)
    features, _ = both.outputs(both.examples(texts))
    assert [each.max_seq_length for each in features] == [24, 8]
    dropped = [
        [answer.dropped_tokens for answer in models.answers(models.examples(texts))]
        for models in (one, other, both)
    ]
    assert dropped[0][-1] < dropped[1][-1] and dropped[2] == np.maximum(*dropped[:2]).tolist()
    with pytest.raises(InputError, match="must have the same task"):
        change_record(members[1], change_labels)
        FinetunedModels(members)


def test_other_files_are_no_other_task(tuned, copy):
    other = runs_of(copy)[1]
    change_record(other, lambda record: record["config"]["task"].update(train="b.tsv", text="body"))
    assert len(FinetunedModels([runs_of(tuned)[0], other]).runs) == 2


def test_no_run_at_all_is_refused():
    with pytest.raises(InputError, match="at least one fine-tuned run. Received: none"):
        FinetunedModels([])


def test_a_fine_tuning_is_told_from_other_folders(tuned, tmp_path):
    assert is_finetuned(tuned) and is_finetuned(runs_of(tuned)[0])
    assert not is_finetuned(tmp_path)


def test_a_pre_training_run_is_none(copy):
    run = runs_of(copy)[0]
    change_record(run, lambda record: record.update(kind="pretraining"))
    assert Run.open(run).kind == "pretraining" and not is_finetuned(run)
    with pytest.raises(InputError) as caught:
        FinetunedModels(run)
    assert str(caught.value) == (
        f"`{run}` must be a fine-tuned run. Received: a run of pretraining. Fine-tune it "
        "with `albert-keras finetune`; or, to fill masks, export it with `albert-keras export` and "
        "use the export."
    )


def no_results(folder):
    (folder / "results.json").unlink()


def broken_results(folder):
    (folder / "results.json").write_text('{"path": ')


def no_run(folder):
    for run in runs_of(folder):
        shutil.rmtree(run)


def no_record(folder):
    for run in runs_of(folder):
        (run / "run.json").unlink()


def broken_checkpoint(folder):
    for file in folder.glob("*/checkpoints/*/model.ckpt.data*"):
        content = bytearray(file.read_bytes())
        content[100] ^= 1
        file.write_bytes(content)


def no_checkpoint(folder):
    for run in runs_of(folder):
        shutil.rmtree(run / "checkpoints")


def broken_tuned(folder):
    for run in runs_of(folder):
        (run / "tuned.json").write_text("[1]")


def no_tokenizer(folder):
    for run in runs_of(folder):
        shutil.rmtree(run / "tokenizer")


@pytest.mark.parametrize(
    "damage, says",
    [
        (no_results, "not complete: it has no results.json. Repeat its command .*seed-"),
        (broken_results, r"results.json` is damaged"),
        (no_run, "is damaged: its results.json names the run `seed-[0-9]+`"),
        (no_record, "is damaged: its results.json names"),
        (broken_checkpoint, "is damaged"),
        (no_checkpoint, "contains no checkpoint with a score"),
        (broken_tuned, r"tuned.json` is damaged"),
        (no_tokenizer, "tokenizer"),
    ],
)
def test_damage_is_named(copy, damage, says):
    damage(copy)
    with pytest.raises(InputError, match=says):
        FinetunedModels(copy)


@pytest.mark.parametrize(
    "arguments, says",
    [
        ({"step": 7}, "no checkpoint of step 7"),
        ({"step": "newest"}, 'number or "best"'),
        ({"strategy": "gpu"}, "Did you mean `tpu`"),
        ({"batch_size": 0}, "`batch_size` must be at least 1. Received: 0"),
        ({"pair": "q"}, "column of `pair` must not be given: classification had none"),
    ],
)
def test_wrong_settings_are_refused(tuned, arguments, says):
    with pytest.raises(InputError, match=says):
        FinetunedModels(tuned, **arguments)


def test_what_was_tuned_is_averaged(copy):
    for run, value in zip(runs_of(copy), (1.0, 4.0), strict=True):
        (run / "tuned.json").write_text(json.dumps({"null_threshold": value}))
    assert FinetunedModels(copy, all_seeds=True).tuned == {"null_threshold": 2.5}


def test_answers_keep_the_ids_of_what_was_asked(models):
    inputs = [{"id": "k7", "text": "Rain."}, "Rain.", {"text": "Rain."}, {"id": 9, "text": "Rain."}]
    answers = models.answers(models.examples(inputs))
    assert [answer.id for answer in answers] == ["k7", "1", "2", "9"]
    assert inputs[0] == {"id": "k7", "text": "Rain."}


@pytest.mark.parametrize(
    "inputs, says",
    [
        ([{"text": " "}], "^`text` must be a text. It is blank"),
        (["Rain.", ""], "^Input 2 of 2: `text` must be a text"),
        ([{"txt": "Rain."}], "text"),
        ([{"text": 3}], "Received: 3"),
        ([3], "must be a dict of texts by name. Received: 3"),
        ([{"text": "a \ud800"}], "`text` must be Unicode. It has half a surrogate pair"),
        ([{"id": None, "text": "a"}], "`id` must be a text or a number. Received: None"),
        ([{"id": "1", "text": "a"}, "b"], "different ids. Received twice: '1'"),
    ],
)
def test_what_cannot_be_asked_is_refused(models, inputs, says):
    with pytest.raises(InputError, match=says):
        models.examples(inputs)


def test_a_folder_that_cannot_be_made_is_refused_before_any_answer(tmp_path):
    (tmp_path / "file").write_text("x")
    check_answers_folder(None)
    check_answers_folder(tmp_path)
    check_answers_folder(tmp_path / "new" / "one")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    for place in ("file", "file/below"):
        with pytest.raises(InputError, match="choose another --out|Choose another --out"):
            check_answers_folder(tmp_path / place)
