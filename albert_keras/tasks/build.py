"""Builds the Task of a configuration."""

from albert_keras.tasks.kinds import CLASSIFICATION, KINDS, load_class


def build_task(config):
    """Returns the Task of a TaskConfig."""
    kinds = (kind for kind in KINDS.values() if config.name in kind.official_tasks + kind.own_tasks)
    # The class of classification finds the kind of a GLUE task itself.
    return load_class(next(kinds, CLASSIFICATION).task_class)(config)
