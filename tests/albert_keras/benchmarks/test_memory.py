"""The memory of a step is measured with blocks kept and computed again, and told."""

import pytest

from albert_keras.benchmarks.memory import benchmark_memory, memory_lines
from data_pipeline.errors import InputError


def kind(peak_mb, step_mb, seconds):
    values = {"peak_mb": peak_mb, "step_mb": step_mb, "seconds": seconds}
    return {name: {"median": value, "low": value, "high": value} for name, value in values.items()}


def test_a_table_compares_with_blocks_kept():
    from albert_keras.benchmarks.measure import machine

    settings = {"model": "m", "batch_size": 8, "max_seq_length": 512, "precision": "float32"}
    result = {
        "machine": machine(),
        "settings": settings | {"repeats": 1},
        "kinds": {"blocks kept": kind(6700, 6000, 12), "computed again": kind(2100, 1500, 15)},
    }
    *_, kept, again = memory_lines(result)
    assert kept.split()[-5:] == ["6,700", "6,000", "1.0", "12.00", "+0%"]
    assert again.split()[-5:] == ["2,100", "1,500", "4.0", "15.00", "+25%"]


def test_peers_stand_below_or_tell_why_not():
    from albert_keras.benchmarks.measure import machine

    settings = {"model": "m", "batch_size": 8, "max_seq_length": 512, "precision": "float32"}
    peer = {"peak_mb": 3000, "step_mb": 1000, "seconds": {"median": 6, "low": 6, "high": 6}}
    result = {
        "machine": machine(),
        "settings": settings | {"repeats": 1},
        "kinds": {"blocks kept": kind(6700, 6000, 12)},
        "peers": {"a, float32": peer, "b, float32": {"failed": "not installed"}},
    }
    *_, there, absent = memory_lines(result)
    assert there.split()[-5:] == ["3,000", "1,000", "6.0", "6.00", "-50%"]
    assert absent == "  b, float32: not installed"


def test_peers_have_no_float16():
    with pytest.raises(InputError, match="float32 or mixed_bfloat16"):
        benchmark_memory("2x64", precision="mixed_float16", peers=["all"])


@pytest.mark.slow
def test_blocks_computed_again_take_less():
    result = benchmark_memory("albert-tiny", 64, 256, parts=2)
    kinds = {name: kind["step_mb"]["median"] for name, kind in result["kinds"].items()}
    assert len(kinds) == 4 and kinds["computed again"] < kinds["blocks kept"]
    assert all(kind["seconds"]["median"] > 0 for kind in result["kinds"].values())
