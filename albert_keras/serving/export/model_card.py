"""The model card of an exported model: `README.md` beside its versions.

The facts are collected here; the wording is in `model_card.md.jinja`. Facts come from the
`export.json` of each version, which may be damaged, come from an older release, or contain names
that anybody may have chosen. A value that is missing or of the wrong type is skipped, and text is
escaped before the template gets it. What no program knows comes from the author's `card.yaml`, see
`CardFacts`.
"""

import functools
import json
import logging
import re
import shlex
from pathlib import Path

import jinja2

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import EXPORT_RECORD, keras_file, versions
from albert_keras.hub import is_hub_name
from albert_keras.models.shape import model_line
from albert_keras.report import bytes_text, number_text
from albert_keras.runs.trained_data import RECORDS, ROWS, Overlap
from albert_keras.serving.layout import check_model_name, size_of
from albert_keras.serving.sample_texts import texts_in
from albert_keras.shipped_models import SHIPPED_MODELS
from albert_keras.tasks.kinds import KINDS, task_class
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.limits import BYTES_PER_POSITION, LONG_TEXT_FACTOR, read_json, read_yaml
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.settings import Settings, setting
from data_pipeline.tokenizers.words import SPLITS

logger = logging.getLogger(__name__)

#: Name of the file with the author's facts.
FACTS = "card.yaml"
CARD = "README.md"
#: No number that was measured or counted is as large.
_TOO_LARGE = 2.0**63
#: The first of these signatures that a model has is called in the example request.
_SHOWN_SIGNATURES = ("question_answering", "multiple_choice", "text_pair", "serving_default")
#: Characters with a meaning in Markdown, wherever they are in a line.
_SPECIAL = re.compile(r"[\\`*_\[\]~$@:!#]|(?<=www)\.")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "&#124;"}
#: The code of a language.
LANGUAGE = re.compile("^[a-z-]{2,12}$")
_PLAIN = re.compile(r"[A-Za-z0-9_.=+-]+")
#: Characters of a name that are shown, and names of a list.
_MAX_CHARACTERS, _MAX_NAMES = 64, 40


class CardFacts(Settings):
    """Facts that no program knows, contents of `card.yaml`; texts are Markdown of the author."""

    language: str | None = setting(None, "Code of the language.", pattern=LANGUAGE.pattern)
    licence: str | None = setting(None, "Licence of the weights.", pattern="^[A-Za-z0-9.+-]+$")
    description: str = setting("", "What the model is, and for whom.")
    sections: dict[str, str] = setting({}, "Title -> text, such as of data, a recipe or results.")
    limits: tuple[str, ...] = setting((), "Limits of this model, added to those of all models.")


def read_card_facts(out: Path) -> CardFacts:
    """Reads `card.yaml` in the folder of a model; without the file, no fact is known.

    Raises:
        InputError: If it is not YAML with the keys of CardFacts.
    """
    path = out / FACTS
    if not path.is_file():
        return CardFacts()
    values = read_yaml(path)
    try:
        return CardFacts(**values)
    except InputError as error:
        raise InputError(f"`{path}`: {error}") from error


def write_model_card(out: Path) -> None:
    """Writes the card of a model, `README.md`, and replaces an older one."""
    with whole_file(out / CARD) as temporary:
        temporary.write_text(model_card(out), encoding="utf-8")


def model_card(out: Path) -> str:
    """Builds the card of a model in Markdown: its newest version, and a table of all versions.

    Only the last part of each path is shown, and never the command line. The same files result in
    the same card.
    """
    name = check_model_name(out.absolute().name)
    described = [CardVersion(out / str(number)) for number in reversed(versions(out))]
    samples = texts_in(described[0].language)
    card = _template().render(
        name=name,
        is_shipped=name in SHIPPED_MODELS,
        facts=read_card_facts(out),
        v=described[0],
        versions=described,
        requests=_requests(described[0], samples),
        samples=samples,
        masked_argument=shlex.quote(samples.masked),
        bytes_per_position=BYTES_PER_POSITION,
        tagging_num_bytes=LONG_TEXT_FACTOR,
        word_splits=SPLITS,
    )
    return re.sub(r"\n{3,}", "\n\n", card).strip() + "\n"


