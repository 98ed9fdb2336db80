"""The options of commands: types and defaults from functions and settings, help from a docstring.

The docstring of a command ends with its options, in the order of its help:

    Options:
      run PATH: Folder of a run.
      step
      layers --encode-layers NUMBERS (all): Layers whose outputs are concatenated.
      model <MODEL>: Exported model.
      port {0..65535}: Port to listen on.
      ~encoding: Encoding of the table.

An entry has the name of a parameter, and may have its option (by default the name), a placeholder,
a phrase instead of the default, and limits. `<MODEL>` makes an argument of it. Entries without a
text are of the settings, or of `SHARED`, and several may share a line. What begins with `~`, and
what is not listed of the settings, is accepted but not in the help.
"""

import ast
import functools
import inspect
import re
import textwrap
import types
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, get_args, get_origin

import typer
from pydantic_core import PydanticUndefined

from data_pipeline.errors import InputError
from data_pipeline.settings import Option, Settings, options_of

_SOURCES = Path(__file__).parents[2]

#: Options that several commands have.
SHARED = """
  corpus PATH: Text file, folder or 'glob'; may be repeated.
  corpus_format --format: Format of the corpus: auto, prose, sentences (one per line), jsonl or
    wikiextractor.
  tokenizer: Folder written by `vocab`, a .model file, a vocab.txt or the tokenizer.json of a
    RoBERTa; or a run, an export or the name of a shipped model, whose tokenizer is used.
  config FILE: YAML or JSON file of settings, or the name of a recipe.
  assignments --set KEY=VALUE: Setting by its dotted key; may be repeated.
  allow_changes --allow-change KEY: Resume even though this setting or dataset differs from the
    original run; may be repeated.
  from_step (the newest): Checkpoint to start from: a number or `best`.
  albert_config FILE: Model configuration (albert_config.json) or named model, if the weights have
    none.
  data_dir (as in training): Folder of the official files.
  step (the newest; for a fine-tuning the best): Checkpoint: a number or `best`.
  encoding NAME (as in training, or detected): Encoding of the table, such as utf-16 or
    windows-1252.
  skip_bad_rows (as in training): Skip the rows of the table that cannot be used, and list them in
    --out.
  strategy [auto|tpu|mirrored|multiworker|single]: Distribution strategy.
  text_column COLUMN: Column of the text in a table: a name, or a number from 0.
  id_column COLUMN (the number of the row): Column of the id in a table.
  mask_rest_of_word: Also mask the later tokens of the same word.
  overwrite: Replace the file of --out if it exists.
  dry_run: Try it, report memory and time, and keep nothing.
"""

_ENTRY = re.compile(
    r"(?P<is_hidden>~?)(?P<name>\w+)(?: (?P<flag>--[\w-]+))?(?: <(?P<argument>[^>]+)>)?"
    r"(?: (?P<metavar>[^\s({]+?))?(?: \{(?P<least>[\d.]*?)\.\.(?P<most>\d*)\})?"
    r"(?: \((?P<shown>.+?)\))?(?:: (?P<help>.*))?"
)

#: Placeholders of values by their types.
_PLACEHOLDERS = {Path: "PATH", str: "TEXT", int: "NUMBER", float: "NUMBER"}


class _Entry(NamedTuple):
    """An entry of a list of options."""

    name: str
    is_hidden: bool | str = False
    flag: str | None = None
    argument: str | None = None
    metavar: str | None = None
    least: str | None = None
    most: str | None = None
    shown: str | None = None
    help: str | None = None


class _Declared(NamedTuple):
    """A parameter: its type on the command line, and its default."""

    type: Any
    default: Any  # inspect.Parameter.empty if it is required


def help_and_entries(docstring: str) -> tuple[str, list[_Entry]]:
    """Splits the docstring of a command into its help, and the entries of its options."""
    text, _, listing = inspect.cleandoc(docstring).partition("\nOptions:\n")
    # typer keeps the lines of a paragraph that begins with \b.
    paragraphs = re.sub(r"\n\n(?=[^\n]*:\n  )", "\n\n\b\n", text)
    return paragraphs, _entries(listing)


