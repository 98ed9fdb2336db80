"""An export of the size people use: how long it takes, and how large it is."""

import time

import pytest

from albert_keras.serving.publish import export
from albert_keras.training.config import PretrainingConfig
from albert_keras.training.pretrain import pretrain
from data_pipeline.building.build import build_records
from data_pipeline.config import PretrainingDataConfig
from data_pipeline.tokenizers.tokenization import Tokenizer

pytestmark = pytest.mark.slow

MOST_SECONDS, LARGEST_RATIO, MORE_BYTES = 60, 1.05, 5e6


@pytest.fixture(scope="module")
def base_run(shared_data, tiny_corpus, tmp_path_factory):
    """Returns the folder of a run of albert-base with 30,000 pieces, trained for one step."""
    folder = tmp_path_factory.mktemp("base")
    tokenizer = Tokenizer.load(shared_data / "vocab" / "30k-clean.rebuilt.model")
    (folder / "corpus.txt").write_text("\n\n".join(tiny_corpus))
    data = PretrainingDataConfig(max_seq_length=512)
    build_records([folder / "corpus.txt"], tokenizer, folder / "records", data)
    config = PretrainingConfig(
        model={"size": "albert-base"},
        training={"steps": 1, "batch_size": 1, "precision": "float32", "peak_tflops": 1.0},
    )
    return pretrain(folder / "records", folder / "run", config).path


def test_a_base_sized_model_is_exported_in_time_and_small(base_run, tmp_path):
    begin = time.monotonic()
    result = export(base_run, tmp_path / "base")
    seconds = time.monotonic() - begin
    weights = result.keras_file.stat().st_size
    ratio = result.num_bytes / weights
    print(
        f"\nalbert-base: {result.num_bytes / 1e6:.1f} MB in {seconds:.0f} s, weights "
        f"{weights / 1e6:.1f} MB, {ratio:.3f} times; differs from Python by "
        f"{result.largest_difference:.1e} at most"
    )
    assert seconds <= MOST_SECONDS
    assert result.num_bytes <= LARGEST_RATIO * weights + MORE_BYTES
