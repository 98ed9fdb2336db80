"""Commands and options of earlier versions: each answers with what replaces it, exit code 2."""

from data_pipeline.errors import InputError

_FORMATS = (
    "The released models exist in the formats hugging-face, google and google-bert: use these."
)

#: What was removed, as it was typed after `albert-keras` -> a sentence that names its replacement.
#: An option follows its command, `finetune --head`, and one of its values follows the option,
#: `convert --to fairseq`.
REMOVED = {
    "analyze convergence": "Use `albert-keras analyze layers --depth N`.",
    "analyze similarity": "Use `albert-keras analyze layers`.",
    "analyze embeddings --data": "Leave it out: lengths of embeddings are not analysed any more.",
    "benchmark": "Run `python -m tests.benchmarks` in a clone of the repository.",
    "score": "Use `albert-keras evaluate --predictions FILE --task TASK --data FILE`.",
    **{
        f"finetune --{option}": "The head on a frozen encoder is a linear layer."
        for option in ("head", "lstm-units")
    },
    "report": "Use `albert-keras runs report RUN`.",
    "runs plot": "`albert-keras runs report RUN` draws the curves of a run; "
    "`tensorboard --logdir FOLDER` draws those of several.",
    "data check --figure": "`--json` has the numbers.",
    "data inspect --figure": "`--json` has the numbers.",
    **{
        f"convert --{option} {name}": _FORMATS
        for option in ("to", "from")
        for name in ("fairseq", "tf-hub", "tf-models")
    },
}


def check_removed(path: str, words: list[str]) -> None:
    """Raises InputError if the words of a command line have a command or an option of `REMOVED`.

    Args:
        path: The commands before the words, such as "albert-keras runs".
        words: What follows; of an option also its value, as `--name value` or `--name=value`.
    """
    commands = path.split()[1:]
    flat = [part for word in words for part in word.split("=", 1)]
    for position, word in enumerate(flat):
        for typed in ([word], flat[position : position + 2]):
            old = " ".join([*commands, *typed])
            if old in REMOVED:
                raise InputError(f"`albert-keras {old}` was removed. {REMOVED[old]}")
