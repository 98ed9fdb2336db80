"""The contestant transformers: `AlbertForMaskedLM` through `torch.compile`, and AdamW."""

import numpy as np
import torch

from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer
from tests.benchmarks.learning.job import Job, Recorder
from tests.benchmarks.learning.peer_data import (
    HELD_OUT,
    TRAINING,
    arrays_of,
    masking_function,
    rows_of_batches,
)
from tests.benchmarks.torch_albert import (
    VERSIONS,
    autocast,
    inputs_of,
    masked_lm,
    scores_at_masked,
    to_tensors,
)

_SCORED_AT_ONCE = 64


def train(job: Job) -> dict:
    """Trains from new random weights with the usual update of the library's Trainer.

    Returns what `Recorder.end` returns.
    """
    settings, records = job.settings, RecordFiles(job.records)
    arrays = arrays_of(records, TRAINING)
    held_out = arrays_of(RecordFiles(job.eval_data), HELD_OUT)
    tokenizer = Tokenizer.load(records.folder / TOKENIZER_FOLDER)
    mask = masking_function(tokenizer, settings["mask_rate"], job.seed)
    rows = rows_of_batches(len(records), settings["batch_size"], job.seed)

    model = masked_lm(settings["config"], job.threads, job.seed)
    optimizer = torch.optim.AdamW(
        _parameter_groups(model, settings["weight_decay"]), lr=job.rate, fused=True
    )
    loss_of = torch.compile(lambda batch: model(**inputs_of(batch), labels=batch["labels"]).loss)
    positions = settings["batch_size"] * records.info.max_seq_length
    recorder = Recorder(job.seconds, lambda: score(model, held_out, job.precision), positions)
    recorder.start()
    while not recorder.is_over:
        chosen = next(rows)
        batch = {name: array[chosen] for name, array in arrays.items()}
        batch["input_ids"], batch["labels"] = mask(batch["input_ids"])
        batch = to_tensors(batch)
        for group in optimizer.param_groups:
            group["lr"] = job.rate * recorder.rate_factor()
        with autocast(job.precision):
            loss = loss_of(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings["clip_norm"])
        optimizer.step()
        optimizer.zero_grad()
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        recorder.add_updates()
    weights = sum(weight.numel() for weight in model.parameters())
    return recorder.end({"weights": weights, "versions": VERSIONS})


def _parameter_groups(model, weight_decay):
    """Excludes biases and LayerNorm from the weight decay, as the library's Trainer does."""
    kept = [value for value in model.parameters() if value.ndim > 1]
    rest = [value for value in model.parameters() if value.ndim <= 1]
    return [{"params": kept, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


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
