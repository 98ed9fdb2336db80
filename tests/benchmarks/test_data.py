"""The benchmark of building on a corpus of a few kilobytes: what is counted, not how fast."""

import pytest

from data_pipeline.errors import InputError
from tests.benchmarks.corpus import repeat_files
from tests.benchmarks.data import benchmark_data, data_lines


@pytest.fixture(scope="module")
def corpus(tiny_corpus, tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    (folder / "a.txt").write_text("\n\n".join(tiny_corpus[:200]))
    (folder / "b.txt").write_text("\n\n".join(tiny_corpus[200:]))
    return folder


@pytest.fixture(scope="module")
def result(corpus, tiny_vocabulary):
    return benchmark_data(
        [corpus],
        tiny_vocabulary.path,
        max_seq_length=32,
        copies=[1],
        workers=[1, 2],
        repeats=1,
        scale_to_mb=0.05,
    )


@pytest.mark.slow
def test_what_is_measured_is_told(result, corpus):
    text = "".join(path.read_text() for path in sorted(corpus.iterdir()))
    told = result["corpus"]
    assert (told["vocab_size"], told["max_seq_length"]) == (307, 32)
    assert told["max_predictions_per_seq"] == 5
    assert told["text_mb"] == pytest.approx(
        len(text.replace("\n\n", "\n").encode()) / 1e6, rel=0.01
    )


@pytest.mark.slow
def test_every_number_is_positive(result):
    (build,) = result["builds"]
    for name in ("sequences_per_second", "text_mb_per_second", "text_to_ceiling"):
        assert 0 < build[name]["low"] <= build[name]["median"] <= build[name]["high"]
    assert build["sequences"] > 100 and build["peak_mb"] > 20
    assert 0 < build["cpu_share"] < 2 and 0 < result["ceiling"]["cpu_share"] < 2
    assert result["start_up"]["process_seconds"]["low"] > 0
    assert result["start_up"]["workers_seconds"][2]["low"] > 0


@pytest.mark.slow
def test_numbers_fit_together(result):
    (build,) = result["builds"]
    assert sum(build["stages"].values()) == pytest.approx(build["seconds"], abs=0.05)
    speed = build["sequences_per_second"]["median"]
    assert speed * build["seconds"] == pytest.approx(build["sequences"])
    ceiling = result["ceiling"]["sequences_per_second"]["median"]
    assert build["sequences_to_ceiling"]["median"] == pytest.approx(speed / ceiling)
    # At one copy it makes no difference whether sequences or text are compared.
    assert build["text_to_ceiling"] == pytest.approx(build["sequences_to_ceiling"])


@pytest.mark.slow
def test_workers_are_compared_on_the_larger_corpus(result):
    (row,) = result["scaling"]
    assert (row["copies"], row["workers"], row["compared_with"]) == (1, 2, 1)
    assert row["text_mb"] >= 0.05 > result["corpus"]["text_mb"]
    gain = row["seconds_compared_with"]["median"] / row["seconds"]["median"]
    assert row["gain"]["median"] == pytest.approx(gain)
    assert row["worker_peak_mb"] > 20


@pytest.mark.slow
def test_the_report_has_every_stage_and_its_shares_add_up(result):
    lines = list(data_lines(result))
    begin = lines.index("Time of the stages, one worker") + 2
    shares = [float(line.split()[-1].rstrip("%")) for line in lines[begin : begin + 9]]
    assert sum(shares) == pytest.approx(100, abs=1)
    assert lines[begin + 9].split()[-1] == "100.0%"
    assert all(len(line) <= 120 for line in lines)


def test_files_are_repeated_until_they_are_large_enough(corpus, tmp_path):
    repeat_files([corpus], 0.05, tmp_path / "more")
    files = sorted((tmp_path / "more").iterdir())
    sizes = [path.stat().st_size for path in files]
    assert sum(sizes) >= 50_000 > sum(sizes[:-1])
    assert [path.name for path in files[:3]] == ["000000-a.txt", "000001-b.txt", "000002-a.txt"]
    assert files[2].read_bytes() == (corpus / "a.txt").read_bytes()


def test_a_corpus_that_is_not_there_is_refused(tmp_path, tiny_vocabulary):
    with pytest.raises(InputError, match="does not exist"):
        benchmark_data([tmp_path / "nothing"], tiny_vocabulary.path)
