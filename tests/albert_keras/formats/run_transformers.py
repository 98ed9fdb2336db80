"""A program for a Python that has transformers and PyTorch: asks models in folders.

    python run_transformers.py jobs.json

A job is an object: "folder", of transformers; "inputs", an `.npz` with input_ids, attention_mask
and token_type_ids, which DistilBERT does not take; "outputs", the `.npz` to write. It fails if
transformers misses a tensor or finds one it does not use.
"""

import inspect
import json
import sys

import numpy as np
import torch
import transformers


def ask(folder, inputs):
    with open(f"{folder}/config.json") as file:
        (kind,) = json.load(file)["architectures"]
    model, info = getattr(transformers, kind).from_pretrained(folder, output_loading_info=True)
    problems = {name: sorted(map(str, found)) for name, found in info.items() if found}
    if problems:
        raise SystemExit(f"{folder} does not load as it is: {problems}")
    model.eval()
    known = inspect.signature(model.forward).parameters
    with torch.inference_mode():
        answer = model(
            **{name: torch.from_numpy(values) for name, values in inputs.items() if name in known},
            output_hidden_states=True,
        )
    named = {name: value.numpy() for name, value in answer.items() if torch.is_tensor(value)}
    return named | {"sequence_output": answer.hidden_states[-1].numpy()}


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        jobs = json.load(file)
    for job in jobs:
        np.savez(job["outputs"], **ask(job["folder"], dict(np.load(job["inputs"]))))
