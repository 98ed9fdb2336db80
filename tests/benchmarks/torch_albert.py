"""ALBERT of transformers with its masked-LM head, as both trainings of this peer use it."""

import contextlib

import torch
import transformers

from data_pipeline.child_processes import num_processors


def device() -> str:
    """Returns the name of the device: a GPU if PyTorch finds one."""
    return "cuda" if torch.cuda.is_available() else "cpu"


def masked_lm(values: dict, seed: int) -> torch.nn.Module:
    """Returns an `AlbertForMaskedLM` with random weights, in training; `values` are its config."""
    torch.set_num_threads(num_processors())
    torch.manual_seed(seed)
    model = transformers.AlbertForMaskedLM(transformers.AlbertConfig.from_dict(values))
    return model.to(device()).train()


def autocast(precision: str):
    """Returns a context for a precision: "mixed_bfloat16" is PyTorch's autocast."""
    is_mixed = precision == "mixed_bfloat16"
    return torch.autocast(device(), torch.bfloat16) if is_mixed else contextlib.nullcontext()


def to_tensors(batch: dict) -> dict[str, torch.Tensor]:
    """Returns arrays on the device, integers as int64."""
    tensors = {name: torch.as_tensor(values) for name, values in batch.items()}
    return {
        name: one.to(device(), one.dtype if one.is_floating_point() else torch.int64)
        for name, one in tensors.items()
    }


def inputs_of(batch: dict) -> dict:
    """Returns the inputs of a batch with the names of the library."""
    return {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["input_mask"],
        "token_type_ids": batch["segment_ids"],
    }


def scores_at_masked(model: torch.nn.Module, batch: dict) -> torch.Tensor:
    """Returns the scores [B, P, V] at the masked positions alone, float32."""
    states = model.albert(**inputs_of(batch)).last_hidden_state  # [B, S, H]
    where = batch["masked_lm_positions"][:, :, None].expand(-1, -1, states.shape[-1])
    return model.predictions(states.gather(1, where)).float()
