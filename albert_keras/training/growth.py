"""Growing during training: new depths and new positions start as copies of trained ones."""

import numpy as np
import tensorflow as tf

from albert_keras.models.position_extension import copied_positions
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.models.sharing import stacked_depths


def grow(model: AlbertForPretraining, optimizer, shallow: int, deep: int) -> int:
    """Copies weights and moments of the trained depths to the depths of a deeper encoder.

    The trained depths are stacked, see `stacked_depths`. Where depths share their weights, there is
    nothing to copy. Call it in the scope of the strategy.

    Args:
        model: AlbertForPretraining. Its encoder has at least `deep` depths.
        optimizer: keras Optimizer. Its moments exist.
        shallow: int. Depths that were trained, the first ones.
        deep: int. Depths to train from now on.

    Returns:
        Number of blocks that were copied to; attention and feed-forward blocks count separately.
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
    pairs = [
        pair
        for target, origin in copies.values()
        for pair in zip(target.trainable_variables, origin.trainable_variables, strict=True)
    ]
    variables = pairs + [
        [optimizer.get_slot(one, slot) for one in pair]
        for pair in pairs
        for slot in optimizer.moments_of(pair[0])
    ]
    # All are read before the first one changes: in groups a block may be both target and origin.
    values = [tf.convert_to_tensor(origin) for _, origin in variables]
    for (target, _), value in zip(variables, values, strict=True):
        target.assign(value)
    return len(copies)


def extend_positions(model: AlbertForPretraining, optimizer, seen: int, length: int) -> bool:
    """Copies the embeddings of trained positions, with their moments, to positions not seen before.

    For the copies see `copied_positions`. Call it in the scope of the strategy.

    Args:
        model: AlbertForPretraining.
        optimizer: keras Optimizer. Its moments exist.
        seen: int. Longest sequence until now, in tokens, at least 3.
        length: int. Longest sequence from now on.

    Returns:
        Whether there is something to copy: rotary positions have no table.
    """
    table = model.encoder.embeddings.position_embeddings
    if table is None:
        return False
    moments = [optimizer.get_slot(table, slot) for slot in optimizer.moments_of(table)]
    rows, offset = np.arange(table.shape[0]), model.config.position_offset
    rows[: offset + length] = copied_positions(seen, length, offset)
    for variable in (table, *moments):
        variable.assign(tf.gather(tf.convert_to_tensor(variable), rows))
    return True
