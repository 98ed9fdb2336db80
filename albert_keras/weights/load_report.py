"""Encoder weights go from a source into a model: all of them or none, and it is told which.

The reference leaves a weight random if its name is not in the checkpoint, and says nothing; many
reports of chance results come from there.
"""

from dataclasses import dataclass

import numpy as np

from albert_keras.runs.tensors import weight_names
from albert_keras.weights.source_tensors import is_encoder, is_moment, read_floats
from data_pipeline.errors import InputError

#: What people call tensors that a fine-tuned model leaves behind, by how their names begin.
_GROUPS = {
    "cls/predictions/": "masked-LM head",
    "cls/seq_relationship/": "sentence-order head",
    "cls/squad/": "span head",
    "start_logits/": "span head",
    "end_logits/": "span head",
    "answer_class/": "span head",
    "output_": "task head",
    "global_step": "training state",
    "training/": "training state",
    "": "other tensors",
}


@dataclass(frozen=True)
class LoadReport:
    """Which weights of a model came from where.

    Attributes:
        source: str or None. Where they came from; None if all of them are random.
        loaded, new: dict of str to int. Weights of the model that were loaded and those that have
            their initial values: how many numbers each has, by name.
        left: dict of str to tuple of str. Tensors of the source that were not used, by what they
            are ("masked-LM head").
    """

    source: str | None
    loaded: dict[str, int]
    new: dict[str, int]
    left: dict[str, tuple[str, ...]]

    def lines(self):
        """Says it in words (list of str)."""
        if self.source is None:
            count, numbers = len(self.new), sum(self.new.values())
            return [f"from nothing: all {count} weights are random ({numbers:,} numbers)"]
        encoder = [self.loaded[name] for name in self.loaded if is_encoder(name)]
        head = {name: size for name, size in self.loaded.items() if not is_encoder(name)}
        lines = [
            f"from {self.source}: {len(encoder)} encoder weights ({sum(encoder):,} numbers)"
            + (f" and {_listing(head)}" if head else "")
        ]
        lines += [f"new: {_listing(self.new)}"] if self.new else []
        return lines + ([f"left: {', '.join(self.left)}"] if self.left else [])


def load_encoder(tensors, model, source, with_head=False, heads=()):
    """Assigns the encoder's weights of a source to those of a model, all or none.

    Args:
        tensors: CheckpointTensors or ModelTensors.
        model: keras.Model. Its encoder's weights begin with "bert/".
        source: str. What the user calls it.
        with_head: bool. Whether the source was trained for the same task. Its head is then loaded
            too, as long as all of its weights are there in the model's shapes.
        heads: iterable of str. How the names of further parts begin that are loaded wherever the
            source has one of their tensors, such as "cls/predictions/"; all of a part or none.

    Returns:
        LoadReport.

    Raises:
        InputError: With all tensors of the encoder, and of `heads`, that are missing, are there
            besides, have another shape, no floats, or numbers that are not finite. No weight is
            changed then.
    """
    weights = weight_names(model)
    parts = _parts_in(tensors, weights, heads)
    wanted = {name: weight for name, weight in weights.items() if _is_part(name, parts)}
    rest = {name: weight for name, weight in weights.items() if name not in wanted}
    misfits = _misfits(tensors, wanted) + [
        f"{name}: nothing wanted, {tensors.shapes[name]} found"
        for name in sorted(tensors.shapes)
        if _is_part(name, parts) and name not in wanted
    ]
    if misfits:
        what, listing = "model" if parts else "encoder", "\n  ".join(misfits)
        raise InputError(
            f"The {what} of `{source}` is not the one that its albert_config describes:\n"
            f"  {listing}"
        )
    takes_head = with_head and not _misfits(tensors, rest)
    chosen = weights if takes_head else wanted
    values = {name: read_floats(tensors, name) for name in chosen}
    finite = {name: np.isfinite(value) for name, value in values.items()}
    broken = [
        f"{name}: {np.sum(~is_finite):,} of {is_finite.size:,}"
        for name, is_finite in finite.items()
        if not is_finite.all()
    ]
    if broken:
        listing = "\n  ".join(broken)
        raise InputError(f"`{source}` holds numbers that are not finite:\n  {listing}")
    for name, weight in chosen.items():
        weight.assign(values[name])
    return LoadReport(
        source,
        loaded={name: values[name].size for name in chosen},
        new={} if takes_head else _sizes(rest),
        left=_grouped(name for name in sorted(tensors.shapes) if name not in chosen),
    )


def report_random(model):
    """Reports that nothing was loaded into a model: LoadReport."""
    return LoadReport(None, loaded={}, new=_sizes(weight_names(model)), left={})


def _parts_in(tensors, weights, heads):
    """Returns those of `heads` that the model has and the source has something of: tuple."""
    names = [name for name in tensors.shapes if not is_moment(name)]
    return tuple(
        head
        for head in heads
        if any(name.startswith(head) for name in weights)
        and any(name.startswith(head) for name in names)
    )


def _is_part(name, parts):
    return is_encoder(name) or (name.startswith(parts) and not is_moment(name))


def _misfits(tensors, weights):
    """Says what keeps weights (dict of name -> variable) from being loaded: list of str."""
    misfits = []
    for name, weight in weights.items():
        if list(weight.shape) != tensors.shapes.get(name):
            found = tensors.shapes.get(name, "nothing")
            misfits.append(f"{name}: {list(weight.shape)} wanted, {found} found")
        elif not tensors.types[name].is_floating:
            misfits.append(f"{name}: floats wanted, {tensors.types[name].name} found")
    return misfits


def _sizes(weights):
    return {name: weight.shape.num_elements() for name, weight in weights.items()}


def _grouped(names):
    groups = {group: [] for group in (*_GROUPS.values(), "optimizer moments")}
    for name in names:
        matches = (group for start, group in _GROUPS.items() if name.startswith(start))
        groups["optimizer moments" if is_moment(name) else next(matches)].append(name)
    return {group: tuple(members) for group, members in groups.items() if members}


def _listing(weights):
    return f"{', '.join(weights)} ({sum(weights.values()):,} numbers)"
