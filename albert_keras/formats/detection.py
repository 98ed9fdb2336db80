"""What is at a path: the table of formats, and the message where there is none of them.

No TensorFlow, so that a command reports a wrong path at once.
"""

import dataclasses
import functools
import os
import re
import shlex
from collections.abc import Collection
from pathlib import Path

from albert_keras.formats.sentence_transformers import encoder_folder
from albert_keras.hub import download, is_hub_name
from albert_keras.shipped_models import SHIPPED_MODELS, find_model
from data_pipeline.errors import InputError, Mistake
from data_pipeline.files import DIGESTS, find_damage
from data_pipeline.limits import check_regular_file, read_json, reading_json

RUN_RECORD, EXPORT_RECORD, RESULTS = "run.json", "export.json", "results.json"
#: What `convert` writes into each folder.
CONVERSION_RECORD = "conversion.json"
ALBERT_CONFIG, BERT_CONFIG = "albert_config.json", "bert_config.json"
#: Files with the weights of Hugging Face or a list of such files, in order of preference.
HUGGING_FACE_WEIGHTS = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",  # a pickle, which is refused by name
)
CONFIG = "config.json"
OURS = "albert-keras"
#: What to do about a damaged version of an export.
AFTER_DAMAGE = "Copy the version again from where it was exported, or export the model again."
#: The same for the results of a fine-tuning, whose runs are kept.
AFTER_LOSS = f"Remove {RESULTS} and repeat the command of the fine-tuning, which writes it again."
#: Kinds of places with trained weights -> how each is recognized.
KINDS = {
    "run": f"the folder of a run ({RUN_RECORD})",
    "fine-tuning": f"the folder of a fine-tuning ({RESULTS}, seed-*/{RUN_RECORD})",
    "export": f"an export or one of its versions ({EXPORT_RECORD}, saved_model.pb)",
    "keras": "a `.keras` file",
    "checkpoint": "a TensorFlow checkpoint or its folder (*.index), with albert_config.json",
    "google-bert": "a checkpoint of google-research/bert (*.index, bert_config.json)",
    "hugging-face": "a folder of Hugging Face (config.json, model.safetensors)",
    "keras-nlp": "a preset of KerasNLP or KerasHub (config.json, model.weights.h5)",
}

#: Formats, named as in `convert --to` -> their modules, with `read(path)` and
#: `write(model, folder)`. Checkpoints with the reference's names, ours and
#: Google's, are all read by `own`.
FORMATS = {
    OURS: "albert_keras.formats.own",
    "google": "albert_keras.formats.google_checkpoint",
    "google-bert": "albert_keras.formats.google_bert",
    "hugging-face": "albert_keras.formats.hugging_face",
    "keras-nlp": "albert_keras.formats.keras_nlp",
}

#: What a path may be, for messages.
ANY_MODEL = (
    f"A model is {', '.join(kind.partition(' (')[0] for kind in KINDS.values())}, a shipped "
    f"model ({', '.join(SHIPPED_MODELS)}) or one of the hub (hf://OWNER/NAME)."
)


#: What a caller takes that answers by an export, for `detect`.
WANTED_EXPORT = "It must be an exported model. Create one with `albert-keras export`."


@dataclasses.dataclass(frozen=True)
class Place:
    """What is at a path, see `detect`; functions that take the path of a model take it as well."""

    kind: str  #: One of `KINDS`.
    format: str  #: One of `FORMATS`.
    #: Folder of the run or fine-tuning, version of the export, prefix of the checkpoint, or the
    #: path of another model.
    path: Path
    name: str = ""  #: The path as it was given, or the name of the shipped model.

    def __str__(self) -> str:
        return self.name or str(self.path)

    __fspath__ = __str__

    @functools.cached_property
    def run(self) -> Path | None:
        """Folder of the run, of a fine-tuning that of its best one; None of anything else.

        InputError if a fine-tuning is not complete.
        """
        if self.kind == "fine-tuning":
            return best_run(self.path)
        return self.path if self.kind == "run" else None

    @functools.cached_property
    def run_kind(self) -> str | None:
        """ "pretraining" or "finetuning" of a run, None of anything else.

        InputError if `run.json` is damaged.
        """
        if self.kind == "run":
            with reading_json(self.path / RUN_RECORD) as record:
                return str(record["kind"])
        return "finetuning" if self.kind == "fine-tuning" else None

    @functools.cached_property
    def folders(self) -> tuple[Path, ...]:
        """Where to look for what is stored beside weights of ours or Google's: the vocabulary, the
        shape; the nearest first.
        """
        path = self.path
        if self.run is not None:
            return (self.run,)
        if self.kind == "export":
            return (path, path.parent)
        if self.kind == "keras":  # perhaps the model of an export, whose version is beside it
            version = version_of(path)
            return (version, path.parent) if (version / EXPORT_RECORD).is_file() else (path.parent,)
        folder = path if path.is_dir() else path.parent
        run = run_above(folder)
        return (folder,) if run is None else (folder, run)


