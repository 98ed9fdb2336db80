"""Compares the state of each token before and after every layer, also beyond the trained depth.

    python docs/studies/layers.py albert-mini-en --texts sentences.txt --depth 24

For each number of layers applied it prints the means over all tokens of the L2 distance, the cosine
and the angle to the state before, and how well masked tokens are predicted from this state. Depth 0
is the projected embedding. Layers that share all weights may be applied more often than in
training (ALBERT, figure 1 and section 3.1, https://arxiv.org/abs/1909.11942).
"""

import argparse
import csv
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.special import logsumexp

from albert_keras import AlbertForPretraining, load_tokenizer

MASKED_SHARE = 0.15
HEADER = ("model", "depth", "distance", "cosine", "degrees", "masked LM loss", "masked LM accuracy")


def deeper(model: AlbertForPretraining, depth: int) -> AlbertForPretraining:
    """Returns a model of the same weights whose layers are applied `depth` times."""
    config = model.config
    if depth <= config.num_hidden_layers:
        return model
    if config.sharing != "all" or config.num_hidden_groups > 1:
        raise SystemExit(
            f"error: `--depth` must be at most {config.num_hidden_layers}, unless all layers share "
            f"their weights. Received: {depth}."
        )
    changed = config.replace(num_hidden_layers=depth)
    result = AlbertForPretraining(changed, sentence_head=False, dtype="float32")
    for target, source in zip(result.weights, model.weights, strict=True):
        target.assign(source)
    return result


def masked_rows(texts: list[str], tokenizer, longest: int) -> Iterator[tuple]:
    """Yields ids [1, S] with masks, positions [1, P] of these, and true ids [P] of each text."""
    random = np.random.default_rng(0)
    for text in texts:
        ids = tokenizer.encode(text)[: longest - 2]
        row = np.array([[tokenizer.cls_id, *ids, tokenizer.sep_id]], np.int32)
        number = max(1, round(MASKED_SHARE * len(ids)))
        positions = 1 + random.permutation(len(ids))[:number]
        labels = row[0, positions].copy()
        row[0, positions] = tokenizer.mask_id
        yield row, positions[None].astype(np.int32), labels


def measure(model: AlbertForPretraining, rows: Iterator[tuple], depth: int) -> np.ndarray:
    """Returns the means by depth, [1 + depth, 5], in the order of `HEADER`."""
    sums, tokens, masks = np.zeros([1 + depth, 5]), 0, 0
    for ids, positions, labels in rows:
        outputs = model.encoder({"input_ids": ids}, return_all_layers=True)
        states = [outputs["embedding_output"], *outputs["layer_outputs"]][: 1 + depth]
        for number, state in enumerate(states):
            logits = model.masked_lm_head(state, positions).numpy()[0].astype(np.float64)
            losses = logsumexp(logits, axis=-1) - logits[np.arange(len(labels)), labels]
            sums[number, 3:] += losses.sum(), (logits.argmax(axis=-1) == labels).sum()
            if number > 0:
                before, after = states[number - 1].numpy()[0], state.numpy()[0]
                norms = np.linalg.norm(before, axis=-1) * np.linalg.norm(after, axis=-1)
                cosines = np.clip((before * after).sum(axis=-1) / norms, -1, 1)
                sums[number, 0] += np.linalg.norm(after - before, axis=-1).sum()
                sums[number, 1] += cosines.sum()
                sums[number, 2] += np.degrees(np.arccos(cosines)).sum()
        tokens, masks = tokens + ids.size, masks + len(labels)
    return sums / [tokens, tokens, tokens, masks, masks]


def main(words: list[str] | None = None) -> None:
    """Prints a table in CSV for each model."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("models", nargs="+", help="runs, exports, names of shipped models, ...")
    parser.add_argument("--texts", type=Path, required=True, help="file with a text on each line")
    parser.add_argument("--depth", type=int, help="layers to apply; default: the trained depth")
    parser.add_argument("--limit", type=int, default=256, help="texts to read")
    parser.add_argument("--random-weights", action="store_true", help="leave all weights random")
    given = parser.parse_args(words)
    lines = given.texts.read_text(encoding="utf-8").split("\n")
    texts = [line for line in lines if line.strip()][: given.limit]
    table = csv.writer(sys.stdout, lineterminator="\n")
    table.writerow(HEADER)
    for path in given.models:
        settings = {"sentence_head": False, "dtype": "float32"}
        model = AlbertForPretraining.from_preset(path, not given.random_weights, **settings)
        depth = given.depth or model.config.num_hidden_layers
        rows = masked_rows(texts, load_tokenizer(path), model.config.max_position_embeddings)
        for number, means in enumerate(measure(deeper(model, depth), rows, depth)):
            table.writerow([path, number, *(f"{value:.4g}" for value in means)])


if __name__ == "__main__":
    main()
