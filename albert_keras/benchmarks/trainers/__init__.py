"""Those who train in a contest: our step and those of peers, each one update per run."""

from albert_keras.benchmarks.contest import Contestant
from albert_keras.benchmarks.trainers import keras_nlp, ours, transformers
from data_pipeline.errors import InputError
from data_pipeline.settings import did_you_mean

#: Precision of a run -> what it multiplies in.
DTYPES = {"float32": "float32", "mixed_bfloat16": "bfloat16"}
PEERS = ("keras-nlp", "transformers")

_PYTORCH = ("torch", "transformers")
#: What can be chosen of a PyTorch step: its name, compiled or not, scores at masked positions only.
_FORMS = (
    ("transformers, eager", False, False),
    ("transformers, compiled", True, False),
    ("transformers, compiled, masked positions", True, True),
)


def trainers(shape, precisions=tuple(DTYPES), peers=PEERS):
    """Lists who trains.

    Args:
        shape: Shape.
        precisions: sequence of str. "float32", "mixed_bfloat16" or both.
        peers: sequence of str. Of `PEERS`; or "all" or "none" alone.

    Returns:
        list of Contestant. Ours come first.

    Raises:
        InputError: If a word is not known.
    """
    for precision in precisions:
        if precision not in DTYPES:
            raise InputError(
                f"The precision should be float32 or mixed_bfloat16. Received: {precision!r}."
            )
    peers, precisions = chosen_peers(peers), list(dict.fromkeys(precisions))
    found = [Contestant("ours", DTYPES[name], ours.prepare, (shape, name)) for name in precisions]
    if "keras-nlp" in peers:
        found += [
            Contestant("keras-nlp", DTYPES[name], keras_nlp.prepare, (shape, name))
            for name in precisions
        ]
    if "transformers" in peers:
        found += [
            Contestant(
                name, DTYPES[precision], transformers.prepare, (shape, precision, *form), _PYTORCH
            )
            for name, *form in _FORMS
            for precision in precisions
        ]
    return found


def chosen_peers(words, known=PEERS):
    """Returns the peers (tuple of str) that words mean: names, or "all" or "none" alone.

    Raises:
        InputError: If a word is not known, or "all" or "none" stands beside others.
    """
    words = tuple(dict.fromkeys(words))
    if words in (("all",), ("none",), ()):
        return known if words == ("all",) else ()
    for word in words:
        if word in ("all", "none"):
            raise InputError(f"`{word}` should be the only peer. Received: {', '.join(words)}.")
        if word not in known:
            raise InputError(f"`{word}` is not a known peer{did_you_mean(word, known)}")
    return words