def detect(
    path: str | Path | Place,
    kinds: Collection[str] = tuple(KINDS),
    wanted: str = "",
    mistake: Mistake | None = None,
) -> Place:
    """Returns what is at a path, which may be the name of a shipped model or of one of the hub.

    Args:
        path: str or Path; or a Place, which is returned if it is one of `kinds`.
        kinds: Those of `KINDS` that the caller takes.
        wanted: What the caller takes, a sentence for people; "" lists all kinds.
        mistake: Of the error, if it has a number of its own.

    Raises:
        InputError: If there is nothing, or nothing of these kinds; it says what there is, and
            what to do.

    Example:
        detect("albert-mini-en").kind  # "export"
    """
    if isinstance(path, Place):
        place = path
    else:
        folder = find_model(path)
        name = download(path).name if is_hub_name(path) else str(path)
        found = find(folder)
        if found is None:
            raise InputError(_nothing_at(folder, name, wanted), mistake or Mistake.NO_WEIGHTS)
        place = dataclasses.replace(found, name=name)
    if place.kind not in kinds:
        raise InputError(_other_kind(place, wanted), mistake or Mistake.NOT_A_RUN)
    return place


def find(path: Path) -> Place | None:
    """Returns what is at a path, or None; InputError if it has several formats."""
    if ours := find_ours(path):  # it may also have files with the names of others
        return ours
    detectors = (_detect_google, _detect_hugging_face, _detect_keras_nlp)
    places = [place for detector in detectors if (place := detector(path))]
    if len(places) > 1:
        formats = ", ".join(place.format for place in places)
        raise InputError(
            f"`{path}` must have the files of one format. It has those of {formats}: move the "
            "files of one of them into a folder of their own."
        )
    return places[0] if places else None


def convert_command(path: str | Path | Place) -> str:
    """Returns the command that converts a foreign model into our format."""
    name = str(path)
    last = Path(name.partition("@")[0] if is_hub_name(name) else os.path.abspath(name)).name
    return f"albert-keras convert {shlex.quote(name)} {shlex.quote(f'models/{last}')}"


def best_run(folder: Path) -> Path:
    """Returns the run with the highest score of a fine-tuning.

    Raises:
        InputError: If the fine-tuning is not complete, or `results.json` is damaged.
    """
    if not (folder / RESULTS).is_file():
        started = min(folder.glob(f"seed-*/{RUN_RECORD}")).parent
        raise InputError(
            f"The fine-tuning in `{folder}` is not complete: it has no {RESULTS}. Repeat its "
            f"command to resume it, or give one of its runs: {started}."
        )
    with reading_json(folder / RESULTS, AFTER_LOSS) as results:
        seeds, metric = results["seeds"], results["metric"]
        split = list(seeds[0]["scores"])[0]
        name = max(seeds, key=lambda seed: seed["scores"][split][metric])["path"]
        if Path(name).name != name or not (folder / name / RUN_RECORD).is_file():
            raise InputError(
                f"`{folder}` is damaged: its {RESULTS} names the run `{name}`, which has no "
                f"{RUN_RECORD}."
            )
    return folder / name


def versions(folder: str | Path) -> list[int]:
    """Lists the versions of an exported model, `tensorflow_model_server`'s base path, ascending."""
    folder = Path(folder)
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    numbers = [int(name) for name in names if re.fullmatch(r"[1-9]\d{0,17}", name, re.ASCII)]
    return sorted(numbers)


def version_folder(path: str | Path | Place) -> Path:
    """Returns the folder of one version: `path`, or the newest version in a model's folder.

    It may be the name of a shipped model. InputError if there is no export.
    """
    return detect(path, ("export",), WANTED_EXPORT, Mistake.NO_EXPORT).path


def keras_file(version: Path) -> Path:
    """Returns the model for Keras beside a version: `model-3.keras`."""
    return version.parent / f"model-{version.name}.keras"


def version_of(path: Path) -> Path:
    """Returns the folder of the version that a model for Keras belongs to, if it exists."""
    return path.with_name(path.stem.removeprefix("model-"))


def read_export_record(folder: Path, *others: str) -> dict:
    """Reads `export.json` of a version; {} if there is none: a SavedModel may come without it.

    InputError if it, or one of `others`, is not the file that the digests of the version describe.
    """
    path = folder / EXPORT_RECORD
    if not path.is_file():
        return {}
    if (folder / DIGESTS).is_file() and (damage := find_damage(folder, [EXPORT_RECORD, *others])):
        raise InputError(f"`{folder}` is damaged: {damage}. {AFTER_DAMAGE}")
    return read_json(path, AFTER_DAMAGE)


