"""A vocabulary as the files that each format wants."""

import json
import tempfile
from pathlib import Path

from albert_keras.conversion.vocabulary_files import is_sentence_piece

#: Format -> name of a SentencePiece model in it.
_MODEL_NAMES = {"hugging-face": "spiece.model", "keras-nlp": "spiece.model"}


def files_for(vocabulary, format_name, max_length):
    """Returns the files of a vocabulary in a format.

    Args:
        vocabulary: Vocabulary.
        format_name: str. See `formats.FORMATS`.
        max_length: int. Longest sequence of the model, in pieces.

    Returns:
        dict of file name -> bytes.
    """
    own = _folder_files(vocabulary.tokenizer)
    if format_name == "albert-keras":
        return own
    is_sp = is_sentence_piece(vocabulary.tokenizer)
    if is_sp:
        model_name = _MODEL_NAMES.get(format_name, "30k-clean.model")
        files = {model_name: vocabulary.tokenizer.model_bytes}
        if model_name == "30k-clean.model":
            files["30k-clean.vocab"] = own["tokenizer.vocab"]
    else:
        files = {"vocab.txt": vocabulary.tokenizer.model_bytes}
    if format_name == "hugging-face":
        settings = _hugging_face_settings(vocabulary.tokenizer, is_sp, max_length)
        files["tokenizer_config.json"] = (json.dumps(settings, indent=2) + "\n").encode()
    return files


def notes_for(vocabulary, format_name):
    """Tells what of a vocabulary another code will do otherwise: list of str."""
    config = vocabulary.tokenizer.config
    if not is_sentence_piece(vocabulary.tokenizer) or format_name == "albert-keras":
        return []
    notes = []
    if format_name == "hugging-face":
        notes.append(
            "transformers reads `` and '' as \" and writes no lone ▁ before ( and the like"
        )
        return notes
    if not config.lower_case:
        notes.append("the vocabulary is cased: give that code --do_lower_case=False or the like")
    if not config.strip_accents and format_name in ("google", "tf-hub"):
        notes.append("google-research/albert removes accents from all text, this vocabulary not")
    return notes


def _hugging_face_settings(tokenizer, is_sentence_piece, max_length):
    lower_case, strip_accents = tokenizer.config.lower_case, tokenizer.config.strip_accents
    if is_sentence_piece:
        settings = {"tokenizer_class": "AlbertTokenizer", "do_lower_case": lower_case}
        settings["keep_accents"] = not strip_accents
    else:
        settings = {"tokenizer_class": "BertTokenizer", "do_lower_case": lower_case}
        settings["strip_accents"] = strip_accents
    return settings | {"model_max_length": max_length}


def _folder_files(tokenizer):
    with tempfile.TemporaryDirectory() as folder:
        tokenizer.save(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}
