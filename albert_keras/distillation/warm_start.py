"""The first weights of a student, taken from its teacher."""

from albert_keras.config import AlbertConfig
from albert_keras.formats.loading import LoadReport
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.sharing import layer_plan
from albert_keras.runs.tensors import weight_names
from data_pipeline.errors import InputError

_POSITIONS = "bert/embeddings/position_embeddings"
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


def layer_misfits(teacher: AlbertConfig, student: AlbertConfig) -> list[str]:
    """Returns why layers of a teacher cannot be used in a student, list of str."""
    return [
        f"{name}: {getattr(teacher, name)!r} in the teacher, {getattr(student, name)!r} in the "
        "student"
        for name in _SHAPE
        if getattr(teacher, name) != getattr(student, name)
    ]


def checked_map(
    teacher: AlbertConfig, student: AlbertConfig, layers: tuple[int, ...] | None = None
) -> tuple[int, ...]:
    """Returns the given layers of a teacher, by default `layer_map`; InputError if invalid."""
    deep, shallow = teacher.num_hidden_layers, student.num_hidden_layers
    if layers is None:
        return layer_map(deep, shallow)
    if len(layers) != shallow or not all(0 <= layer < deep for layer in layers):
        raise InputError(
            f"`distillation.layers` must name one of the teacher's layers, 0 to {deep - 1}, for "
            f"each layer of the student, which has {shallow}. Received: {list(layers)}."
        )
    return layers


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
    embeddings, the positions that both models have are copied. All other weights keep their initial
    values.

    Args:
        tensors: Tensors of the teacher, see `OpenedModel.tensors`.
        config: AlbertConfig of the teacher.
        student: AlbertForPretraining.
        source: Name of the teacher in the report.
        layers: One of the teacher's layers for each of the student's; () copies none.
    """
    names = {id(weight): name for name, weight in weight_names(student).items()}
    origins = {name: name for name in names.values() if not name.startswith(_LAYERS)}
    plan = layer_plan(
        config.num_hidden_layers, config.sharing, config.num_hidden_groups, config.inner_group_num
    )
    blocks = student.encoder.blocks
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
    loaded, new = {}, {}
    offsets = config.position_offset, student.config.position_offset
    for name, weight in weight_names(student).items():
        origin, size = origins.get(name), weight.shape.num_elements()
        found = tensors.shapes.get(origin)
        if found is not None and name == _POSITIONS and found[1] == weight.shape[1]:
            rows, ours = tensors.read(origin)[offsets[0] :], weight.numpy()
            count = min(len(rows), len(ours) - offsets[1])
            ours[offsets[1] : offsets[1] + count] = rows[:count]
            weight.assign(ours)
        elif found == list(weight.shape):
            weight.assign(tensors.read(origin))
        else:
            new[name] = size
            continue
        loaded[name] = size
    return LoadReport(source, loaded=loaded, new=new, unused={})
