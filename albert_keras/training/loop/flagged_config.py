"""Configurations in sections, of which single settings may be given by the words of a command."""

from typing import ClassVar

from data_pipeline.errors import InputError
from data_pipeline.settings import Settings


class FlaggedConfig(Settings):
    """Base of the configurations of a run.

    Subclasses say which words there are as `flags`: word -> (section, key).
    """

    flags: ClassVar[dict[str, tuple[str, str]]] = {}

    @classmethod
    def of(cls, values, **flags):
        """Makes a configuration from nested values, as of a file, and single flags.

        Args:
            values: dict of section -> dict, or None for an empty one.
            **flags: Values by the words of `flags`, which win; None means not given.

        Raises:
            SettingsError, InputError: If a value is not known or not possible.
        """
        for name, section in values.items():
            if not isinstance(section, dict | None):
                raise InputError(f"`{name}` should hold keys and values. Received: {section!r}.")
        values = {name: dict(section or {}) for name, section in values.items()}
        for word, value in flags.items():
            if word not in cls.flags:
                raise TypeError(f"`{word}` is not one of {', '.join(cls.flags)}.")
            if value is not None:
                section, key = cls.flags[word]
                values.setdefault(section, {})[key] = value
        return cls(**values)

    @classmethod
    def defaults(cls):
        """Returns what a run has where its record, by an older version, says nothing: dict."""
        return cls().model_dump(mode="json")

    def with_flags(self, **flags):
        """Returns a checked copy with some flags changed, see `of`."""
        return type(self).of(self.model_dump(exclude_unset=True), **flags)
