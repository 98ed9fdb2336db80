"""Growing a model in depth during training: the new depths start as copies of the trained ones."""

import tensorflow as tf

from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.sharing import stacked_depths


def grow(model: AlbertForPretraining, optimizer, shallow: int, deep: int) -> int:
    """Copies weights and moments from the depths that were trained to those of a deeper encoder.

    The trained depths are stacked, see `stacked_depths`. Where depths share their weights, there is
    nothing to copy. Call it in the scope of the strategy.

    Args:
        model: AlbertForPretraining. Its encoder has at least `deep` depths.
        optimizer: keras Optimizer. Its moments exist.
        shallow: int. Depths that were trained, the first ones.
        deep: int. Depths to train from now on.

    Returns:
        Number of blocks, attention and feed-forward counted each on its own, that were copied to.
    """
    encoder, config = model.encoder, model.config
    groups = 1 if config.sharing == "none" else config.num_hidden_groups
    old, new = encoder.blocks_at(shallow), encoder.blocks_at(deep)
    copies = {}
    for depth, source in enumerate(stacked_depths(shallow, deep, groups)):
        for inner in range(config.inner_group_num):
            targets = new[depth * config.inner_group_num + inner]
            origins = old[source * config.inner_group_num + inner]
            for target, origin in zip(targets, origins, strict=True):
                if target is not origin:
                    copies[target.name] = target, origin
    variables = []
    for target, origin in copies.values():
        weights = zip(target.trainable_variables, origin.trainable_variables, strict=True)
        for pair in weights:
            variables.append(pair)
            for slot in optimizer.moments_of(pair[0]):
                variables.append([optimizer.get_slot(one, slot) for one in pair])
    # All are read before the first one changes: in groups a block may be both target and origin.
    values = [tf.convert_to_tensor(origin) for _, origin in variables]
    for (target, _), value in zip(variables, values, strict=True):
        target.assign(value)
    return len(copies)
