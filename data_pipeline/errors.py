"""Errors shared by both packages, and the most common mistakes by the numbers of messages."""

from enum import Enum

#: Where the numbers are explained.
DOCUMENT = "docs/errors.md"


class Mistake(Enum):
    """A mistake; its number never changes, so that it can be searched for.

    The hundreds are: 1 text and records, 2 settings and options, 3 models and runs, 4 tasks,
    5 exports and servers.
    """

    CORPUS_NOT_FOUND = "AK101"
    EMPTY_CORPUS = "AK102"
    NOT_TEXT = "AK103"
    VOCABULARY_SIZE = "AK104"
    NO_TOKENIZER = "AK105"
    NOT_RECORDS = "AK106"
    UNFINISHED_RECORDS = "AK107"
    OTHER_TOKENIZER = "AK108"
    OUTPUT_EXISTS = "AK109"
    UNKNOWN_KEY = "AK201"
    INVALID_VALUE = "AK202"
    NOT_YAML = "AK203"
    NO_CONFIG_FILE = "AK204"
    EXTRA_MISSING = "AK206"
    NO_WEIGHTS = "AK301"
    OTHER_SETTINGS = "AK302"
    NO_CHECKPOINT = "AK303"
    NOT_FINETUNED = "AK304"
    TOO_LONG = "AK305"
    NO_MODEL_OF_THIS_NAME = "AK306"
    NOT_A_RUN = "AK307"
    DISK_FULL = "AK308"
    DIVERGED = "AK309"
    NO_TPU = "AK310"
    FILE_NOT_FOUND = "AK401"
    NO_COLUMN = "AK402"
    FILE_ENDING = "AK403"
    ONE_CLASS = "AK404"
    NO_TASK_FILES = "AK405"
    DEV_IS_TRAIN = "AK406"
    BAD_ROWS = "AK407"
    NO_EXPORT = "AK501"
    NO_ANSWER = "AK502"


class InputError(ValueError):
    """A file, a folder or a value from the user cannot be used.

    The message names the thing, the rule and what was received, and if possible what to do. The
    command line prints it without a traceback and exits with code 2.

    Args:
        message: str.
        *mistakes: Mistake. Those that `docs/errors.md` explains.
    """

    def __init__(self, message: str = "", *mistakes: Mistake):
        super().__init__(message)
        self.mistakes = mistakes


def mistakes_of(error: BaseException | None) -> tuple[Mistake, ...]:
    """Returns the mistakes of an error, or of the one that caused it, without repetition."""
    seen = set()  # an error may be among its own causes
    while error is not None and id(error) not in seen:
        if found := getattr(error, "mistakes", ()):
            return tuple(dict.fromkeys(found))
        seen.add(id(error))
        error = error.__cause__
    return ()
