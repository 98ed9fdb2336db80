"""The benchmark of building on a corpus of a few kilobytes: what is counted, not how fast."""

import pytest

from data_pipeline.errors import InputError
from tests.benchmarks.data import CEILING, benchmark_data, data_lines


@pytest.mark.slow
def test_every_build_is_measured_beside_the_ceiling(tiny_corpus, tiny_vocabulary, tmp_path):
    (tmp_path / "a.txt").write_text("\n\n".join(tiny_corpus))
    result = benchmark_data(
        [str(tmp_path)], tiny_vocabulary.path, max_seq_length=32, copies=[1, 2], repeats=1
    )
    names = [CEILING, "copies 1, 1 worker", "copies 2, 1 worker", "copies 1, 2 workers"]
    assert list(result["runs"]) == names
    ceiling, one, two, parallel = result["runs"].values()
    assert ceiling["of_ceiling"]["median"] == 1 and ceiling["sequences"] == 0
    assert 100 < one["sequences"] < two["sequences"]
    for name in ("sequences_per_second", "text_mb_per_second", "of_ceiling"):
        assert 0 < one[name]["low"] <= one[name]["median"] <= one[name]["high"]
    assert 0 < one["cpus"] < 2 and one["peak_mb"] > 20 and one["worker_peak_mb"] is None
    assert parallel["worker_peak_mb"] > 20
    assert all(len(line) <= 120 for line in data_lines(result))


def test_a_corpus_that_is_not_there_is_refused(tmp_path, tiny_vocabulary):
    with pytest.raises(InputError, match="does not exist"):
        benchmark_data([str(tmp_path / "nothing")], tiny_vocabulary.path)
