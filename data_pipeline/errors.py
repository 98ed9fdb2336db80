"""The error of everyone who hands us something unusable.

It stands in the lower of the two packages, so that both can raise it and the command line needs to
know one class only.
"""


class InputError(ValueError):
    """What the user gave cannot be used: a file, a folder, a value.

    The message names the thing, the rule and what was received, and where there is one the next
    step. The command line prints it without a traceback and exits with code 2.
    """
