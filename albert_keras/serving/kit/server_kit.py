"""Writes the files that it takes to run `tensorflow_model_server` on an export."""

import math
import os
from importlib.resources import files
from pathlib import Path
from string import Template

from albert_keras.formats.detection import versions
from albert_keras.serving.layout import check_model_name, size_of, split_version
from data_pipeline.errors import InputError
from data_pipeline.files import check_output_folder, whole_folder

#: Pinned image of the container.
SERVER_IMAGE = "tensorflow/serving:2.15.1"
#: Maximum number of rows of one call of the graph, and of one request; at least 8, as warm-up
#: requests have: a server rejects a version whose requests fail.
MAX_BATCH_SIZE = 32


class _KitTemplate(Template):
    delimiter = "%"  # `$` has a meaning in shell and in files for Docker Compose


def write_kit(folder: str | Path, base_path: str | Path) -> str:
    """Writes a folder with `compose.yaml`, which starts the server, and the settings of the server.

    The server has all cores of this computer, and memory for two versions. The files name the
    export by its path relative to `folder`, in `.env` only.

    Args:
        folder: The new folder; it must not exist, or be empty.
        base_path: Folder of the export, with a folder for each version, whose newest version is
            served; or one of these folders, and then only that version is served; or the name of a
            shipped model.

    Returns:
        The name of the model on the server, the one of its folder.

    Raises:
        InputError: If the name is invalid, if there is no export at `base_path`, or if `folder` is
            not empty.
    """
    folder, (base_path, only) = Path(folder), split_version(base_path)
    # Text protos and Docker quote these characters differently.
    if not str(base_path).isprintable() or set(str(base_path)) & set("\"',\\`%:"):
        raise InputError(
            "The path of an export to serve must not contain quotes, commas, colons, backslashes, "
            f"percent signs or control characters. Received: {str(base_path)!r}. Move the export."
        )
    name = check_model_name(base_path.name)
    policy = "latest { num_versions: 1 }"
    if only is not None:
        policy = f"specific {{ versions: {only} }}"
    size = size_of(base_path / str(only or versions(base_path)[-1]))
    check_output_folder(folder, "folder")
    powers = [2**power for power in range(MAX_BATCH_SIZE.bit_length())]
    values = {
        "model": name,
        "model_folder": os.path.relpath(os.path.realpath(base_path), os.path.realpath(folder)),
        "policy": policy,
        "allowed_batch_sizes": "\n".join(f"allowed_batch_sizes: {size}" for size in powers),
        # A thread waits for its batch: with fewer threads than rows no batch would become full.
        "threads": 2 * MAX_BATCH_SIZE,
        "server_image": SERVER_IMAGE,
        "cores": os.cpu_count(),
        "max_batch_size": MAX_BATCH_SIZE,
        "memory_gib": math.ceil(2 * (size / 2**30 + 1)),
    }
    with whole_folder(folder) as staging:
        for template in files("albert_keras.serving.kit").joinpath("templates").iterdir():
            # A package has no hidden files.
            file = ".env" if template.name == "dotenv" else template.name
            text = _KitTemplate(template.read_text(encoding="utf-8")).substitute(values)
            (staging / file).write_text(text.rstrip() + "\n", encoding="utf-8")
    return name
