"""Messages name parameters and settings as Python does; a command shows its options instead.

The library writes them in backticks, with a value as in a call, and a setting by its dotted key:
`out`, `overwrite=True`, `optimizer.warmup_steps=null`.
"""

import re
import shlex
from pathlib import Path

import typer

from data_pipeline.settings import Settings, SettingsError, options_of

#: A name with or without a value. What follows the word "column" is the name of a column.
_NAME = re.compile(r"(?<!column )`([a-z][a-z_.]*)(?:=([^`]*))?`")


class OptionNames:
    """The options of a command by the names of their parameters and settings.

    Args:
        context: The command, with the values that the user gave. A name among them is not replaced,
            because it may be that of a folder or a column.
        config: Settings that are options of the command.
    """

    def __init__(self, context: typer.Context, config: type[Settings] | None = None):
        values: list = []
        for value in context.params.values():
            values += value if isinstance(value, list) else [value]
        self._given = {Path(str(value).rpartition("=")[2]).name for value in values}
        # The option, and that of the opposite if there is one.
        self._names: dict[str, list[str]] = {
            one.name: [max(one.opts, key=len), *one.secondary_opts]
            if one.param_type_name == "option"
            else [one.metavar or one.name.upper()]
            for one in context.command.params
        }
        options = options_of(config) if config else {}
        # Options that are called otherwise than their keys: `--task` is the name of a task.
        self._renames = any(
            len(option.path) == 1 and option.path != (keyword,)
            for keyword, option in options.items()
        )
        for keyword, option in options.items():
            self._names[".".join(option.path)] = self._names[keyword]

    def put_into(self, message: str | Exception) -> str:
        """Returns a message with options in the place of parameters and settings."""
        text = str(message)
        if isinstance(message, SettingsError):
            text = re.sub(r"^(\d+ problems?) in [A-Z]\w+:", r"\1 in the settings:", text)
            # The keys are those of --set and of files.
            if "assignments" in self._names and not self._renames:
                return text
        return _NAME.sub(self._shown, text)

    def _shown(self, match):
        name, value = match.groups()
        names = self._names.get(name)
        if value is None:
            return match[0] if names is None or name in self._given else f"`{names[0]}`"
        if names is None and "." in name:
            is_setting = "assignments" in self._names
            return f"`--set {shlex.quote(f'{name}={value}')}`" if is_setting else match[0]
        if names is None:  # of another command, such as the one that builds records
            names = [f"--{name.replace('_', '-')}"]
        if value in ("True", "False"):
            return f"`{names[0 if value == 'True' else -1]}`"
        return f"`{names[0]} {shlex.quote(value)}`"