class CardVersion:
    """A version: its files, and the values of its `export.json`.

    Values are found by their keys, the outermost first. A value that is missing or has the wrong
    type is empty. `at`, `raw_number` and `scores` return raw values, and `record` has them; all
    others are escaped Markdown;
    `file_name` is the last part of a path, since the rest says where and by whom a model was made.
    """

    def __init__(self, folder: Path):
        self.version, self.record = int(folder.name), _read_json(folder / EXPORT_RECORD)
        self.kind = self.at("kind") or self.at("run", "kind")
        #: What an Overlap counts.
        self.overlap_kind = RECORDS if self.kind == "pretraining" else ROWS
        task_kind = self.at("task", "kind") if self.kind == "finetuning" else ""
        #: The class of the task; None for a pre-trained model, or a kind that is unknown.
        self.task = task_class(task_kind) if task_kind in KINDS else None
        self.task_kind = self.task and task_kind
        self.num_labels = len(self.at("task", "labels", kind=list))
        self.num_stages = len(self.at("run", "config", "stages", kind=list))
        self.takes_pair = self.at("task", "takes_pair", kind=bool)
        signatures = self.at("signatures", kind=dict)
        self.signatures = sorted(name for name, one in signatures.items() if isinstance(one, dict))
        self.num_bytes = size_of(folder)
        self.keras_file = keras_file(folder).name
        files = [*sorted(folder.glob("lite/*.tflite")), folder.with_name(self.keras_file)]
        self.files = {file.name: file.stat().st_size for file in files if file.is_file()}
        self.has_tokenizer = (folder / TOKENIZER_FOLDER).is_dir()
        self.tokenizer = _read_json(folder / TOKENIZER_FOLDER / "tokenizer_config.json")

    @property
    def model_line(self):
        """str or None. What the model is; None if its record does not say it."""
        values = self.at("run", "albert_config", kind=dict)
        try:
            shape = AlbertConfig.from_dict(values) if values else None
        except (InputError, TypeError):
            shape = None
        return shape and model_line(shape, self.raw_number("num_parameters"))

    @property
    def language(self):
        """str. Code of the language by whose rules the records were split; "" if unknown."""
        language = self.at("run", "data", "language")
        return language if LANGUAGE.fullmatch(language) else ""

    def planned_steps(self):
        """Returns what the run was to have, after its steps: a time, or a number of steps."""
        budget = self.at("run", "config", "training", "time_budget")
        if budget:
            return f" in a time budget of {as_text(budget)}"
        return self.number("run", "config", "training", "steps", form=" of %s")

    def at(self, *keys, kind=str):
        value = self.record
        for key in keys:
            value = value.get(key) if isinstance(value, dict) else None
        return value if isinstance(value, kind) else kind()

    def file_name(self, *keys):
        path = self.at(*keys)
        return as_text(path if is_hub_name(path) else re.split(r"[/\\]", path.rstrip("/\\"))[-1])

    def raw_number(self, *keys):
        value = self.at(*keys, kind=object)
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return value if is_number and abs(value) < _TOO_LARGE else None  # NaN is not smaller

    def number(self, *keys, form="%s"):
        """Returns a number as text, inserted into `form`; "" if there is none."""
        value = self.raw_number(*keys)
        return "" if value is None else form % as_number(value)

    def names(self, *keys):
        return as_list(self.at(*keys, kind=list))

    def scores(self, *keys):
        found = {name: self.raw_number(*keys, name) for name in self.at(*keys, kind=dict)}
        return {name: value for name, value in found.items() if isinstance(value, float)}

    def count_baselines(self):
        """Returns the scores of the `baselines` of an Evaluation, a dict by name."""
        names = self.at("scores", "baselines", kind=dict)
        found = {as_text(name): self.scores("scores", "baselines", name) for name in names}
        return {name: scores for name, scores in found.items() if scores}

    def score_name(self, name):
        """Returns the name of a score, with the class that the F1 of two classes refers to."""
        labels = self.at("task", "labels", kind=list)
        if name != "f1" or self.task_kind != "classification" or len(labels) != 2:
            return as_words(name)
        return f"{as_words(name)} (of {as_text(str(labels[1]))})"

    def main_score(self):
        """Returns the score that best describes a version, with its name; "" if there is none."""
        scores = self.scores("scores")
        name = "masked_lm_accuracy" if "masked_lm_accuracy" in scores else next(iter(scores), None)
        if name is None:
            return ""
        overlap = self.overlap()
        remark = (
            f" ({overlap.sentence(self.overlap_kind)})" if overlap and overlap.normalised else ""
        )
        return f"{as_words(name)} {as_number(scores[name])}{remark}"

    def overlap(self):
        """Returns how much of what was scored was trained on, an Overlap; None if unknown."""
        splits = self.at("run", "data", "overlap", kind=dict)
        keys = ("run", "data", "overlap", next(iter(splits), ""))  # of the first split
        keys = ("scores", "overlap") if self.kind == "pretraining" else keys
        counts = [self.raw_number(*keys, name) for name in ("rows", "normalised")]
        if not all(isinstance(count, int) for count in counts):
            return None
        return Overlap(*counts, is_estimate=self.at(*keys, "is_estimate", kind=bool))

    def programs(self):
        found = self.at("run", "versions", kind=dict)
        return as_list([f"{name} {one}" for name, one in found.items() if isinstance(one, str)])

    def tensors(self, signature, which):
        """Returns the "inputs" or "outputs" of a signature, such as `text` string [B]."""
        found = self.at("signatures", signature, which, kind=dict)
        return ", ".join(
            f"{as_code(name)} {as_tensor_spec(spec)}" for name, spec in sorted(found.items())
        )


