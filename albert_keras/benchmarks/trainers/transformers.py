"""Hugging Face's ALBERT on PyTorch, eager or compiled."""

import contextlib
from importlib.metadata import version

from albert_keras.benchmarks.contest import Prepared
from albert_keras.benchmarks.measure import num_cores
from albert_keras.benchmarks.trainers.batch import made_up_batch
from albert_keras.benchmarks.trainers.losses import LossLog
from data_pipeline.errors import InputError

_LEARNING_RATE = 1e-4
_IGNORED = -100


def prepare(shape, precision, compiled, at_masked_positions):
    """Builds `AlbertForMaskedLM` and torch.optim.AdamW, on a GPU if PyTorch sees one.

    Args:
        shape: Shape.
        precision: str. "float32", or "mixed_bfloat16" for PyTorch's autocast.
        compiled: bool. Whether forward and backward pass go through `torch.compile`.
        at_masked_positions: bool. Whether the head sees the masked positions alone. As the library
            has it, it scores the vocabulary at all of them, and labels of -100 say which count.

    Returns:
        Prepared. A run is one update.

    Raises:
        InputError: If the library cannot express the shape.
    """
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.set_num_threads(num_cores())
    torch.manual_seed(0)
    model = build_model(shape).to(device)
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=_LEARNING_RATE)
    batch = {
        name: torch.tensor(values, dtype=torch.int64, device=device)
        for name, values in made_up_batch(shape).items()
    }
    inputs = {
        "input_ids": batch["input_ids"],
        "attention_mask": batch["input_mask"],
        "token_type_ids": batch["segment_ids"],
    }
    positions, targets = batch["masked_lm_positions"], batch["masked_lm_ids"]
    labels = torch.full_like(inputs["input_ids"], _IGNORED).scatter(1, positions, targets)

    def loss_at_all():
        return model(**inputs, labels=labels).loss

    def loss_at_masked():
        states = model.albert(**inputs).last_hidden_state  # [B, S, H]
        where = positions[:, :, None].expand(-1, -1, states.shape[-1])
        scores = model.predictions(states.gather(1, where))  # [B, P, V]
        return torch.nn.functional.cross_entropy(scores.flatten(0, 1).float(), targets.flatten())

    loss_of = loss_at_masked if at_masked_positions else loss_at_all
    if compiled:
        loss_of = torch.compile(loss_of)
    is_mixed = precision == "mixed_bfloat16"
    facts = {
        "weights": sum(weight.numel() for weight in model.parameters()),
        "optimizer": "AdamW",
        "device": device,
        "threads": torch.get_num_threads(),
        "versions": {name: version(name) for name in ("torch", "transformers")},
    }
    log = LossLog(facts)

    def run():
        optimizer.zero_grad()
        with torch.autocast(device, torch.bfloat16) if is_mixed else contextlib.nullcontext():
            loss = loss_of()
        loss.backward()
        optimizer.step()
        log.add(loss.item())

    return Prepared(run, facts)


def build_model(shape):
    """Returns an `AlbertForMaskedLM` with the sizes of a Shape, its weights random.

    Raises:
        InputError: If the library cannot express the shape.
    """
    from transformers import AlbertConfig, AlbertForMaskedLM

    config = shape.config
    if config.sharing not in ("all", "none") or config.embedding_size == config.hidden_size:
        raise InputError(
            "transformers' ALBERT always projects embeddings and shares whole blocks. Received: "
            f"`{shape.model}`, which does not."
        )
    return AlbertForMaskedLM(
        AlbertConfig(
            vocab_size=config.vocab_size,
            embedding_size=config.embedding_size,
            hidden_size=config.hidden_size,
            num_hidden_layers=config.num_hidden_layers,
            num_hidden_groups=(
                config.num_hidden_layers if config.sharing == "none" else config.num_hidden_groups
            ),
            num_attention_heads=config.num_attention_heads,
            intermediate_size=config.intermediate_size,
            inner_group_num=config.inner_group_num,
            hidden_act={"gelu": "gelu_new", "gelu_erf": "gelu"}.get(
                config.hidden_act, config.hidden_act
            ),
            hidden_dropout_prob=config.hidden_dropout_prob,
            attention_probs_dropout_prob=config.attention_probs_dropout_prob,
            max_position_embeddings=config.max_position_embeddings,
        )
    )
