"""Builds the options of a command from the fields of a configuration."""

import inspect
from pathlib import Path
from types import NoneType
from typing import Annotated, Literal, get_args, get_origin

import typer
from pydantic_core import PydanticUndefined

from albert_keras.cli.options import is_given
from data_pipeline.settings import options_of


def parameters_of(config):
    """Returns the options of a configuration as typer expects them in a signature.

    Name, help, type, choices and default come from the field, see `data_pipeline.settings.option`.
    The configuration checks the values, so that all its problems are reported together.

    Args:
        config: type. Subclass of Settings.

    Returns:
        list of inspect.Parameter, named by the keywords of `options_of`.
    """
    return [_parameter(keyword, option) for keyword, option in options_of(config).items()]


def given_values(config, context, arguments):
    """Moves the options of a configuration out of the arguments of a command.

    Args:
        config: type. Subclass of Settings.
        context: typer.Context. Distinguishes given values from defaults.
        arguments: dict. Arguments of the command; changed in place.

    Returns:
        dict of keyword -> value, only those given on the command line.
    """
    values = {keyword: arguments.pop(keyword) for keyword in options_of(config)}
    return {
        keyword: str(value) if isinstance(value, Path) else value
        for keyword, value in values.items()
        if is_given(context, keyword)
    }


def default_of(option):
    """Returns the default of an option; None if it has none."""
    default = option.field.default
    if option.key is not None:
        default = default[option.key]
    return None if default is PydanticUndefined else default


def _parameter(keyword, option):
    flag = option.flag or f"--{keyword.replace('_', '-')}"
    value_type, choices = _type_of(option)
    if value_type is bool:
        flag += f"/--no-{flag.removeprefix('--')}"
    return inspect.Parameter(
        keyword,
        inspect.Parameter.KEYWORD_ONLY,
        default=default_of(option),
        annotation=Annotated[
            value_type | None,
            typer.Option(
                flag,
                help=option.field.description,
                metavar=option.metavar or choices,
                show_default=option.default_text or True,
            ),
        ],
    )


def _type_of(option):
    """Returns the type to parse a value as, and its choices as a metavar or None."""
    if option.is_path:
        return Path, None
    annotation = option.field.annotation
    kinds = (annotation,) if get_origin(annotation) is Literal else get_args(annotation)
    kinds = [kind for kind in kinds or (annotation,) if kind is not NoneType]
    if any(get_origin(kind) is tuple for kind in kinds):  # may be repeated
        return list[str], None
    if len(kinds) > 1:
        return str, None
    if get_origin(kinds[0]) is Literal:
        return str, f"[{'|'.join(get_args(kinds[0]))}]"
    return (kinds[0] if kinds[0] in (bool, int, float) else str), None
