"""Measures what a model knows of grammar by minimal pairs, such as BLiMP's.

    python docs/studies/blimp.py albert-mini-en blimp/*.jsonl

Each line of a file is an object with `sentence_good`, `sentence_bad` and `UID`, its paradigm. The
score of a sentence is its pseudo-log-likelihood: one token after the other is masked, and the
logarithms of the probabilities of the true ones are added (https://arxiv.org/abs/1910.14659). A
pair is right if the good sentence has the higher score, and a tie is half right. BLiMP's summary is
the mean of its paradigms (https://arxiv.org/abs/1912.00582).
"""

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from albert_keras import AlbertForPretraining, load_tokenizer

BATCH_SIZE = 128


def read_pairs(files: list[Path]) -> list[dict[str, str]]:
    """Reads the pairs of all files; raises SystemExit that names the line of a wrong one."""
    pairs = []
    for file in files:
        lines = file.read_text(encoding="utf-8").removesuffix("\n").split("\n")  # U+2028 ends none
        for number, line in enumerate(lines, 1):
            try:
                pair = json.loads(line)
                pairs.append({key: pair[key] for key in ("sentence_good", "sentence_bad", "UID")})
            except (ValueError, TypeError, KeyError) as error:
                message = f"error: `{file}` line {number} is no minimal pair: {error!r}"
                raise SystemExit(message) from None
    return pairs


def masked_rows(
    sentences: list[list[int]], tokenizer: Any
) -> list[tuple[int, int, int, list[int]]]:
    """Returns sentence, position, true id and masked ids for each token, by length."""
    rows = []
    for number, ids in enumerate(sentences):
        for position, label in enumerate(ids, 1):  # after [CLS]
            masked = [tokenizer.cls_id, *ids, tokenizer.sep_id]
            masked[position] = tokenizer.mask_id
            rows.append((number, position, label, masked))
    return sorted(rows, key=lambda row: len(row[-1]))


def score(model: AlbertForPretraining, tokenizer: Any, texts: list[str]) -> np.ndarray:
    """Returns the pseudo-log-likelihood of each text in nats, float64 [N]."""
    sentences = [list(map(int, tokenizer.encode(text))) for text in texts]
    if not all(0 < len(ids) < model.config.max_position_embeddings - 1 for ids in sentences):
        raise SystemExit("error: a sentence is empty, or longer than the model can read.")
    rows, scores = masked_rows(sentences, tokenizer), np.zeros(len(texts))

    @tf.function(reduce_retracing=True)
    def log_probabilities(inputs):
        logits = model(inputs, only_predictions=True)["masked_lm_scores"][:, 0]
        return tf.nn.log_softmax(tf.cast(logits, tf.float32) + model.masked_lm_head.output_bias)

    for begin in range(0, len(rows), BATCH_SIZE):
        numbers, positions, labels, ids = zip(*rows[begin : begin + BATCH_SIZE], strict=True)
        tokens = tf.ragged.constant(ids, dtype=tf.int32)
        inputs = {
            "input_ids": tokens.to_tensor(),
            "input_mask": tf.ones_like(tokens).to_tensor(),
            "masked_lm_positions": tf.constant(positions, tf.int32)[:, None],
        }
        found = tf.gather(log_probabilities(inputs), labels, batch_dims=1)
        np.add.at(scores, list(numbers), found.numpy())
    return scores


def main(words: list[str] | None = None) -> None:
    """Prints the accuracy of each paradigm, the lowest first, and their mean."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", help="pre-training run, export, name of a shipped model, ...")
    parser.add_argument("files", type=Path, nargs="+", help="files of JSON lines")
    given = parser.parse_args(words)
    pairs = read_pairs(given.files)
    model = AlbertForPretraining.from_preset(given.model, sentence_head=False, dtype="float32")
    texts = [pair[key] for key in ("sentence_good", "sentence_bad") for pair in pairs]
    good, bad = score(model, load_tokenizer(given.model), texts).reshape(2, -1)
    paradigms: dict[str, list[float]] = {}
    for pair, difference in zip(pairs, good - bad, strict=True):
        point = 0.5 if abs(difference) < 1e-4 else float(difference > 0)
        paradigms.setdefault(pair["UID"], []).append(point)
    means = {name: np.mean(values) for name, values in paradigms.items()}
    for name in sorted(means, key=means.get):
        print(f"{means[name]:6.1%}  {name} ({len(paradigms[name])} pairs)")
    print(
        f"{np.mean(list(means.values())):6.1%}  mean of {len(means)} paradigms, {len(pairs)} pairs"
    )


if __name__ == "__main__":
    main()
