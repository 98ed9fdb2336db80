"""The scripts of docs/studies: every study is valid, and small ones run from text to a table."""

import csv
import importlib.util
import io
import json

import pytest
import yaml

from albert_keras import AlbertForPretraining, load_tokenizer
from data_pipeline.errors import InputError
from tests.documentation.code_blocks import blocks_of
from tests.repository import ROOT, needs_repository

pytestmark = needs_repository
FOLDER = ROOT / "docs" / "studies"
STUDIES = sorted(path for path in FOLDER.glob("*.yaml") if path.name != "scales.yaml")
MICRO = {
    "title": "Sentence tasks, for tests",
    "measures": {"sop": "SOP of the paper"},
    "evaluate": {"masked LM": {"objective": "none"}, "SOP": {"objective": "sop"}},
    "base": {
        "vocabulary_size": 300,
        "data": {"max_seq_length": 32},
        "model": {
            "hidden_size": 32,
            "num_attention_heads": 2,
            "intermediate_size": 64,
            "embedding_size": 16,
            "max_position_embeddings": 64,
        },
        "training": {"steps": 4, "batch_size": 8, "checkpoint_every": 4, "report_every": 2},
    },
    "runs": [
        {"name": "none", "data": {"objective": "none"}, "published": {"sop": 53.3}},
        {"name": "SOP", "data": {"objective": "sop"}},
        {"name": "student", "teacher": "SOP", "corpus_share": 0.5},
    ],
}


