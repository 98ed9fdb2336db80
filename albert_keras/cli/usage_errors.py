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
        rule = message.removeprefix("Value error, ").removesuffix(".")
        rule = rule.replace("Input should be", "must be", 1)
        rule = rule.split(", unable to parse")[0]
        received = values_of(param.opts, argv)
        error.message = f"{rule}." + (f" Received: {received[-1]}." if received else "")
    error.show()
    return error.exit_code


def values_of(names, args):
    """Returns the values of an option on a command line, `--name value` or `--name=value`."""
    values = []
    for position, arg in enumerate(args):
        name, equals, value = arg.partition("=")
        if name in names and (equals or position + 1 < len(args)):
            values.append(value if equals else args[position + 1])
    return values
