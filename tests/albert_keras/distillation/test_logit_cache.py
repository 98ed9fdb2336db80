"""A cache of the teacher's logits gives what the teacher gives, and any other cache is refused."""

import json
import shutil

import numpy as np
import pytest

from albert_keras.distillation import logit_cache
from albert_keras.distillation.distill import distill
from albert_keras.distillation.logit_cache import CachedSource, open_or_write
from albert_keras.distillation.student import signals_of
from albert_keras.distillation.teaching import Teacher
from albert_keras.formats.open_model import open_model
from albert_keras.runs.log_file import read_log
from albert_keras.runs.run import Run
from data_pipeline.errors import InputError
from data_pipeline.records.record_folder import RecordFiles

LOSSES = ("masked_lm_loss", "soft_target_loss")


@pytest.fixture(scope="module")
def cached_settings(distillation):
    """Returns the settings without a cosine loss, with soft targets of 40 pieces."""
    return distillation.replace(
        distillation=distillation.distillation.replace(cosine_weight=0.0, top_k=40)
    )


@pytest.fixture(scope="module")
def cached(tiny_run, tiny_records, cached_settings, tmp_path_factory):
    """Returns the folders of a run with a cache, and of the cache that it wrote."""
    folder = tmp_path_factory.mktemp("cached")
    run = distill(
        tiny_run, tiny_records, folder / "run", cached_settings, cache=folder / "cache"
    ).path
    return run, folder / "cache"


def assert_equal_losses(found, expected):
    for ours, theirs in zip(read_log(found), read_log(expected), strict=True):
        for name in LOSSES:
            assert ours[name] == pytest.approx(theirs[name], rel=2e-4), (ours["step"], name)


def test_a_cache_gives_what_the_teacher_gives(
    cached, tiny_run, tiny_records, cached_settings, tmp_path
):
    live = distill(tiny_run, tiny_records, tmp_path / "run", cached_settings).path
    assert_equal_losses(cached[0], live)
    values = np.load(cached[1] / "logits.npy", mmap_mode="r")
    assert (np.diff(values) <= 0).all() and values.shape[2] == 40


@pytest.mark.parametrize("masks", ["static", "dynamic"])
def test_each_row_of_each_part_of_a_batch_has_its_logits(
    tiny_run, tiny_records, cached_settings, tmp_path, masks
):
    records, steps = RecordFiles(tiny_records), 30  # some epochs
    config = cached_settings.with_flags(masks=masks, steps=steps)
    teacher = Teacher(open_model(tiny_run))
    cache = open_or_write(tmp_path / "cache", teacher, records, config)
    described = json.loads((tmp_path / "cache/cache.json").read_text())
    assert described["num_rows"] == (len(records) if masks == "static" else 8 * steps)
    source = CachedSource(records, config.training, cache=cache)
    model = teacher.build("float32")
    for first_step, how in ((0, {}), (27, {"worker": (1, 2), "replicas": 2})):
        for batch in source.read(first_step, **how).take(3):
            signals = signals_of(model, batch, top_k=40)
            np.testing.assert_allclose(batch["teacher_logits"], signals.logits, atol=1e-4)
            assert np.mean(batch["teacher_pieces"] == signals.pieces) > 0.98  # but for equal ones


def test_a_cache_is_read_without_the_teacher(
    cached, tiny_run, tiny_records, cached_settings, tmp_path, monkeypatch
):
    monkeypatch.setattr(Teacher, "build", None)  # fails if it is called
    _, cache = cached
    out = tmp_path / "run"
    distill(tiny_run, tiny_records, out, cached_settings, max_steps=2, cache=cache)
    assert Run.open(out).checkpoints.steps() == [2]


def test_a_cache_appears_whole_or_not_at_all(
    tiny_run, tiny_records, cached_settings, tmp_path, monkeypatch
):
    def fail(path):
        raise OSError("no space left")

    monkeypatch.setattr(logit_cache, "sha256_of", fail)
    with pytest.raises(OSError):
        distill(tiny_run, tiny_records, tmp_path / "run", cached_settings, cache=tmp_path / "cache")
    assert not list(tmp_path.iterdir())


def refused(cached, tiny_run, records, settings, tmp_path, message, **how):
    with pytest.raises(InputError, match=message):
        distill(tiny_run, records, tmp_path / "run", settings, cache=cached, **how)
    assert not (tmp_path / "run").exists()


def test_a_cache_of_something_else_is_refused(
    cached, tiny_run, tiny_records, held_out_records, cached_settings, tmp_path
):
    cache = cached[1]
    more = cached_settings.replace(distillation=cached_settings.distillation.replace(top_k=41))
    refused(
        *(cache, tiny_run, tiny_records, cached_settings, tmp_path, "teacher_digest: "),
        teacher_step=5,
    )
    message = "records_fingerprint: "
    refused(cache, tiny_run, held_out_records, cached_settings, tmp_path, message)
    refused(cache, tiny_run, tiny_records, more, tmp_path, "top_k: 40 in the cache, 41 here")
    dynamic = cached_settings.with_flags(masks="dynamic")
    refused(cache, tiny_run, tiny_records, dynamic, tmp_path, "seed: None in the cache, ")


@pytest.mark.parametrize("name", ["logits.npy", "pieces.npy", "cache.json"])
def test_a_damaged_cache_is_refused(
    cached, tiny_run, tiny_records, cached_settings, tmp_path, name
):
    copy = tmp_path / "copy"
    shutil.copytree(cached[1], copy)
    content = bytearray((copy / name).read_bytes())
    content[len(content) // 2] ^= 1
    (copy / name).write_bytes(b"{" if name == "cache.json" else content)
    refused(copy, tiny_run, tiny_records, cached_settings, tmp_path, "damaged|was changed")


def test_stages_and_unknown_lengths_have_no_cache(
    tiny_run, tiny_records, cached_settings, tmp_path
):
    staged = cached_settings.replace(stages=[{"share": 0.5}, {"share": 0.5, "batch_size": 4}])
    refused(tmp_path / "cache", tiny_run, tiny_records, staged, tmp_path, "stages` cannot use")
    timed = cached_settings.with_flags(masks="dynamic", time_budget="1h")
    refused(tmp_path / "cache", tiny_run, tiny_records, timed, tmp_path, "time_budget")
