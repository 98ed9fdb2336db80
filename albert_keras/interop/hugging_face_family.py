"""Which model of transformers one of ours is, and in which class."""

from albert_keras.interop.hugging_face_tables import FAMILIES
from albert_keras.models.sharing import layer_plan
from data_pipeline.errors import InputError


def family_of(values):
    """Tells the kind of model by `model_type`, which old files lack, or by its class: Family.

    Raises:
        InputError: If it is none we know.
    """
    name = values.get("model_type")
    if name is None:
        classes = values.get("architectures")
        first = str(classes[0]) if isinstance(classes, list) and classes else ""
        name = next((name for name in FAMILIES if first.lower().startswith(name)), first)
    if name not in FAMILIES:
        known = " or ".join(FAMILIES)
        raise InputError(f"`model_type` of a config.json should be {known}. Received: {name!r}.")
    return FAMILIES[name]


def family_for(config):
    """Decides as which model of transformers one of ours is written.

    Args:
        config: AlbertConfig.

    Returns:
        (Family, int): what it becomes, and in how many groups.

    Raises:
        InputError: If the depths share something that transformers cannot say.
    """
    is_bert = config.sharing == "none" and config.inner_group_num == 1
    if is_bert and not config.projects_embeddings:
        return FAMILIES["bert"], config.num_hidden_layers
    depths, inner = config.num_hidden_layers, config.inner_group_num
    plan = layer_plan(depths, config.sharing, config.num_hidden_groups, inner)
    for groups in (config.num_hidden_groups, depths):
        if layer_plan(depths, "all", groups, inner) == plan:
            require_same_groups(config.replace(sharing="all", num_hidden_groups=groups))
            return FAMILIES["albert"], groups
    raise InputError(
        'transformers cannot express this: `sharing` should be "all" or "none". '
        f"Received: {config.sharing!r}."
    )


def class_of(family, heads, foreign):
    """Returns the class of transformers with these heads: that of the source, or the usual one.

    Raises:
        InputError: If there is none.
    """
    classes = family.classes.get(tuple(heads))
    if classes is None:
        known = "; ".join(" and ".join(heads) or "none" for heads in family.classes)
        raise InputError(
            f"transformers has no {family.name} with the heads {' and '.join(heads)}. It has: "
            f"{known}."
        )
    named = foreign.get("architectures")
    first = named[0] if isinstance(named, list) and len(named) == 1 else None
    return first if first in classes else classes[0]


def require_same_groups(config):
    """Refuses the few depths and groups for which transformers, which divides floats, differs.

    Args:
        config: AlbertConfig.

    Raises:
        InputError: If a depth would be in another group there.
    """
    depths, groups = config.num_hidden_layers, config.num_hidden_groups
    for depth in range(depths):
        if int(depth / (depths / groups)) != depth * groups // depths:
            raise InputError(
                f"{groups} groups of {depths} depths are not the same in transformers: by its "
                f"rounding depth {depth} is in group {int(depth / (depths / groups))}, not in "
                f"{depth * groups // depths}."
            )