def parameters_of(
    function: Any, entries: Iterable[_Entry], config: type[Settings] | None, calls: Sequence[str]
) -> list[inspect.Parameter]:
    """Returns the options of a command as typer expects them in a signature.

    Args:
        function: The command, whose own parameters come first.
        entries: What the help says about them.
        config: Settings whose options are added.
        calls: Functions as "module:name", whose parameters are options if there are entries of
            them. Their modules import TensorFlow, so their source is read instead.
    """
    settings = {} if config is None else options_of(config)
    own = {
        name: _Declared(parameter.annotation, parameter.default)
        for name, parameter in inspect.signature(function).parameters.items()
    }
    called = {name: one for call in reversed(calls) for name, one in signature_of(call).items()}
    if len(calls) > 1:  # what one of them requires, the others may not have
        called = {
            name: one._replace(default=None) if one.default is inspect.Parameter.empty else one
            for name, one in called.items()
        }
    declared = called | own
    shared = {entry.name: entry for entry in _entries(SHARED)}
    found, listed = [], []
    for entry in entries:
        listed.append(entry.name)
        if entry.help is None and entry.name in settings and entry.name not in own:
            found.append(_of_setting(entry.name, settings[entry.name], entry.is_hidden))
            continue
        if entry.help is None:
            entry = shared[entry.name]._replace(is_hidden=entry.is_hidden)
        if entry.name not in declared:
            raise TypeError(f"{function.__name__} has no parameter `{entry.name}`.")
        found.append(_parameter(entry, declared[entry.name]))
    missing = own.keys() - {*listed, "context", "flags", "call"}
    if missing:
        raise TypeError(f"{function.__name__} does not describe {missing}.")
    rest = [name for name in settings if name not in listed]
    return found + [_of_setting(name, settings[name], True) for name in rest]


@functools.cache
def _entries(listing: str) -> list[_Entry]:
    found = []
    for line in re.sub(r"\n {2,}", " ", textwrap.dedent(listing)).strip().splitlines():
        for text in [line] if ":" in line else line.split():
            match = _ENTRY.fullmatch(text)
            if match is None:
                raise ValueError(f"{text!r} is not an entry of options.")
            found.append(_Entry(**match.groupdict()))
    return found


def _parameter(entry: _Entry, declared: _Declared) -> inspect.Parameter:
    default = declared.default
    required = default is inspect.Parameter.empty
    shown = entry.shown or (default is not None and default != () and default != "")
    kinds = {declared.type, *get_args(declared.type)}
    kinds |= {part for kind in kinds for part in get_args(kind)}
    metavar = entry.metavar or next(
        (name for kind, name in _PLACEHOLDERS.items() if kind in kinds), None
    )
    least, most = (ast.literal_eval(limit or "None") for limit in (entry.least, entry.most))
    how = {"help": entry.help, "metavar": metavar, "hidden": bool(entry.is_hidden)}
    how |= {"min": least, "max": most}
    if entry.argument:
        how["metavar"] = entry.argument
        option = typer.Argument(show_default=False, **how)
    else:
        flag = entry.flag or f"--{entry.name.replace('_', '-')}"
        # A flag that is off by default needs no opposite, unless a file may turn it on.
        if bool in get_args(declared.type) or declared.type is bool and default is not False:
            flag += f"/--no-{flag.removeprefix('--')}"
        option = typer.Option(flag, show_default=shown, **how)
    default = None if default == () else default
    kind = declared.type if required or default is not None else declared.type | None
    return inspect.Parameter(
        entry.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind, option],
    )


