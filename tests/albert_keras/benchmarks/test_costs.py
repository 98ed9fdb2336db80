"""The cost table: what is measured whole or extrapolated, relative speed, failures told."""

import pytest

from albert_keras.benchmarks import costs
from albert_keras.benchmarks.shapes import make_shape
from albert_keras.training.cost.flops import training_flops
from data_pipeline.errors import InputError


@pytest.fixture
def steps(monkeypatch):
    """Makes a step take 0.5 s and 0.25 s for each layer, and remembers the depths measured."""
    seen = []

    def take(shape, precision):
        layers = shape.config.num_hidden_layers
        seen.append((shape.model, layers))
        return {"seconds": 0.5 + layers / 4, "peak_mb": 600 + 100 * layers, "step_mb": 50 * layers}

    monkeypatch.setattr(costs, "_try", take)
    return seen


def test_what_fits_is_measured_whole_and_the_rest_at_small_depths(steps):
    result = costs.benchmark_costs(("bert-large", "bert-xlarge"), 1, 128, memory_bytes=16e9)
    assert steps == [("bert-large", 24), ("bert-xlarge", 2), ("bert-xlarge", 4)]
    whole, extended = result["models"]["bert-large"], result["models"]["bert-xlarge"]
    assert whole["seconds"]["median"] == extended["seconds"]["median"] == 6.5
    assert extended["peak_mb"]["median"] == 3000 and extended["from_layers"] == [2, 4]
    lines = "\n".join(costs.costs_lines(result))
    assert "bert-xlarge: does not fit; extrapolated from 2 and 4 of 24 layers" in lines
    assert "from 2+4 layers" in lines and lines.count("whole") == 1


def test_speed_is_relative_to_bert_large(steps):
    result = costs.benchmark_costs(("bert-large", "albert-base"), 2, 64, memory_bytes=50e9)
    large, base = result["models"].values()
    assert (large["speed"], large["published_speed"]) == (1.0, 1.0)
    assert base["speed"] == pytest.approx(6.5 / 3.5) and base["published_speed"] == 5.6
    shape = make_shape("albert-base", 2, 64)
    flops = training_flops(shape.config, 2, 64, 9, sentence_head=False)
    assert base["gflops"] == pytest.approx(flops / 3.5 / 1e9)


def test_what_does_not_fit_at_all_or_dies_is_told(steps, monkeypatch):
    result = costs.benchmark_costs(("bert-xlarge",), memory_bytes=1e9)
    assert "does not fit" in result["models"]["bert-xlarge"]["failed"] and not steps
    monkeypatch.setattr(costs, "_try", lambda shape, precision: {"failed": "out of memory"})
    result = costs.benchmark_costs(("albert-base",), memory_bytes=50e9)
    assert result["models"]["albert-base"]["failed"] == "out of memory"
    assert "albert-base: out of memory" in list(costs.costs_lines(result))


def test_a_line_goes_through_two_depths():
    assert costs.at_full_depth((2, 4), (3.0, 5.0), 24) == 25.0
    assert costs.at_full_depth((24,), (3.0,), 24) == 3.0


def test_an_unknown_model_is_refused():
    with pytest.raises(InputError, match="Did you mean"):
        costs.benchmark_costs(("albert-bas",))


@pytest.mark.slow
def test_a_real_step_is_measured():
    result = costs.benchmark_costs(("albert-tiny",), 2, 32)
    row = result["models"]["albert-tiny"]
    assert row["seconds"]["median"] > 0 and row["peak_mb"]["median"] > 100
