"""The recipe for a model and a device, and the commands to run it."""

import shlex

from albert_keras import recipes
from albert_keras.optimization.config import default_warmup_steps
from albert_keras.training.config import PretrainingConfig

#: Recipes for a kind of device; for other kinds the recipe of the paper.
_FOR_DEVICE = {
    ("albert-tiny", "any"): "albert-mini-cpu",
    ("albert-mini", "any"): "albert-mini-cpu",
    ("albert-base", "cpu"): "albert-base-cpu",
    ("albert-base", "gpu"): "albert-base-one-gpu",
}


def choose_recipe(size: str, kind: str) -> str:
    """Returns the recipe for a named model, or a smaller one, and a "cpu", "gpu" or "tpu"."""
    plain = size.removesuffix("-v1").removesuffix("-v2")
    for where in (kind, "any"):
        if (plain, where) in _FOR_DEVICE:
            return _FOR_DEVICE[plain, where]
    name = f"{plain}-paper"
    return name if name in recipes.names() else "bert-base-paper"


def recipe_config(name):
    """Returns the PretrainingConfig of a recipe."""
    import yaml

    return PretrainingConfig.of(yaml.safe_load(recipes.path(name).read_text(encoding="utf-8")))


def commands(request, name, batch_size, steps, fit, precision, kind) -> list[str]:
    """Returns the commands from text to a run by the recipe `name` on a `kind` of device."""
    recipe, size = recipe_config(name), request.size
    length, vocab_size = str(request.max_seq_length), str(request.vocab_size)
    build = ["data", "build", "--corpus", "CORPUS", "--tokenizer", "tokenizer/"]
    build += ["--out", "records/", "--max-seq-length", length, "--no-static-masks"]
    if name == "bert-base-paper":
        build += ["--objective", "nsp"]
    train = ["pretrain", "--config", name, "--size", size, "--data", "records/"]
    train += ["--out", f"runs/{size}", "--batch-size", str(batch_size), "--steps", str(steps)]
    train += ["--accumulate", str(fit.accumulation_steps), "--precision", precision]
    train += ["--recompute" if fit.recompute else "--no-recompute"]
    if batch_size != recipe.training.batch_size and name.endswith(("-paper", "-gpu")):
        if recipe.optimizer.name == "lamb":
            train += ["--lr", "auto"]
    if (recipe.optimizer.warmup_steps or 0) > steps // 10:
        train += ["--set", f"optimizer.warmup_steps={default_warmup_steps(steps)}"]
    if kind != "tpu" and recipe.training.steps_per_execution > 1:
        train += ["--steps-per-execution", "1"]
    vocab = ["vocab", "--corpus", "CORPUS", "--size", vocab_size, "--out", "tokenizer/"]
    return [f"albert-keras {shlex.join(words)}" for words in (vocab, build, train)]