def _of_setting(keyword: str, option: Option, is_hidden: bool) -> inspect.Parameter:
    """Returns the option of a setting, whose value is checked by the settings alone.

    So all problems of the settings are reported together.
    """
    value_type, choices = _type_of_setting(option)
    default = option.field.default if option.key is None else option.field.default[option.key]
    entry = _Entry(
        keyword,
        is_hidden,
        option.flag,
        metavar=option.metavar or choices,
        shown=option.default_text,
        help=option.field.description,
    )
    return _parameter(
        entry, _Declared(value_type | None, None if default is PydanticUndefined else default)
    )


def _type_of_setting(option):
    """Returns the type to parse a value as, and its choices as a metavar or None."""
    if option.is_path:
        return Path, None
    annotation = option.field.annotation
    kinds = (annotation,) if get_origin(annotation) is Literal else get_args(annotation)
    kinds = [kind for kind in kinds or (annotation,) if kind is not types.NoneType]
    if any(get_origin(kind) is tuple for kind in kinds):  # may be repeated
        return list[str], None
    if len(kinds) > 1:
        return str, None
    if get_origin(kinds[0]) is Literal:
        return str, f"[{'|'.join(get_args(kinds[0]))}]"
    return (kinds[0] if kinds[0] in (bool, int, float) else str), None


@functools.cache
def signature_of(call: str) -> dict[str, _Declared]:
    """Reads the parameters of "module:function" from the source of the module."""
    module, _, name = call.partition(":")
    path = _SOURCES.joinpath(*module.split(".")).with_suffix(".py")
    source = path.read_text(encoding="utf-8")
    head = re.search(rf"^def {name}\((.*?)\)(?: -> [^\n]*)?:\n", source, re.M | re.S)
    if head is None:
        raise TypeError(f"`{path}` has no function `{name}`.")
    # The head alone, because a parse of the whole module takes longer than the rest of the help.
    (function,) = ast.parse(f"def {name}({head[1]}): pass").body
    arguments = function.args
    positional = [*arguments.posonlyargs, *arguments.args]
    none = [None] * (len(positional) - len(arguments.defaults))
    pairs = [
        *zip(positional, [*none, *arguments.defaults], strict=True),
        *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True),
    ]
    return {
        one.arg: _Declared(_type_named(one.annotation), _default(default, one.annotation, source))
        for one, default in pairs
    }


def _type_named(annotation: ast.expr | None) -> Any:
    """Returns the type of a value on the command line, such as Path for `str | Path | None`."""
    names = set(re.findall(r"\w+", ast.unparse(annotation) if annotation else "str"))
    kinds: Iterator[type] = (
        kind for kind in (Path, bool, str, float, int) if kind.__name__ in names
    )
    kind = next(kinds, str)
    return list[kind] if names & {"Sequence", "Iterable", "list", "tuple"} else kind  # type: ignore[valid-type]


def _default(node: ast.expr | None, annotation: Any, source: str) -> Any:
    if node is None:
        may_be_none = annotation is not None and "None" in ast.unparse(annotation)
        return None if may_be_none else inspect.Parameter.empty
    text = ast.unparse(node)
    if isinstance(node, ast.Name):
        constant = re.search(rf"^{text} = (.*)$", source, re.M)
        text = constant[1] if constant else "None"
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):  # computed: the function knows it
        return None


def is_given(context: typer.Context, name: str) -> bool:
    """Returns whether an option, by the name of its parameter, is on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def given_of(context: typer.Context, names: Iterable[str], values: dict[str, Any]) -> dict:
    """Moves arguments out of `values`, and returns those that are on the command line."""
    found = {name: values.pop(name) for name in names}
    return {name: value for name, value in found.items() if is_given(context, name)}


def refuse(context: typer.Context, names: Iterable[str], problem: str) -> None:
    """Raises InputError if one of the options, by the names of their parameters, is given."""
    for parameter in context.command.params:
        if parameter.name in names and is_given(context, parameter.name):
            is_off = context.params[parameter.name] is False
            name = (parameter.secondary_opts if is_off else parameter.opts)[0]
            raise InputError(f"`{name}` {problem}")
