"""Models of this package: runs, checkpoints, exports and `.keras` files; Google's checkpoints too.

All of them have the names of google-research/albert. `write` makes a folder with a checkpoint in
`model.ckpt.*`, the shape in `albert_config.json` and the vocabulary in `tokenizer/`: a fine-tuning
can start from it.
"""

import dataclasses
import re
from pathlib import Path

from albert_keras.formats.detection import (
    ALBERT_CONFIG,
    Place,
    keras_file,
    one_prefix,
    read_conversion_record,
    read_export_record,
    run_above,
    version_of,
)
from albert_keras.formats.keras_file import KerasFile
from albert_keras.formats.loading import encoder_names
from albert_keras.formats.opened_model import EMBEDDING, OpenedModel
from albert_keras.runs.checkpoints import check_undamaged
from albert_keras.runs.tensors import CheckpointTensors, write_tensors
from data_pipeline.errors import InputError
from data_pipeline.files import DIGESTS
from data_pipeline.limits import read_json

_PREFIX = "model.ckpt"


def find_weights(place: Place, step: int | str | None = None) -> OpenedModel:
    """Finds the weights of a place in our format or Google's, with the shape that is part of them.

    Args:
        place: Place.
        step: Checkpoint of a run, or "best"; None means the newest valid one, and of a fine-tuned
            run the best one.

    Raises:
        InputError: If they are missing or damaged.
    """
    if place.run is not None:
        run = _open_run(place.run)
        step = "best" if step is None and run.kind == "finetuning" else step
        prefix = Path(run.checkpoints.prefix(run.checkpoints.choose(step)))
        found = _of_checkpoint(prefix, run)
        return dataclasses.replace(
            found, kind="run", place=run.path, run=run, record=run.model_record()
        )
    if place.kind == "export":
        return _of_export(place.path)
    if place.kind == "keras":
        return _of_keras_file(place.path, "keras", place.path, version_of(place.path))
    return _of_checkpoint(one_prefix(place.path))


def write(model: OpenedModel, folder: Path):
    """Writes a model as a folder that `albert-keras finetune --from` reads; see `formats`."""
    write_tensors(folder / _PREFIX, model.arrays)
    model.albert_config.save(folder / ALBERT_CONFIG)


def _open_run(path):
    from albert_keras.runs.run import Run  # here, as an export needs no records

    return Run.open(path)


def _of_checkpoint(prefix, run=None):
    folder, saved = prefix.parent, None
    if (folder / DIGESTS).is_file():
        named = re.match(r"step-(\d{8,})", folder.name)
        saved = int(named[1]) if named else read_json(folder / DIGESTS).get("step")
        check_undamaged(folder, saved)
    tensors = CheckpointTensors(str(prefix))
    if not encoder_names(tensors):
        some = ", ".join(sorted(tensors.shapes)[:3]) or "nothing"
        raise InputError(
            f"`{prefix}` must contain tensors `bert/...`, as the reference names them. It has: "
            f"{some}."
        )
    step = int(tensors.read("global_step")) if "global_step" in tensors.shapes else None
    known = {"kind": "checkpoint", "place": prefix, "step": step, "tensors": tensors}
    if run is None and (above := run_above(folder)):
        run = _open_run(above)
    if run is None:
        embedding = read_conversion_record(folder).get("embedding") or {}
        known |= {name: embedding[name] for name in EMBEDDING if name in embedding}
        return OpenedModel(**known)
    data = run.record["data"]
    length = data.get("max_seq_length") if saved is None else run.trained_length(folder, saved)
    return OpenedModel(
        **known,
        albert_config=run.albert_config,
        task=run.record["config"].get("task"),
        sequence_length=length,
        origin_positions=int(data.get("origin_positions") or 0),
        language=data.get("language"),
        tokenizer_digest=run.record.get("tokenizer_digest"),
    )


def _of_export(folder):
    path = keras_file(folder)
    if not path.is_file():
        raise InputError(
            f"The weights of the export `{folder}` are missing: there is no `{path.name}` beside "
            "it, as `albert-keras export` writes it."
        )
    return _of_keras_file(path, "export", folder, folder)


def _of_keras_file(path, kind, place, version):
    # {} if it is not the model of an export.
    record = read_export_record(version, f"../{path.name}")
    run, task = record.get("run") or {}, record.get("task") or {}
    data, file = run.get("data") or {}, KerasFile(path)
    return OpenedModel(
        kind=kind,
        albert_config=file.albert_config,
        step=record.get("step"),
        tensors=file,
        record=file.record,
        place=place,
        task=task.get("config"),
        # An export may serve shorter texts than it was trained on.
        sequence_length=data.get("max_seq_length"),
        origin_positions=int(data.get("origin_positions") or 0),
        language=data.get("language"),
        tokenizer_digest=run.get("tokenizer_digest"),
    )
