"""Reads `--config FILE or recipe` and `--set key=value` into nested values, and finds files.

Files are looked for before TensorFlow is imported, so that a wrong path is reported at once; they
are checked where they are read.
"""

from pathlib import Path

from albert_keras import recipes
from albert_keras.tasks.task_config import TaskConfig
from albert_keras.training.loop_config import merged
from data_pipeline.errors import InputError, Mistake


def read_values(config_file=None, assignments=(), kind="pretraining"):
    """Reads settings from a file and from single assignments, which take precedence.

    Args:
        config_file: str, Path or None. YAML or JSON file; or the name of a recipe, if the file does
            not exist.
        assignments: list of str, each "section.key=value" with a YAML value, or None.
        kind: str or None. Kind of the recipes, see `recipes.names`; None if there are none.

    Returns:
        dict, nested.

    Raises:
        InputError: If there is neither such a file nor such a recipe, the file does not contain a
            mapping, or an assignment has no `=`.
    """
    from data_pipeline.limits import parse_yaml, read_yaml

    values = {}
    if config_file is not None:
        path = Path(config_file)
        if not path.is_file():
            if kind is None:
                message = f"The configuration file `{path}` does not exist."
                raise InputError(message, Mistake.NO_CONFIG_FILE)
            path = recipes.path(str(path), kind)
        values = read_yaml(path)
    given = {}
    for assignment in assignments or ():
        key, equals, text = assignment.partition("=")
        if not equals:
            raise InputError(f"`--set` must be KEY=VALUE. Received: {assignment!r}.")
        given[tuple(key.strip().split("."))] = parse_yaml(text, f"`--set {assignment}`")
    return merged(values, given)


def check_records(*folders: Path | None):
    """Raises InputError unless all of the folders, except None, are folders of records."""
    from data_pipeline.records.record_files import RecordFiles

    for folder in folders:
        if folder is not None:
            RecordFiles(folder)


def check_task_files(task: TaskConfig):
    """Raises InputError if a file or folder of a task does not exist."""
    check_files(task.train, task.dev)
    if task.data_dir is not None and not Path(task.data_dir).is_dir():
        raise InputError(
            f"`{task.data_dir}` does not exist or is not a folder. `data_dir` must be the folder "
            f"with the official files of {task.name}."
        )


def check_files(*paths: str | Path | None):
    """Raises InputError if one of the paths, except None, does not exist or cannot be read."""
    from data_pipeline.text import storage

    for path in paths:
        if path is not None and not storage.is_folder(path):
            storage.open_to_read(path).close()