def read_conversion_record(path: Path) -> dict:
    """Reads `conversion.json` in a folder, or beside a file, that `convert` wrote; {} if none."""
    path = (path if path.is_dir() else path.parent) / CONVERSION_RECORD
    return read_json(path) if path.is_file() else {}


def find_prefixes(path: str | Path) -> list[str]:
    """Finds the prefixes of checkpoints, sorted; empty if there is none.

    `path` is a prefix, with or without `.index`, or a folder of checkpoints. The index of a record
    file is none.
    """
    path = Path(path)
    if path.is_dir():
        records = {file.with_suffix(".index") for file in path.glob("*.tfrecord")}
        files = (file for file in path.glob("*.index") if file not in records)
        return sorted(str(file).removesuffix(".index") for file in files)
    prefix = str(path).removesuffix(".index")
    return [prefix] if Path(f"{prefix}.index").is_file() else []


def one_prefix(path: str | Path) -> Path:
    """Returns the prefix of the only checkpoint at a path; InputError if it has several."""
    prefixes = find_prefixes(path)
    if len(prefixes) > 1:
        raise InputError(
            f"`{path}` contains several checkpoints. Choose one: {', '.join(prefixes)}.",
            Mistake.NO_WEIGHTS,
        )
    return Path(prefixes[0])


def run_above(folder: Path) -> Path | None:
    """Returns the run whose checkpoint is in a folder, RUN/checkpoints/step-00000500, or None."""
    folders = (folder, *folder.absolute().parents[:2])
    return next((one for one in folders if (one / RUN_RECORD).is_file()), None)


def find_ours(path: Path) -> Place | None:
    """Returns what is at a path if it is in our format, or None."""
    if path.suffix == ".keras" and path.is_file():
        return Place("keras", OURS, path)
    if path.is_dir():
        if (path / RUN_RECORD).is_file():
            return Place("run", OURS, path)
        if (path / RESULTS).is_file() or any(path.glob(f"seed-*/{RUN_RECORD}")):
            return Place("fine-tuning", OURS, path)
        if any((path / name).is_file() for name in (EXPORT_RECORD, "saved_model.pb")):
            return Place("export", OURS, path)
        if newest := [path / str(number) for number in versions(path)[-1:]]:
            return Place("export", OURS, newest[0])
    place = _prefix(path, OURS)
    if place is None:
        return None
    folder = place.path.parent
    is_converted = read_conversion_record(folder).get("format") == OURS
    return place if is_converted or run_above(folder) is not None else None


def _prefix(path, format, kind="checkpoint"):
    """Returns the Place of a checkpoint; if a folder has several, of the folder."""
    prefixes = find_prefixes(path)
    if not prefixes:
        return None
    return Place(kind, format, Path(prefixes[0]) if len(prefixes) == 1 else path)


def _detect_google(path):
    """Returns a checkpoint of google-research; of BERT if it has only the configuration of BERT."""
    folder = path if path.is_dir() else path.parent
    is_bert = (folder / BERT_CONFIG).is_file() and not (folder / ALBERT_CONFIG).is_file()
    return _prefix(path, "google-bert", "google-bert") if is_bert else _prefix(path, "google")


def _detect_hugging_face(path):
    folder = encoder_folder(path)
    has_weights = any((folder / name).is_file() for name in HUGGING_FACE_WEIGHTS)
    is_model = has_weights and "model_type" in _config_keys(folder)
    return Place("hugging-face", "hugging-face", path) if is_model else None


def _detect_keras_nlp(path):
    is_preset = {"class_name", "config"} <= _config_keys(path)
    return Place("keras-nlp", "keras-nlp", path) if is_preset else None


def _config_keys(folder):
    return read_json(folder / CONFIG).keys() if (folder / CONFIG).is_file() else set()


def _nothing_at(path, name, wanted):
    if path.is_dir():
        names = sorted(one.name for one in path.iterdir())
        listing = ", ".join(names[:5]) + (" and others" if len(names) > 5 else "")
        problem = f"`{name}` contains no trained model. It contains: {listing or 'nothing'}."
        if is_hub_name(name):
            problem += " Weights that are pickles (pytorch_model.bin) are not downloaded."
    elif path.exists():
        check_regular_file(path)
        problem = f"`{name}` is not a trained model (unpack an archive first)."
    else:
        problem = f"There is no trained model at `{name}`: it does not exist."
    return f"{problem} {wanted or ANY_MODEL}"


def _other_kind(place, wanted):
    """Returns the message about a model that a command does not take, with the way to it."""
    way = ""
    if place.format != OURS:
        way = f"Convert it first with `{convert_command(place)}`."
    elif place.kind in ("run", "fine-tuning", "checkpoint"):
        name = shlex.quote(str(place))
        way = f"`albert-keras export --run {name} --out saved_models/NAME` exports it."
    return " ".join(filter(None, (f"`{place}` is {KINDS[place.kind]}.", wanted, way)))
