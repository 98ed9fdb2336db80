"""The benchmark of reading on a few records: what is counted, not how fast."""

import shutil

import pytest

from data_pipeline.records.dataset_info import DatasetInfo
from tests.benchmarks.read import FAR_STEP, benchmark_read, read_lines


@pytest.fixture(scope="module")
def result(tiny_records):
    return benchmark_read(tiny_records, batch_size=4, steps=3, repeats=1)


@pytest.mark.slow
def test_every_way_to_read_is_measured(result):
    assert list(result["reading"]) == [
        "bytes only",
        "static masks",
        "dynamic masks",
    ]
    for reading in result["reading"].values():
        speed = reading["sequences_per_second"]["median"]
        assert speed > 0 and reading["cpu_microseconds"]["median"] >= 0
        assert speed * reading["microseconds"]["median"] == pytest.approx(1e6)
    assert list(result["first_batch"]) == ["0", str(FAR_STEP)]
    assert all(seconds["low"] > 0 for seconds in result["first_batch"].values())


@pytest.mark.slow
def test_the_cost_of_dynamic_masks_is_that_of_the_same_round(result):
    static, dynamic = (
        result["reading"][f"{kind} masks"]["microseconds"]["median"]
        for kind in ("static", "dynamic")
    )
    assert result["dynamic_cost"]["median"] == pytest.approx(dynamic / static - 1)


def test_records_without_masks_or_without_a_tokenizer_are_measured_too(tiny_records, tmp_path):
    folder = shutil.copytree(tiny_records, tmp_path / "copy")
    info = DatasetInfo.load(folder)
    info.replace(config=info.config | {"static_masks": False}).save(folder)
    result = benchmark_read(folder, batch_size=2, steps=1, repeats=1)
    assert "static masks" not in result["reading"] and "dynamic masks" in result["reading"]
    assert result["dynamic_cost"] is None

    info.save(folder)
    shutil.rmtree(folder / "tokenizer")
    result = benchmark_read(folder, batch_size=2, steps=1, repeats=1)
    assert "static masks" in result["reading"] and "dynamic masks" not in result["reading"]
    assert "dynamic masks cost" not in "\n".join(read_lines(result))
