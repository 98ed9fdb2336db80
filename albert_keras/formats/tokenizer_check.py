"""What a vocabulary's own program does differently: settings refused by name, and ids compared."""

import importlib.util
import re
from typing import Any

from albert_keras.config import check_keys
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
#: Setting -> values that mean what our tokenizers do; None stands for a missing key.
_ALLOWED: dict[str, tuple[Any, ...]] = {
    "tokenize_chinese_chars": (True, None),
    "do_basic_tokenize": (True, None),
    "do_word_tokenize": (True, None),
    "word_tokenizer_type": ("basic", None),
    "subword_tokenizer_type": ("wordpiece", None),
    "auto_map": ({}, None),  # code in the folder
}
#: Keys whose default would change how text is split.
_KEYS = (
    *("do_lower_case", "strip_accents", "tokenize_chinese_chars"),
    *("do_basic_tokenize", "tokenizer_class"),
)
#: Names of classes of transformers that split text as our tokenizers do, by kind of vocabulary.
_CLASSES = {
    "wordpiece": r"(Albert|Bert|DistilBert|Electra|MobileBert|ConvBert|Funnel|LayoutLM|Lxmert)",
    "bpe": r"(Roberta|Bart|Longformer|LED)",
    "unigram": r"Albert",
}
_ANY_CLASS = r"(PreTrainedTokenizer(Fast)?|TokenizersBackend|None)"
#: Classes for `tokenizer.json`, which says by itself how text is split; these ignore it.
_WITHOUT_JSON = ("BertJapaneseTokenizer", "BertweetTokenizer", "PhobertTokenizer")


def check_settings(settings: dict, source: str) -> None:
    """Refuses settings of a `tokenizer_config.json` that our tokenizers cannot follow.

    Raises:
        InputError: With the setting, and what to do; or with a key that seems to be misspelt.
    """
    check_keys(settings, f"tokenizer_config.json of {source}", _KEYS, ())
    for name, allowed in _ALLOWED.items():
        if settings.get(name) not in allowed:
            raise InputError(
                f"`{name}` in tokenizer_config.json of `{source}` must be {allowed[0]!r}: another "
                f"way to split text cannot be expressed here. Received: {settings[name]!r}. If "
                "your texts are split like this already, with a space between words, pass the "
                "vocab.txt of the folder as `tokenizer`; otherwise use a model whose vocabulary "
                "splits text by itself."
            )


def check_side(settings: dict, pieces: dict, source: str) -> None:
    """Raises InputError if the program of a vocabulary cuts long texts at their beginning.

    `settings` are those of `tokenizer_config.json`, and `pieces` of `tokenizer.json`.
    """
    truncation = pieces.get("truncation")
    direction = truncation.get("direction") if isinstance(truncation, dict) else None
    sides = {"truncation_side": settings.get("truncation_side"), "direction": direction}
    for name, side in sides.items():
        if str(side).lower() == "left":
            raise InputError(
                f"`{name}` of the tokenizer of `{source}` must be right, because texts are cut at "
                "their end here. Received: left. Set it to right, and shorten long texts yourself."
            )


def check_class(name: str | None, kind: str, has_json: bool, source: str) -> None:
    """Refuses a `tokenizer_class` of transformers whose way to split text is not ours.

    Args:
        name: As in `tokenizer_config.json` or, if that has none, in `config.json`.
        kind: Of our vocabulary, as in its configuration.
        has_json: Whether its `tokenizer.json` was read.

    Raises:
        InputError: With the class, and what to do.
    """
    known = rf"{_CLASSES[kind]}Tokenizer(Fast)?|{_ANY_CLASS}"
    if name not in _WITHOUT_JSON and (has_json or re.fullmatch(known, str(name))):
        return
    raise InputError(
        f"`tokenizer_class` of `{source}` must be one that splits text as a {kind} vocabulary of "
        f"BERT, RoBERTa or ALBERT. Received: {name}, whose way cannot be expressed here. If your "
        "texts are split like this already, with a space between words, pass the file of the "
        "vocabulary as `tokenizer`; otherwise use a model whose vocabulary splits text by itself."
    )


def check_ids(tokenizer: Tokenizer, pieces: bytes, settings: dict, source: str) -> None:
    """Compares the ids of a sample with those of the program that a vocabulary comes from.

    Nothing is compared if the library `tokenizers` is not installed or cannot read the file.

    Args:
        tokenizer: Tokenizer. Ours.
        pieces: Content of the `tokenizer.json` that the other program reads.
        settings: dict. The contents of the `tokenizer_config.json` beside it.
        source: Where the files are, for the message.

    Raises:
        InputError: With the first text whose ids differ.
    """
    if importlib.util.find_spec("tokenizers") is None:
        return
    theirs = _load(pieces, settings, source)
    if theirs is None:
        return
    theirs.no_truncation()
    theirs.no_padding()
    for text in SAMPLE:
        ours = tokenizer.encode(text)
        found = theirs.encode(text, add_special_tokens=False)
        if list(found.ids) != list(ours):
            pieces = [tokenizer.piece_of(id) for id in ours]
            raise InputError(
                f"The tokenizer of `{source}` must give the same ids here as with its own "
                f"settings. For {text!r} it has {found.tokens[:20]}. Received: {pieces[:20]}. "
                "Pass another vocabulary as `tokenizer`, such as the file that it was made from."
            )


def _load(pieces, settings, source):
    """Returns the tokenizer of the library `tokenizers`; None if it is of another version of it."""
    import tokenizers

    try:
        found = tokenizers.Tokenizer.from_str(pieces.decode())
    except Exception:  # the library raises nothing more specific
        return None
    except BaseException as error:  # its PanicException is no Exception, and cannot be imported
        if type(error).__name__ != "PanicException":
            raise
        raise InputError(
            f"The tokenizer.json of `{source}` is damaged: the library tokenizers cannot read "
            f"it ({error})."
        ) from None
    if overrides(settings):
        found.normalizer = tokenizers.normalizers.BertNormalizer(
            lowercase=lower_cases(settings), strip_accents=settings.get("strip_accents")
        )
    elif settings.get("add_prefix_space") is not None:
        if isinstance(found.model, tokenizers.models.BPE):
            prefix = bool(settings["add_prefix_space"])
            found.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=prefix)
    return found


def overrides(settings: dict) -> bool:
    """Returns whether a `tokenizer_config.json` replaces the normalizer of a `tokenizer.json`.

    The classes for BERT and DistilBERT do so in transformers.
    """
    is_bert = "BertTokenizer" in str(settings.get("tokenizer_class"))
    return is_bert and not settings.keys().isdisjoint({"do_lower_case", "tokenize_chinese_chars"})


def lower_cases(settings: dict) -> bool:
    """Returns whether the program of a `vocab.txt` lower-cases text, by its settings or default."""
    usual = "Japanese" not in str(settings.get("tokenizer_class"))
    return bool(settings.get("do_lower_case", usual))