def script(name):
    """Imports a script of the folder."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def study():
    return script("study")


@pytest.mark.parametrize("scale", ["tiny", "mini", "paper"])
@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_is_valid_at_every_scale(study, path, scale):
    read = study.Study(**yaml.safe_load(path.read_text(encoding="utf-8")))
    planned, held_out = study.plan(read, scale, {})
    assert len(planned) == len(read.runs) >= 2 and held_out
    assert all(run.published.keys() <= read.measures.keys() for run in read.runs)
    assert all(config.static_masks for config in held_out.values())


def test_all_files_repeat_a_claim_and_the_study_of_the_page_is_valid(study):
    page = ROOT / "docs" / "experiments.md"
    claims = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert all(f"`{path.stem}`" in claims for path in STUDIES)
    values = [yaml.safe_load(block.text) for block in blocks_of(page) if block.language == "yaml"]
    (mine,) = (one for one in values if "runs" in one)
    planned, _ = study.plan(study.Study(**mine), "tiny", {})
    assert list(planned) == ["base", "with dropout", "less text", "student"]


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"seds": 3}, "`seds` is not a known key"),
        ({"runs": [{"name": "a", "model": {"hiden_size": 3}}]}, "hiden_size"),
        (
            {"runs": [{"name": "a", "teacher": "b"}]},
            "The teacher 'b' of `a` must be an earlier run",
        ),
        ({"base": {"data": {"max_seq_lenth": 64}}}, "max_seq_lenth"),
    ],
)
def test_a_wrong_study_is_refused(study, changes, message):
    with pytest.raises(InputError, match=message):
        study.plan(study.Study(**(MICRO | changes)), "tiny", {})


def test_later_settings_take_precedence(study):
    run = {"name": "a", "training": {"steps": 8}, "scales": {"tiny": {"training": {"seed": 9}}}}
    read = study.Study(**MICRO | {"runs": [run], "scales": {"tiny": {"training": {"steps": 5}}}})
    planned, held_out = study.plan(read, "tiny", {"training": {"batch_size": 4}}, length=0.5)
    _, _, config = planned["a"]
    assert (config.training.steps, config.training.seed, config.training.batch_size) == (4, 9, 4)
    assert held_out["SOP"].objective == "sop" and held_out["SOP"].max_seq_length == 32


@pytest.mark.slow
def test_a_study_runs_from_text_to_a_table_and_uses_again_what_is_finished(
    study, tiny_corpus, tmp_path, capsys, monkeypatch
):
    for start in range(0, len(tiny_corpus), 12):
        text = "\n\n".join(tiny_corpus[start : start + 12])
        (tmp_path / f"{start:03}.txt").write_text(text + "\n", encoding="utf-8")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(MICRO, sort_keys=False))
    out = tmp_path / "out"
    words = [f"{tmp_path}/mine.yaml", "--corpus", f"{tmp_path}/*.txt", "--out", str(out)]
    study.main(words)
    shown = capsys.readouterr().out
    assert (out / "report.md").read_text(encoding="utf-8") in shown
    rows = [line.split("|")[1:-1] for line in shown.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in rows[0]][:4] == ["run", "updates", "masked LM", "SOP"]
    assert [cell.strip() for cell in rows[2]][:4:3] == ["none", "no head"]
    assert "53.3" in rows[2][4] and ".." in rows[3][3]
    assert len(list(out.glob("runs/*/result.json"))) == 6
    monkeypatch.setattr(study, "pretrain", None)  # nothing is trained again
    monkeypatch.setattr(study, "distill", None)
    study.main(words)
    assert (out / "report.md").read_text(encoding="utf-8") in shown


@pytest.mark.slow
def test_the_runs_of_a_study_are_timed_in_turn(tmp_path, capsys, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    times = script("times")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump(MICRO))
    times.main([f"{tmp_path}/mine.yaml", "--runs", "SOP", "none", "--rounds", "2"])
    rows = [line.split("|")[1:-1] for line in capsys.readouterr().out.splitlines()]
    assert [cell.strip() for cell in rows[2]][::5] == ["SOP", "1.00"]
    assert rows[2][3].strip() == "4" and int(rows[3][3]) >= 1 and len(rows) == 4


def test_the_states_of_all_layers_are_measured(tiny_run, tmp_path, capsys):
    layers, path = script("layers"), tmp_path / "texts.txt"
    path.write_text("The old ferry left the harbour.\n\nSeven geese crossed the lake.\n")
    layers.main([str(tiny_run), "--texts", str(path), "--depth", "5"])
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [int(row["depth"]) for row in rows] == list(range(6))
    # Up to the trained depth, the states are those of the encoder.
    tokenizer = load_tokenizer(tiny_run)
    model = AlbertForPretraining.from_preset(tiny_run, sentence_head=False, dtype="float32")
    texts = layers.masked_rows(["The old ferry left the harbour."], tokenizer, 64)
    ((ids, positions, labels),) = texts
    masks = layers.measure(model, [(ids, positions, labels)], 2)
    logits = model.masked_lm_head(model.encoder({"input_ids": ids})["sequence_output"], positions)
    accuracy = (logits.numpy()[0].argmax(axis=-1) == labels).mean()
    assert masks.shape == (3, 5) and masks[2, 4] == pytest.approx(accuracy)
    assert (masks[0, :3] == 0).all() and (masks[1:, 0] > 0).all()
    own = AlbertForPretraining(model.config.replace(sharing="none"), sentence_head=False)
    with pytest.raises(SystemExit, match="`--depth` must be at most 2"):
        layers.deeper(own, 3)


def test_minimal_pairs_are_scored_by_the_tokens_that_are_masked(tiny_run, tmp_path, capsys):
    blimp, path = script("blimp"), tmp_path / "pairs.jsonl"
    good, bad = "The old ferry left the harbour.", "Seven geese crossed."
    pairs = [
        {"sentence_good": good, "sentence_bad": bad, "UID": "a", "field": "x"},
        {"sentence_good": bad, "sentence_bad": good, "UID": "b"},
        {"sentence_good": good, "sentence_bad": good, "UID": "tie"},
    ]
    path.write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    blimp.main([str(tiny_run), str(path)])
    shown = capsys.readouterr().out.splitlines()
    assert shown[-1] == " 50.0%  mean of 3 paradigms, 3 pairs" and " 50.0%  tie (1 pairs)" in shown
    # By hand: a sum over sentences with one token masked each.
    tokenizer = load_tokenizer(tiny_run)
    model = AlbertForPretraining.from_preset(tiny_run, sentence_head=False, dtype="float32")
    ids = [tokenizer.cls_id, *map(int, tokenizer.encode(bad)), tokenizer.sep_id]
    expected = 0.0
    for position in range(1, len(ids) - 1):
        masked = [*ids[:position], tokenizer.mask_id, *ids[position + 1 :]]
        inputs = {"input_ids": [masked], "masked_lm_positions": [[position]]}
        logits = model(inputs)["masked_lm_logits"].numpy()[0, 0]
        expected += logits[ids[position]] - blimp.np.logaddexp.reduce(logits)
    assert blimp.score(model, tokenizer, [good, bad])[1] == pytest.approx(expected, rel=1e-4)
    path.write_text('{"sentence_good": "a"}\n')
    with pytest.raises(SystemExit, match="line 1 is no minimal pair: KeyError"):
        blimp.main([str(tiny_run), str(path)])
