"""What a user typed to be answered: by name, all of it and nothing else."""

from data_pipeline.errors import InputError

#: How the command line takes what goes with a text.
_OPTIONS = {"pair": " (--pair)", "question": " (--question)", "options": " (--option)"}


def check_fields(task, fields, names):
    """Makes sure that a task is asked with what it wants.

    Args:
        task: str. Its name.
        fields: dict of str.
        names: sequence of str. What there should be; all but "options" are texts.

    Raises:
        InputError: If a field is missing, unknown or no text.
    """
    if set(fields) != set(names):
        wanted = [f"`{name}`{_OPTIONS.get(name, '')}" for name in names]
        listing = " and ".join(filter(None, [", ".join(wanted[:-1]), wanted[-1]]))
        raise InputError(
            f"{task} should be asked with {listing}. Received: {', '.join(fields) or 'nothing'}."
        )
    for name in names:
        if name != "options" and not isinstance(fields[name], str):
            raise InputError(f"`{name}` should be a text. Received: {fields[name]!r}.")
