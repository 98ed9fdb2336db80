"""The first weights of a student, taken from its teacher."""

import math

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.loading import LoadReport
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.sharing import layer_plan
from albert_keras.runs.tensors import weight_names
from data_pipeline.errors import InputError

_POSITIONS = "bert/embeddings/position_embeddings"
_TABLES = (
    "bert/embeddings/word_embeddings",
    "bert/embeddings/token_type_embeddings",
    _POSITIONS,
)
_NORMALIZATION = "bert/embeddings/LayerNorm/"
_PROJECTION = "bert/encoder/embedding_hidden_mapping_in/"
_LAYERS = "bert/encoder/transformer/"
#: What a layer's weights, and what it computes with them, depend on.
_SHAPE = (
    "hidden_size",
    "intermediate_size",
    "num_attention_heads",
    "inner_group_num",
    "position_embedding",
)


def layer_map(teacher_layers: int, student_layers: int) -> tuple[int, ...]:
    """Returns the layer of the teacher that each layer of a student starts from.

    The layers have equal distances: six layers start from layers 0, 2, 4, 6, 8 and 10 of twelve
    ("one layer out of two", Sanh et al. 2019, section 2). A deeper student repeats layers.
    """
    return tuple(depth * teacher_layers // student_layers for depth in range(student_layers))


def matched_layers(teacher: AlbertConfig, student: AlbertConfig, name: str) -> tuple[int, ...]:
    """Returns the `layer_map` of two models.

    Raises InputError if layers of the teacher, whose `name` is for the message, cannot be used in
    the student.
    """
    misfits = [
        f"{field}: {getattr(teacher, field)!r} in the teacher, {getattr(student, field)!r} in the "
        "student"
        for field in _SHAPE
        if getattr(teacher, field) != getattr(student, field)
    ]
    if misfits:
        listing = "\n  ".join(misfits)
        raise InputError(
            f"A student that starts from the layers of its teacher `{name}` must have the same "
            f"layers:\n  {listing}\nUse another student, or one that does not start from its "
            "teacher: on records with `warm_start=False`, on a task with weights of its own."
        )
    return layer_map(teacher.num_hidden_layers, student.num_hidden_layers)


def start_warm(
    tensors,
    config: AlbertConfig,
    student: AlbertForPretraining,
    source: str,
    layers: tuple[int, ...],
) -> LoadReport:
    """Copies weights of a teacher to a student.

    A layer takes the weights of the layer that `layers` names. If several depths of the student
    share a block, the block takes the weights for the first depth that runs it. Outside the layers,
    a weight is copied if the teacher has a weight with the same name and shape; of the position
    embeddings, the positions that both models have are copied. If only the student has factorized
    embeddings, its narrow tables and its projection start from the best approximation of the
    teacher's tables, see `factorized`. All other weights keep their initial values.

    Args:
        tensors: Tensors of the teacher, see `OpenedModel.tensors`.
        config: AlbertConfig of the teacher.
        student: AlbertForPretraining.
        source: Name of the teacher in the report.
        layers: One of the teacher's layers for each of the student's.
    """
    names = {id(weight): name for name, weight in weight_names(student).items()}
    origins = {name: name for name in names.values() if not name.startswith(_LAYERS)}
    plan, blocks = layer_plan(config), student.encoder.blocks
    for depth, layer in enumerate(layers):
        for inner in range(config.inner_group_num):
            used = plan[layer * config.inner_group_num + inner]
            mine = blocks[depth * config.inner_group_num + inner]
            for block, use in zip(mine, used, strict=True):
                for weight in block.weights:
                    name = names[id(weight)]
                    # group_G/inner_group_K/REST
                    rest = name.removeprefix(_LAYERS).split("/", 2)[2]
                    origins.setdefault(name, f"{_LAYERS}{use.scope}/{rest}")
    factors = factorized(tensors, config, student.config)
    loaded, new = {}, {}
    offsets = config.position_offset, student.config.position_offset
    for name, weight in weight_names(student).items():
        origin, size = origins.get(name), math.prod(weight.shape)
        found = factors.get(name)
        if found is None and origin in tensors.shapes:
            found = tensors.read(origin)
        if found is not None and name == _POSITIONS and found.shape[1] == weight.shape[1]:
            rows, ours = found[offsets[0] :], weight.numpy()
            count = min(len(rows), len(ours) - offsets[1])
            ours[offsets[1] : offsets[1] + count] = rows[:count]
            weight.assign(ours)
        elif found is not None and found.shape == tuple(weight.shape):
            weight.assign(found)
        else:
            new[name] = size
            continue
        loaded[name] = size
    return LoadReport(source, loaded=loaded, new=new, unused={})


def factorized(tensors, teacher: AlbertConfig, student: AlbertConfig) -> dict[str, np.ndarray]:
    """Returns the embeddings of a student that factorizes those of its teacher.

    The teacher's table of words [V, H] is replaced by its best approximation of rank E, a table
    [V, E] and a projection [E, H] whose rows are orthogonal. The same projection narrows the other
    tables. The mean of each row counts for nothing, because a normalization removes it. The
    teacher's normalization is after its tables, the student's before the projection, so its scale
    and offset become a part of the projection.

    Args:
        tensors: Tensors of the teacher, see `OpenedModel.tensors`.
        teacher, student: AlbertConfig. If the teacher projects its embeddings, the student does
            not, or their hidden sizes differ, the result is empty.

    Returns:
        dict from the name of a weight of the student to float32 values.

    Source:
        The factorization of ALBERT, section 3.1 (https://arxiv.org/abs/1909.11942), by a truncated
        singular value decomposition.
    """
    narrows = teacher.embedding_size > student.embedding_size
    if teacher.projects_embeddings or teacher.hidden_size != student.hidden_size or not narrows:
        return {}
    tables = {name: tensors.read(name) for name in _TABLES if name in tensors.shapes}
    tables = {name: table - table.mean(1, keepdims=True) for name, table in tables.items()}
    words = tables[_TABLES[0]].astype("float64")
    _, vectors = np.linalg.eigh(words.T @ words)  # in ascending order of the eigenvalues
    basis = vectors[:, -student.embedding_size :]  # [H, E]
    scale = np.sqrt(teacher.embedding_size / student.embedding_size)
    values = {name: table @ basis for name, table in tables.items()}
    values[_PROJECTION + "kernel"] = scale * basis.T * tensors.read(_NORMALIZATION + "gamma")
    values[_PROJECTION + "bias"] = tensors.read(_NORMALIZATION + "beta")
    return {name: value.astype("float32") for name, value in values.items()}
