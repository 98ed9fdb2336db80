"""The first weights of a student, taken from its teacher."""

import math

from albert_keras.config import AlbertConfig
from albert_keras.formats.loading import LoadReport
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.runs.tensors import weight_names
from albert_keras.shape import POSITIONS
from albert_keras.sharing import layer_plan
from data_pipeline.errors import InputError

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


def check_layers(teacher: AlbertConfig, student: AlbertConfig, name: str) -> None:
    """Raises InputError if a student cannot use layers of its teacher, whose name is `name`."""
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
            f"layers:\n  {listing}\nUse another student, or `warm_start=False`."
        )


def start_warm(teacher: OpenedModel, student: AlbertForPretraining) -> LoadReport:
    """Copies weights of a teacher to a student, whose layers have the same shape.

    The layers are those of `layer_map`. If several depths of the student share a block, the block
    takes the weights for the first depth that runs it. Outside the layers, a weight is copied if
    the teacher has a weight with the same name and shape; of the position embeddings, the positions
    that both models have are copied. All other weights keep their initial values.
    """
    tensors, config = teacher.tensors, teacher.albert_config
    layers = layer_map(config.num_hidden_layers, student.config.num_hidden_layers)
    weights = weight_names(student)
    names = {id(weight): name for name, weight in weights.items()}
    origins = {name: name for name in weights if not name.startswith(_LAYERS)}
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
    loaded, new = {}, {}
    offsets = config.position_offset, student.config.position_offset
    for name, weight in weights.items():
        found = tensors.read(origins[name]) if origins[name] in tensors.shapes else None
        if found is not None and name == POSITIONS and found.shape[1] == weight.shape[1]:
            rows, ours = found[offsets[0] :], weight.numpy()
            count = min(len(rows), len(ours) - offsets[1])
            ours[offsets[1] : offsets[1] + count] = rows[:count]
            weight.assign(ours)
        elif found is not None and found.shape == tuple(weight.shape):
            weight.assign(found)
        else:
            new[name] = math.prod(weight.shape)
            continue
        loaded[name] = math.prod(weight.shape)
    source = f"the teacher {teacher} (layers: {', '.join(map(str, layers))})"
    return LoadReport(source, loaded=loaded, new=new, unused=())
