"""A source and what was made of it, run on the same inputs.

One of the two is run by the framework it belongs to, if that is installed and its files are read
without running anything of them; else by the oracle in NumPy. The other is our Keras model.
"""

import functools
from typing import NamedTuple

import numpy as np

from albert_keras.conversion import numpy_albert
from albert_keras.conversion.frameworks import framework_outputs
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.tensors import weight_names
from data_pipeline.errors import InputError

#: Largest difference that passes for rounding in float32: of numbers up to 1, and of larger ones in
#: proportion to the largest of the output. Small models stay below a hundredth of it; the tanh form
#: of GELU in the place of the other, which differs by up to 4.7e-4 in each unit, is above it.
BOUND = 1e-4
_LENGTHS, _LONGEST = (1, 7), 64
#: Output -> the head it comes from; None is the encoder.
_OUTPUTS = {
    "sequence_output": None,
    "pooled_output": None,
    "masked_lm_logits": "masked_lm",
    "sentence_order_logits": "sentence_order",
}


class Verification(NamedTuple):
    """What a verification found.

    Attributes:
        source, target: str. What ran each of the two.
        differences: dict of output -> float. The largest of each.
        equal_tensors: int. Tensors that are bit-equal in the target.
    """

    source: str
    target: str
    differences: dict[str, float]
    equal_tensors: int


def verify(source, target, source_format, target_format, paths) -> Verification:
    """Compares a source with the target that was made of it.

    Args:
        source, target: ModelWeights. Both as read from disk.
        source_format, target_format: str.
        paths: tuple of two Path. Of both.

    Raises:
        InputError: If a tensor of the target has other numbers, or an output of source and target
            differs by more than `BOUND`.
    """
    _check_tensors(source, target)
    inputs = random_inputs(source.config)
    # Ours is run where it is what was converted, else where it can be what came out.
    ours_first = source_format == "albert-keras" != target_format
    ours, theirs = (source, target) if ours_first else (target, source)
    number = 1 if ours_first else 0
    their_format = (source_format, target_format)[number]
    ran = framework_outputs(their_format, paths[number], theirs, inputs)
    name, outputs = ran or ("oracle in NumPy", oracle_outputs(theirs, inputs))
    our_name, our_results = "albert-keras", our_outputs(ours, inputs)
    differences = compare(our_results, outputs)
    names = (our_name, name) if ours_first else (name, our_name)
    return Verification(*names, differences, len(target.tensors))


def random_inputs(config, seed=0):
    """Draws inputs: of several lengths, the first row full, one padded left, one padded right.

    Args:
        config: AlbertConfig.
        seed: int.

    Returns:
        list of dict. "input_ids", "input_mask" and "segment_ids", int32 [3, S].
    """
    draw = np.random.default_rng(seed)
    longest = min(_LONGEST, config.max_position_embeddings)
    batches = []
    for length in sorted({min(length, longest) for length in (*_LENGTHS, longest)}):
        mask = np.ones((3, length), np.int32)
        mask[1, : length // 3] = 0
        mask[2, length - length // 3 :] = 0
        batches.append(
            {
                "input_ids": draw.integers(0, config.vocab_size, (3, length), np.int32),
                "input_mask": mask,
                "segment_ids": draw.integers(0, config.type_vocab_size, (3, length), np.int32),
            }
        )
    return batches


def oracle_outputs(weights, inputs):
    """Runs the oracle on ModelWeights: list of dict of output -> array, one per batch."""
    sizes, tensors, results = dict(weights.config), weights.tensors, []
    for batch in inputs:
        sequence, pooled, _ = numpy_albert.encode(tensors, sizes, **batch)
        outputs = {"sequence_output": sequence, "pooled_output": pooled}
        if "masked_lm" in weights.heads:
            logits = numpy_albert.masked_lm_logits(tensors, sizes, sequence)
            outputs["masked_lm_logits"] = logits
        if "sentence_order" in weights.heads:
            logits = numpy_albert.sentence_order_logits(tensors, pooled)
            outputs["sentence_order_logits"] = logits
        results.append(outputs)
    return results


def our_outputs(weights, inputs):
    """Runs our Keras model with ModelWeights: list of dict of output -> array, one per batch."""
    config = weights.config.replace(initializer_range=0.0)  # nothing drawn to be replaced at once
    has_order = "sentence_order" in weights.heads
    model = AlbertForPretraining(config, sentence_head=has_order, dtype="float32")
    for name, variable in weight_names(model).items():
        if name in weights.tensors:
            variable.assign(weights.tensors[name])
    wanted = [name for name, head in _OUTPUTS.items() if head is None or head in weights.heads]
    results = []
    for batch in inputs:
        rows, length = batch["input_ids"].shape
        positions = np.tile(np.arange(length, dtype=np.int32), (rows, 1))
        outputs = model(batch | {"masked_lm_positions": positions}, training=False)
        results.append({name: outputs[name].numpy() for name in wanted})
    return results


def compare(first, second):
    """Returns the largest difference of each output that both have.

    Args:
        first, second: list of dict of output -> array.

    Returns:
        dict of output -> float.

    Raises:
        InputError: If one is above `BOUND`, in proportion to the largest number, or not finite.
    """
    differences, problems = {}, []
    common = functools.reduce(set.intersection, (set(outputs) for outputs in (*first, *second)))
    for name in (name for name in _OUTPUTS if name in common):
        pairs = [(one[name], other[name]) for one, other in zip(first, second, strict=True)]
        difference = max(float(np.abs(one - other).max()) for one, other in pairs)
        largest = max(1.0, *(float(np.abs(other).max()) for _, other in pairs))
        if not difference <= BOUND * largest:
            problems.append(f"{name} by {difference:.2g}, where numbers go up to {largest:.2g}")
        differences[name] = difference
    if problems:
        raise InputError(
            f"The converted model should answer as its source, to {BOUND:g}. It differs in "
            f"{'; '.join(problems)}. Nothing was written."
        )
    return differences


def _check_tensors(source, target):
    different = [
        name
        for name, array in target.tensors.items()
        if name not in source.tensors or not _is_equal(array, source.tensors[name])
    ]
    if different:
        raise InputError(
            "The target should hold the numbers of its source. Other ones are in: "
            f"{', '.join(different)}. Nothing was written."
        )


def _is_equal(array, other):
    return array.shape == other.shape and array.tobytes() == other.tobytes()
