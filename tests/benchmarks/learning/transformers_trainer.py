"""The contestant transformers: `AlbertForMaskedLM` through `torch.compile`, and AdamW."""

import contextlib
import json
from importlib.metadata import version
from pathlib import Path

import numpy as np
import torch
import transformers

from tests.benchmarks.learning.batches import (
    HELD_OUT,
    TRAINING,
    load,
    masking_function,
    rows_of_batches,
    take,
)
from tests.benchmarks.learning.job import Job, Recorder

_SCORED_AT_ONCE = 64


def train(job: Job):
    """Trains from new random weights with the usual update of the library's Trainer."""
    settings = job.settings
    torch.set_num_threads(job.threads)
    torch.manual_seed(job.seed)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = transformers.AlbertForMaskedLM(transformers.AlbertConfig.from_dict(settings["config"]))
    model.to(device).train()
    optimizer = torch.optim.AdamW(
        _parameter_groups(model, settings["weight_decay"]), lr=settings["lr"], fused=True
    )
    loss_of = torch.compile(lambda batch: model(**_inputs(batch), labels=batch["labels"]).loss)
    arrays = load(job.arrays, "training", TRAINING)
    vocabulary = json.loads((Path(job.arrays) / "vocabulary.json").read_text())
    mask = masking_function(vocabulary, settings["mask_rate"], job.seed)
    rows = rows_of_batches(len(arrays["input_ids"]), settings["batch_size"], job.seed)

    def autocast():
        is_mixed = job.precision == "mixed_bfloat16"
        return torch.autocast(device, torch.bfloat16) if is_mixed else contextlib.nullcontext()

    score = build_score(model, load(job.arrays, "held_out", HELD_OUT), device, autocast)
    positions = settings["batch_size"] * arrays["input_ids"].shape[1]
    recorder = Recorder(job, score, positions)
    recorder.start()
    while not recorder.is_over:
        batch = take(arrays, next(rows), np.int64)
        batch["input_ids"], batch["labels"] = mask(batch["input_ids"])
        batch = {name: torch.from_numpy(array).to(device) for name, array in batch.items()}
        for group in optimizer.param_groups:
            group["lr"] = settings["lr"] * recorder.rate_factor()
        with autocast():
            loss = loss_of(batch)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings["clip_norm"])
        optimizer.step()
        optimizer.zero_grad()
        if device == "cuda":
            torch.cuda.synchronize()
        recorder.add_updates()
    recorder.end(
        {
            "weights": sum(weight.numel() for weight in model.parameters()),
            "versions": {name: version(name) for name in ("torch", "transformers")},
        }
    )


def _parameter_groups(model, weight_decay):
    """Excludes biases and LayerNorm from the weight decay, as the library's Trainer does."""
    kept = [value for value in model.parameters() if value.ndim > 1]
    rest = [value for value in model.parameters() if value.ndim <= 1]
    return [{"params": kept, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}]


def _inputs(batch):
    return {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["input_mask"],
        "token_type_ids": batch["segment_ids"],
    }


def build_score(model, held_out: dict[str, np.ndarray], device: str, autocast):
    """Returns a function that scores the model: mean loss in nats, and accuracy."""

    def score():
        model.eval()
        total = np.zeros(3)
        with torch.inference_mode(), autocast():
            for start in range(0, len(held_out["input_ids"]), _SCORED_AT_ONCE):
                batch = take(held_out, slice(start, start + _SCORED_AT_ONCE), np.int64)
                batch = {name: torch.from_numpy(array).to(device) for name, array in batch.items()}
                states = model.albert(**_inputs(batch)).last_hidden_state  # [B, S, H]
                where = batch["masked_lm_positions"][:, :, None].expand(-1, -1, states.shape[-1])
                scores = model.predictions(states.gather(1, where)).float()  # [B, P, V]
                labels, weights = batch["masked_lm_ids"], batch["masked_lm_weights"]
                losses = torch.nn.functional.cross_entropy(
                    scores.transpose(1, 2), labels, reduction="none"
                )
                hits = scores.argmax(-1) == labels
                total += [float((value * weights).sum()) for value in (losses, hits, 1)]
        model.train()
        return total[0] / total[2], total[1] / total[2]

    return score
