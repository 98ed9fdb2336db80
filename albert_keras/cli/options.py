"""Options that several commands have, those of settings, and which options a user gave."""

import types
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic_core import PydanticUndefined
from typer import Context, Option

from data_pipeline.errors import InputError
from data_pipeline.settings import Settings, options_of

Corpus = Annotated[
    list[str], Option(metavar="PATH", help="Text file, folder or 'glob'; may be repeated.")
]
CorpusFormat = Annotated[
    str,
    Option(
        "--format",
        help="Format of the corpus: auto, prose, sentences, paragraphs or documents (one per "
        "line), jsonl or wikiextractor.",
    ),
]
TokenizerPath = Annotated[
    Path,
    Option(
        help="Folder written by `vocab`, a .model file, a vocab.txt or the tokenizer.json of a "
        "RoBERTa; or a run, an export, the name of a shipped model or hf://OWNER/NAME, whose "
        "tokenizer is used."
    ),
]
ConfigFile = Annotated[
    Path | None,
    Option(metavar="FILE", help="YAML or JSON file of settings, or the name of a recipe."),
]
Assignments = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Setting by its dotted key; may be repeated."),
]
Step = Annotated[
    str | None,
    Option(
        show_default="the newest; for a fine-tuning the best",
        help="Checkpoint: a number or `best`.",
    ),
]
DataDir = Annotated[
    Path | None,
    Option(show_default="as in training", help="Folder of the official files."),
]
TextColumn = Annotated[
    str | None,
    Option(metavar="COLUMN", help="Column of the text in a table: a name, or a number from 0."),
]
# Options that are accepted, but not in the help.
Encoding = Annotated[str | None, Option(hidden=True)]
SkipBadRows = Annotated[bool | None, Option(hidden=True)]
FromStep = Annotated[str | None, Option(hidden=True)]
AlbertConfigFile = Annotated[Path | None, Option(hidden=True)]
TokenizerOfWeights = Annotated[Path | None, Option(hidden=True)]


def options_of_settings(config: type[Settings], shown: str) -> list[Parameter]:
    """Returns the options of settings as typer expects them in a signature.

    Typer checks types and choices. The settings check the values, and report all problems together.

    Args:
        config: The settings.
        shown: Keywords of the options in the help, in their order; the others are hidden.
    """
    options, found = options_of(config), []
    for keyword in dict.fromkeys([*shown.split(), *options]):
        option = options[keyword]
        field = option.field
        kind = Path if option.is_path else _type_of(field.annotation)
        default = field.default if option.key is None else field.default[option.key]
        default = None if default is PydanticUndefined else default
        flag = option.flag or f"--{keyword.replace('_', '-')}"
        if kind is bool:
            flag += f"/--no-{flag.removeprefix('--')}"
        how = Option(
            flag,
            help=field.description,
            metavar=option.metavar,
            hidden=keyword not in shown.split(),
            show_default=option.default_text or default not in (None, "", ()),
        )
        default = None if default == () else default
        annotation = Annotated[kind | None, how]
        found.append(
            Parameter(keyword, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
        )
    return found


def _type_of(annotation: Any) -> Any:
    """Returns the type that typer reads the value of a setting as; str if there are several."""
    if get_origin(annotation) is Literal:
        return annotation
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not types.NoneType]
    if any(get_origin(kind) is tuple for kind in kinds):  # may be repeated
        return list[str]
    is_one = len(kinds) == 1 and (kinds[0] in (bool, int, float) or get_origin(kinds[0]) is Literal)
    return kinds[0] if is_one else str


def is_given(context: Context, name: str) -> bool:
    """Returns whether an option, by the name of its parameter, is on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse(context: Context, names: Any, problem: str) -> None:
    """Raises InputError if one of the options, by the names of their parameters, is given."""
    for parameter in context.command.params:
        if parameter.name in names and is_given(context, parameter.name):
            is_off = context.params[parameter.name] is False
            name = (parameter.secondary_opts if is_off else parameter.opts)[0]
            raise InputError(f"`{name}` {problem}")
