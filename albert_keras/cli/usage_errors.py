"""Errors of the command line itself: unknown, missing and wrong options."""

import typer

#: The errors that typer raises for them.
USAGE_ERRORS = typer.BadParameter.__mro__[1]


def report_usage_error(error, argv):
    """Prints an error of the command line, with the value that was received.

    Args:
        error: one of `USAGE_ERRORS`.
        argv: list of str. The command line.

    Returns:
        int. Exit code.
    """
    param, message = getattr(error, "param", None), error.message
    if param is not None and message:
        rule = message.removesuffix(".").replace("Input should be", "must be", 1)
        rule = rule.split(", unable to parse")[0]
        received = _received(param.opts, argv)
        error.message = f"{rule}." + ("" if received is None else f" Received: {received}.")
    error.show()
    return error.exit_code


def _received(names, argv):
    """Returns the last value of an option on the command line, or None if there is none."""
    for position in reversed(range(len(argv))):
        name, equals, value = argv[position].partition("=")
        if name in names and (equals or position + 1 < len(argv)):
            return value if equals else argv[position + 1]
    return None
