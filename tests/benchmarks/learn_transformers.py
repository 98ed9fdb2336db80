"""The peer of `learn`: `AlbertForMaskedLM` through `torch.compile`, and AdamW."""

import numpy as np
import torch

from albert_keras.config import AlbertConfig
from albert_keras.formats.hugging_face_config import to_values
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER
from tests.benchmarks.peer_data import (
    HELD_OUT,
    TRAINING,
    arrays_of,
    masking_function,
    rows_of_batches,
)
from tests.benchmarks.recorder import Point, Recorder
from tests.benchmarks.torch_albert import (
    autocast,
    inputs_of,
    masked_lm,
    scores_at_masked,
    to_tensors,
)

_WEIGHT_DECAY, _CLIP_NORM, _MASK_RATE = 0.01, 1.0, 0.15
_SCORED_AT_ONCE = 64
#: Our recipe has other values of these, which the ALBERT of transformers lacks.
_SHAPE = {
    "sharing": "all",
    "num_hidden_groups": 1,
    "inner_group_num": 1,
    "hidden_act": "gelu",
    "position_embedding": "absolute",
    "hidden_dropout_prob": 0.0,
    "attention_probs_dropout_prob": 0.0,
    "embedding_projection": "always",
}


def train(
    records: RecordFiles,
    held_out: RecordFiles,
    shape: AlbertConfig,
    rate: float,
    batch_size: int,
    precision: str,
    seconds: float,
    seed: int,
) -> list[Point]:
    """Trains from new random weights with the usual update of the library's Trainer.

    Args:
        shape: Width and depth; the peer shares one block and has absolute positions.
        rate: Peak of the learning rate.
        precision: "float32" or "mixed_bfloat16".
        seconds: Training time, the first update included.
    """
    arrays, scored = arrays_of(records, TRAINING), arrays_of(held_out, HELD_OUT)
    tokenizer = Tokenizer.load(records.folder / TOKENIZER_FOLDER)
    mask = masking_function(tokenizer, _MASK_RATE, seed)
    rows = rows_of_batches(len(records), batch_size, seed)
    model = masked_lm(to_values(shape.replace(**_SHAPE), ("masked_lm",)), seed)
    optimizer = torch.optim.AdamW(_parameter_groups(model), lr=rate, fused=True)
    loss_of = torch.compile(lambda batch: model(**inputs_of(batch), labels=batch["labels"]).loss)
    recorder = Recorder(seconds, lambda: score(model, scored, precision))
    recorder.start()
    while not recorder.is_over:
        chosen = next(rows)
        batch = {name: array[chosen] for name, array in arrays.items()}
        batch["input_ids"], batch["labels"] = mask(batch["input_ids"])
        batch = to_tensors(batch)
        for group in optimizer.param_groups:
            group["lr"] = rate * recorder.rate_factor()
        with autocast(precision):
            loss = loss_of(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), _CLIP_NORM)
        optimizer.step()
        optimizer.zero_grad()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        recorder.add_updates()
    return recorder.end()


def _parameter_groups(model):
    """Excludes biases and LayerNorm from the weight decay, as the library's Trainer does."""
    kept = [value for value in model.parameters() if value.ndim > 1]
    rest = [value for value in model.parameters() if value.ndim <= 1]
    return [
        {"params": kept, "weight_decay": _WEIGHT_DECAY},
        {"params": rest, "weight_decay": 0.0},
    ]


def score(model, held_out: dict[str, np.ndarray], precision: str) -> tuple[float, float]:
    """Scores the model on all held-out records: mean loss in nats, and accuracy."""
    model.eval()
    total = np.zeros(3)
    with torch.inference_mode(), autocast(precision):
        for start in range(0, len(held_out["input_ids"]), _SCORED_AT_ONCE):
            here = slice(start, start + _SCORED_AT_ONCE)
            batch = to_tensors({name: array[here] for name, array in held_out.items()})
            scores = scores_at_masked(model, batch)
            labels, weights = batch["masked_lm_ids"], batch["masked_lm_weights"]
            losses = torch.nn.functional.cross_entropy(
                scores.transpose(1, 2), labels, reduction="none"
            )
            hits = scores.argmax(-1) == labels
            total += [float((value * weights).sum()) for value in (losses, hits, 1)]
    model.train()
    return total[0] / total[2], total[1] / total[2]
