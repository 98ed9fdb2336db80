"""Options that several commands share."""

import typer

from data_pipeline.errors import InputError


def option(default, help, *names, shown=True, **settings):
    """Returns an option of a command.

    Args:
        default: Default; `...` if the option is required.
        help: str. Sentence for the help of the command.
        *names: str. Names such as "--from"; without any the name of the parameter is used.
        shown: str or True. Phrase shown instead of the default.
        **settings: Passed to `typer.Option`.
    """
    return typer.Option(default, *names, help=help, show_default=shown, **settings)


def is_given(context, name):
    """Returns whether an option, by the name of its parameter, is on the command line."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse(context, names, problem):
    """Raises InputError if one of the options, by the names of their parameters, is given."""
    for parameter in context.command.params:
        if parameter.name in names and is_given(context, parameter.name):
            is_off = context.params[parameter.name] is False
            name = (parameter.secondary_opts if is_off else parameter.opts)[0]
            raise InputError(f"`{name}` {problem}")


def argument(default, help, **settings):
    """Returns a positional argument of a command that shows no default."""
    return typer.Argument(default, help=help, show_default=False, **settings)


def batch_size(default):
    return option(default, "Sequences per step.", min=1)


def max_seq_length(default):
    return option(default, "Tokens per sequence.", min=8, max=512)


def repeats(default):
    return option(default, "Number of measurements.", min=1)


PRECISIONS = "Precision: float32, mixed_bfloat16 or mixed_float16."

MODEL = option("albert-base", "Named model, or LAYERSxHIDDEN such as 6x256.")
TOKENIZER = (
    "Folder written by `vocab`, a .model file, a vocab.txt or the tokenizer.json of a RoBERTa; or "
    "a run, an export or the name of a shipped model, whose tokenizer is used."
)
CORPUS = option(..., "Text file, folder or 'glob'; may be repeated.", metavar="PATH")
CORPUS_FORMAT = option(
    "auto",
    "Format of the corpus: auto, prose, sentences (one per line), jsonl or wikiextractor.",
    "--format",
)
CONFIG = option(
    None, "YAML or JSON file of settings, or the name of a recipe.", "--config", metavar="FILE"
)
SET = option(None, "Setting by its dotted key; may be repeated.", "--set", metavar="KEY=VALUE")
ALLOW_CHANGE = option(
    None,
    "Resume even though this setting or dataset differs from the original run; may be repeated.",
    metavar="KEY",
)
FROM_STEP = option(None, "Checkpoint to start from: a number or `best`.", shown="the newest")
ALBERT_CONFIG = option(
    None,
    "Model configuration (albert_config.json) or named model, if the weights have none.",
    metavar="FILE",
)
TOKENIZER_FALLBACK = option(
    None, "Tokenizer, if the weights have none: a folder, .model file or vocab.txt."
)
ALL_SEEDS = option(False, "Average all seeds instead of using the best one.", "--all-seeds")
DATA_DIR = option(None, "Folder of the official files.", shown="as in training")
STEP = option(
    None, "Checkpoint: a number or `best`.", shown="the newest; for a fine-tuning the best"
)
DELIMITER = option(
    None,
    "Character between the columns of the table, or `tab`.",
    metavar="CHARACTER",
    shown="as in training, or detected",
)
ENCODING = option(
    None,
    "Encoding of the table, such as utf-16 or windows-1252.",
    metavar="NAME",
    shown="as in training, or detected",
)
SKIP_BAD_ROWS = option(
    None,
    "Skip the rows of the table that cannot be used, and list them in --out.",
    shown="as in training",
)
STRATEGY = option(
    "auto", "Distribution strategy.", metavar="[auto|tpu|mirrored|multiworker|single]"
)
