"""What a vocabulary's own program does differently: settings refused by name, and ids compared."""

import importlib.util
import re
from typing import Any

from data_pipeline.errors import InputError
from data_pipeline.tokenizers.tokenization import Tokenizer

#: Texts in several scripts, with accents, digits, punctuation and capitals.
SAMPLE = (
    "The old ferry left Harbour 12 before sunrise, slowly.",
    "unbelievably re-entrant covid-19 e-mail@example.org 3.14%",
    "Café, naïve façade: the Åland crème brûlée isn't bad; it's über-good!",
    "東京都に住む王明在北京大学。",
    "пятница, Ёлка и подъезд",
    "मैं हिन्दी बोलता हूँ",
    f"ΟΔΟΣ {'a' * 100} {'a' * 101} \ue000b",  # what programs treat differently
)
#: Setting of word pieces -> values that mean what our tokenizers do; None for a missing key.
_ALLOWED: dict[str, tuple[Any, ...]] = {
    "tokenize_chinese_chars": (True, None),
    "do_basic_tokenize": (True, None),
    "do_word_tokenize": (True, None),
    "word_tokenizer_type": ("basic", None),
    "subword_tokenizer_type": ("wordpiece", None),
    "auto_map": ({}, None),  # code in the folder
}
#: Names of classes of transformers that split text as our tokenizers do, by kind of vocabulary.
_CLASSES = {
    "wordpiece": r"(Albert|Bert|DistilBert|Electra|MobileBert|ConvBert|Funnel|LayoutLM|Lxmert)",
    "unigram": r"Albert",
}
_ANY_CLASS = r"(PreTrainedTokenizer(Fast)?|TokenizersBackend|None)"
_ADVICE = (
    "If your texts are split like this already, with a space between words, pass the file of the "
    "vocabulary as `tokenizer`; otherwise use a model whose vocabulary splits text by itself."
)


def check_settings(settings: dict, source: object) -> None:
    """Raises InputError for settings of a `tokenizer_config.json` that cannot be followed."""
    for name, allowed in _ALLOWED.items():
        if settings.get(name) not in allowed:
            raise InputError(
                f"`{name}` in tokenizer_config.json of `{source}` must be {allowed[0]!r}: another "
                f"way to split text cannot be expressed here. Received: {settings[name]!r}. "
                f"{_ADVICE}"
            )


def check_side(settings: dict, pieces: dict, source: object) -> None:
    """Raises InputError if the program of a vocabulary cuts long texts at their beginning.

    `settings` are those of `tokenizer_config.json`, and `pieces` of `tokenizer.json`.
    """
    direction = (pieces.get("truncation") or {}).get("direction")
    sides = {"truncation_side": settings.get("truncation_side"), "direction": direction}
    for name, side in sides.items():
        if str(side).lower() == "left":
            raise InputError(
                f"`{name}` of the tokenizer of `{source}` must be right, because texts are cut at "
                "their end here. Received: left. Set it to right, and shorten long texts yourself."
            )


def check_class(name: str | None, kind: str, source: object) -> None:
    """Raises InputError for a `tokenizer_class` of transformers whose way to split is not ours.

    Args:
        name: As in `tokenizer_config.json`.
        kind: Of our vocabulary, as in its configuration.
        source: Where the files are, for the message.
    """
    if re.fullmatch(rf"{_CLASSES[kind]}Tokenizer(Fast)?|{_ANY_CLASS}", str(name)) is None:
        raise InputError(
            f"`tokenizer_class` of `{source}` must be one that splits text as a {kind} vocabulary "
            f"of BERT or ALBERT. Received: {name}, whose way cannot be expressed here. {_ADVICE}"
        )


def check_ids(tokenizer: Tokenizer, pieces: bytes, source: object) -> None:
    """Compares the ids of a sample with those of the program that a vocabulary comes from.

    Nothing is compared if the library `tokenizers` is not installed.

    Args:
        tokenizer: Tokenizer. Ours.
        pieces: Content of the `tokenizer.json` that the other program reads.
        source: Where the files are, for the message.

    Raises:
        InputError: With the first text whose ids differ, or if the library cannot read the file.
    """
    if importlib.util.find_spec("tokenizers") is None:
        return
    theirs = _load(pieces, source)
    theirs.no_truncation()
    theirs.no_padding()
    for text in SAMPLE:
        ours = tokenizer.encode(text)
        found = theirs.encode(text, add_special_tokens=False)
        if list(found.ids) != list(ours):
            pieces = [tokenizer.piece_of(id) for id in ours]
            raise InputError(
                f"The tokenizer of `{source}` must give the same ids here as in the library "
                f"tokenizers. For {text!r} it has {found.tokens[:20]}. Received: {pieces[:20]}. "
                "Pass another vocabulary as `tokenizer`, such as the file that it was made from."
            )


def _load(pieces, source):
    """Returns the tokenizer of the library `tokenizers`."""
    import tokenizers

    try:
        return tokenizers.Tokenizer.from_str(pieces.decode())
    except BaseException as error:  # its PanicException is no Exception, and cannot be imported
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise InputError(
            f"The tokenizer.json of `{source}` is damaged: the library tokenizers cannot read it "
            f"({error})."
        ) from None
