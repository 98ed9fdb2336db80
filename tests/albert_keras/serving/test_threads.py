"""A `Predictor` answers several threads as it answers one."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np


def test_threads_get_the_answers_of_one(pairs_predictor, tiny_corpus):
    texts = [text.split(".")[0] for text in tiny_corpus[:24]]
    batches = [texts[begin : begin + 1 + begin % 4] for begin in range(0, 20, 2)]

    def ask(batch):
        return pairs_predictor.ask("text_pair", first=batch, second=batch)["probabilities"]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(ask, batches))
    for one, batch in zip(found, batches, strict=True):
        np.testing.assert_array_equal(one, ask(batch))
