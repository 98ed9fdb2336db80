"""The model card of an exported model, `README.md` beside its versions, for whoever is given it."""

from pathlib import Path

from albert_keras.serving.export.card_record import read_versions
from albert_keras.serving.export.card_summary import limits_section, summary
from albert_keras.serving.export.card_text import (
    bullets,
    code,
    escaped,
    facts,
    megabytes,
    number,
    section,
    table,
)
from albert_keras.serving.export.card_training import (
    data_section,
    losses_section,
    main_score,
    scores_section,
    training_section,
)
from albert_keras.serving.export.card_usage import signatures_section, usage_section
from albert_keras.serving.layout import keras_file
from albert_keras.serving.names import check_model_name
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file

#: In the folder of the name.
CARD_FILE = "README.md"
_NOTE = (
    "<!-- Written anew by each `albert-keras export`: keep notes of your own in another file. -->"
)
#: What the Hugging Face Hub calls a pre-trained model.
_PRETRAINING_PIPELINE = "fill-mask"
_CHECKS = (
    "Its operations are among those of `tensorflow_model_server` 2.12 to 2.19, and it was loaded "
    "in a process that has no others.",
    "The answer to a text is the same alone and beside others.",
    "The requests a server warms up with (`assets.extra`) were answered.",
)


def write_model_card(out):
    """Writes the card of a model, `README.md`, whole; an older one is replaced.

    Args:
        out: str or Path. Folder of the name.

    Returns:
        Path. The card.

    Raises:
        InputError: As of `model_card`.
    """
    path = Path(out) / CARD_FILE
    text = None
    # Others may publish at the same time: whoever is the last to write has seen all versions.
    while (current := model_card(out)) != text:
        with whole_file(path) as temporary:
            temporary.write_text(current, encoding="utf-8")
        text = current
    return path


def model_card(out):
    """Makes the card of a model: of its newest version, with a table of all.

    What `export.json` of a version does not tell, as that of an older one, is left out; of paths
    there is the last part only, and never the command line. The same files give the same card.

    Args:
        out: str or Path. Folder of the name, such as `saved_models/books`.

    Returns:
        str. Markdown.

    Raises:
        InputError: If there is no version, or the name is none for a model.
    """
    name = check_model_name(Path(out).absolute().name)
    versions = read_versions(out)
    if not versions:
        raise InputError(f"`{out}` holds no exported model. Make one with `albert-keras export`.")
    newest = versions[0]
    parts = (
        _front_matter(newest),
        f"# {escaped(name)}",
        _NOTE,
        summary(newest),
        usage_section(name, newest),
        signatures_section(newest),
        limits_section(newest),
        scores_section(newest),
        losses_section(newest),
        data_section(newest),
        training_section(newest),
        _checks(newest),
        _files(newest),
        _fingerprint(newest),
        _versions(versions),
    )
    return "\n\n".join(part for part in parts if part) + "\n"


def _front_matter(version):
    pipeline = _PRETRAINING_PIPELINE if version.kind == "pretraining" else None
    if version.task_kind:
        pipeline = version.task_kind.hub_pipeline
    lines = ["library_name: keras", "tags:", "- albert", "- tensorflow"]
    lines += [f"pipeline_tag: {pipeline}"] if pipeline else []
    return "\n".join(("---", *lines, "---"))


def _checks(version):
    if "parity" not in version.record:  # older versions were checked less
        return ""
    lines = list(_CHECKS)
    num_texts = version.at("parity", "num_texts", kind=int)
    difference = version.at("parity", "largest_difference", kind=float)
    if num_texts is not None and difference is not None:
        lines.append(
            f"Its answers to {number(num_texts)} inputs are those of the code it was trained and "
            f"scored with; the largest difference of a number is {difference:.1g}."
        )
    return section("Checked before it was published", bullets(lines))


def _files(version):
    number_, keras_model = version.number, keras_file(version.folder)
    rows = [(f"`{number_}/`", megabytes(version.num_bytes), "SavedModel for servers, all in all")]
    for path in sorted(version.folder.glob("lite/*.tflite")):
        size = megabytes(path.stat().st_size)
        rows.append((f"{code(path.name)} in `{number_}/lite/`", size, "TensorFlow Lite, over ids"))
    if keras_model.is_file():
        size = megabytes(keras_model.stat().st_size)
        rows.append((f"`{keras_model.name}`", size, "model for Keras, float32"))
    if version.record:
        told = "record of training and export; of paths the last part only"
        rows.append((f"`{number_}/export.json`", "", told))
    trust = (
        "A SavedModel and a `.keras` file are programs: open those only that come from somebody "
        "you trust."
    )
    return section("Files", table(("File", "Size", "What it is"), rows), trust)


def _fingerprint(version):
    found = version.at("fingerprint", kind=dict)
    rows = [
        (escaped(name), code(digest)) for name, digest in found.items() if isinstance(digest, str)
    ]
    call = f'`tf.saved_model.experimental.read_fingerprint("{version.number}")`'
    how = f"Of a copy {call} should give the same."
    return section("Fingerprint", facts(rows), how) if rows else ""


def _versions(versions):
    rows = [
        (
            str(version.number),
            number(version.at("step", kind=int)),
            escaped(version.at("precision")),
            megabytes(version.num_bytes),
            main_score(version),
            " ".join(
                code(version.at("fingerprint", name)[:8])
                for name in ("saved_model_checksum", "checkpoint_hash")
            ).strip(),
        )
        for version in versions
    ]
    header = ("Version", "Step", "Weights", "Size", "Score", "Fingerprint: graph, weights")
    return section("Versions", table(header, rows))