def _read_json(path):
    """Reads a JSON object; a missing or damaged file is an empty dict, with a warning."""
    if not path.is_file():
        return {}
    try:
        return read_json(path)
    except InputError as error:
        logger.warning("The model card skips a file: %s", error)
        return {}


def _requests(version, samples):
    """Returns the bodies of requests to try, quoted for a shell."""
    task = version.task
    example = samples.example(task)
    text = example.get("text", samples.masked)
    if task and task.finds_spans:
        text = f"{example['question']}\t{example['context']}"
    examples = samples._asdict() | example | {"text": text}
    inputs = {
        name: list(version.at("signatures", name, "inputs", kind=dict))
        for name in version.signatures
    }
    possible = [name for name, fields in inputs.items() if fields and set(fields) <= set(examples)]
    first = next((name for name in _SHOWN_SIGNATURES if name in possible), None)
    bodies = []
    for name in (first, "sentence_order"):
        if name in possible:
            row = {field: examples[field] for field in inputs[name]}
            body = {} if name == "serving_default" else {"signature_name": name}
            body["instances"] = [row if len(row) > 1 else row.popitem()[1]]
            bodies.append(shlex.quote(json.dumps(body, ensure_ascii=False, indent=2)))
    return bodies


@functools.cache
def _template():
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(Path(__file__).parent),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # the values are Markdown already
    )
    filters = (as_text, as_code, as_words, as_number, bytes_text)
    environment.filters |= {function.__name__: function for function in filters}
    environment.filters["as_json"] = functools.partial(json.dumps, ensure_ascii=False)
    return environment.get_template("model_card.md.jinja")


def as_text(text: str, longest: int = _MAX_CHARACTERS) -> str:
    """Escapes text so that it is shown as it is, on one line and in a cell of a table."""
    text = " ".join(text.split())
    text = "".join(sign if sign.isprintable() else "\N{REPLACEMENT CHARACTER}" for sign in text)
    text = text if len(text) <= longest else text[: longest - 1] + "…"
    text = _SPECIAL.sub(lambda found: "\\" + found[0], text)
    return "".join(_ENTITIES.get(sign, sign) for sign in text)


def as_code(text: str) -> str:
    """Writes a name as code, or escaped if it has unusual characters."""
    is_plain = len(text) <= _MAX_CHARACTERS and _PLAIN.fullmatch(text)
    return f"`{text}`" if is_plain else as_text(text)


def as_words(name: str) -> str:
    """Writes the name of a score, such as `masked_lm_loss`, as words."""
    return as_text(name.replace("_", " "))


def as_list(names: list) -> str:
    """Writes the strings of a list on one line, at most 40 of them."""
    names = [name for name in names if isinstance(name, str)]
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(as_text(name) or "(empty)" for name in names[:_MAX_NAMES]) + more


def as_number(value: int | float | None) -> str:
    """Writes a number with four significant digits, and None as an empty string."""
    return "" if value is None else number_text(value, digits=4)


def as_tensor_spec(spec: object) -> str:
    """Writes dtype and shape of a tensor, which are in `export.json` as [dtype, shape]."""
    dtype, shape = spec if isinstance(spec, list) and len(spec) == 2 else (None, None)
    if not isinstance(dtype, str) or not isinstance(shape, list):
        return ""
    sizes = ["…" if size is None else as_text(str(size)) for size in shape]
    if shape and shape[0] is None:
        sizes[0] = "B"
    return f"{as_text(dtype)} [{', '.join(sizes)}]"
