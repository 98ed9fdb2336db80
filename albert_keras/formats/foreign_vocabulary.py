"""Vocabularies as other programs store them, read into tokenizers of ours.

SentencePiece models are read byte for byte. A `tokenizer.json` alone is converted into the file
that it was made from. Byte-level BPE is vocab.json with merges.txt, or tokenizer.json.
"""

from typing import Any

from albert_keras.formats.tokenizer_check import (
    check_class,
    check_ids,
    check_settings,
    check_side,
    lower_cases,
    overrides,
)
from albert_keras.formats.tokenizer_json import (
    USUAL_LONGEST,
    added_tokens,
    read_tokenizer_json,
)
from data_pipeline.errors import InputError
from data_pipeline.limits import parse_json
from data_pipeline.tokenizers.byte_bpe import (
    PIECES_FILE,
    SPECIAL_PIECES,
    BytePieces,
    read_bpe,
    write_bpe,
)
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_files import CONFIG_FILE

_MODELS = (".model", ".spm")
PIECES, MERGES = "vocab.json", "merges.txt"
_ADDED, _SPECIAL = "added_tokens.json", "special_tokens_map.json"
#: Files that belong to a vocabulary and are none.
BESIDE = (CONFIG_FILE, MERGES, _SPECIAL, _ADDED)
PREFIX = "add_prefix_space"
#: Names of RoBERTa's special tokens, under the keys of transformers.
_KEYS = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
_NAMES = dict(zip(_KEYS, SPECIAL_PIECES, strict=True))


class ForeignVocabulary:
    """The files of a vocabulary, stored beside weights or named by a user.

    Args:
        files: Name -> content. One file of a user may have any name.
        source: Where they are, for messages.
        usual_class: The class of transformers that reads them if `tokenizer_config.json` has none;
            "None" if there is none, and None if it may be another program.

    Attributes:
        origin: str. The file that was read, once `read` returned.
        notes: tuple of str. Differences from the program it comes from, for people.
    """

    def __init__(self, files: dict[str, bytes], source: str, usual_class: str | None):
        self.source, self.origin = source, source
        self.notes: tuple[str, ...] = ()
        alone = next(iter(files)) if len(files) == 1 else ""
        if alone.endswith(".json") and alone != CONFIG_FILE:  # a user may call it anything
            files = {PIECES_FILE: files[alone]}
        self.files, self._has_json = files, PIECES_FILE in files
        self._settings = self._object(CONFIG_FILE)
        self._class = self._settings.get("tokenizer_class", usual_class)
        # Files of google-research have none of these.
        self._is_theirs = bool(self._has_json or self._settings or usual_class)

    def read(self) -> Tokenizer:
        """Returns the tokenizer.

        Raises:
            InputError: If there are several vocabularies or none among the files, it is damaged, or
                its program does what ours cannot.
        """
        models = sorted(name for name in self.files if name.endswith(_MODELS))
        lists = sorted(n for n in self.files if n.startswith("vocab") and n.endswith(".txt"))
        if len({self.files[name] for name in models}) > 1:
            listing = ", ".join(models)
            raise InputError(f"`{self.source}` contains several vocabularies. Pass one: {listing}.")
        if "sha256" in self._settings:  # a tokenizer folder of ours
            return Tokenizer.of_bytes(self.files, source=self.source)
        check_side(self._settings, self._object(PIECES_FILE), self.source)
        if models:
            tokenizer = self._of_model(models[0])
        elif self._is_byte_bpe():
            tokenizer = Tokenizer.of_bytes({PIECES_FILE: self._byte_bpe()}, source=self.source)
        elif self._has_json:
            tokenizer = self._of_json()
        elif lists:
            tokenizer = self._tokenizer(lists[0], self.files[lists[0]], self._settings_of_bert())
        else:
            raise InputError(
                f"`{self.source}` does not contain a vocabulary: a SentencePiece model (*.model), "
                "vocab.txt, tokenizer.json, or vocab.json with merges.txt. It contains: "
                f"{', '.join(sorted(self.files))}."
            )
        check_class(self._class, tokenizer.config.kind, self._has_json, self.source)
        self._check_added(tokenizer)
        if self._has_json and not models:  # a model of SentencePiece is used as it is
            check_ids(tokenizer, self.files[PIECES_FILE], self._settings, self.source)
        return tokenizer

    def _of_model(self, name):
        """Reads a SentencePiece model."""
        # Their program lower-cases text unless its settings say otherwise.
        settings = self._settings and {"do_lower_case": True} | self._settings
        tokenizer = self._tokenizer(name, self.files[name], _normalization(settings))
        self._check_same_pieces(tokenizer, name)
        return tokenizer

    def _of_json(self):
        """Reads a `tokenizer.json` that is no byte-level BPE."""
        found = read_tokenizer_json(self.files[PIECES_FILE])
        self.notes = found.notes
        settings = {"lower_case": found.lower_case, "strip_accents": found.strip_accents}
        if found.file_name == "vocab.txt" and overrides(self._settings):
            settings = self._settings_of_bert()
        longest = found.max_word_characters
        tokenizer = self._tokenizer(found.file_name, found.content, settings, longest)
        self.origin = f"{self.source}: {PIECES_FILE}"
        return tokenizer

    def _tokenizer(self, name, content, settings, longest=USUAL_LONGEST):
        self.origin = f"{self.source}: {name}"
        tokenizer = Tokenizer.of_bytes({name: content}, **settings, source=self.origin)
        if not self._is_theirs or tokenizer.config.kind != "wordpiece":
            return tokenizer
        limits = {"program": "tokenizers", "max_word_characters": longest}
        return Tokenizer(content, tokenizer.config.replace(**limits))

    def _settings_of_bert(self):
        """Returns how text is normalized; settings that cannot be followed are refused."""
        if not self._settings:
            return {}
        check_settings(self._settings, self.source)
        return {"lower_case": lower_cases(self._settings)} | _normalization(self._settings)

    def _check_same_pieces(self, tokenizer, name):
        """Raises InputError if a `tokenizer.json` has other pieces than the model beside it."""
        model = self._object(PIECES_FILE).get("model")
        pieces = model.get("vocab") if isinstance(model, dict) else None
        for id, entry in enumerate(pieces if isinstance(pieces, list) else []):
            theirs = entry[0] if isinstance(entry, list) and entry else entry
            ours = tokenizer.piece_of(id) if id < tokenizer.vocab_size else None
            if theirs != ours:
                raise InputError(
                    f"`{self.source}` must have the same pieces in {PIECES_FILE} and in {name}. "
                    f"The piece {id} is {ours!r} in {name}. Received: {theirs!r}. Remove the one "
                    "that the model was not trained with."
                )

    def _check_added(self, tokenizer):
        """Raises InputError if tokens were added to a vocabulary.

        They are in `added_tokens.json`, `tokenizer.json` or `tokenizer_config.json`.
        """
        try:
            decoder = self._settings.get("added_tokens_decoder") or {}
            tokens = {str(token["content"]): int(id) for id, token in decoder.items()}
            tokens |= added_tokens(self._object(PIECES_FILE))
            tokens |= {piece: int(id) for piece, id in self._object(_ADDED).items()}
        except (ValueError, TypeError, LookupError, AttributeError) as error:
            raise InputError(
                f"The added tokens of `{self.source}` are damaged: {error!r}."
            ) from error
        size = tokenizer.vocab_size
        added = [
            token
            for token, id in tokens.items()
            if not 0 <= id < size or tokenizer.piece_of(id) != token
        ]
        if added:
            raise InputError(
                f"The vocabulary of `{self.source}` must have no added tokens. Received: "
                f"{', '.join(added)}. In transformers, `resize_token_embeddings({size})` drops "
                "their rows; save the model and its vocabulary without them."
            )

    def _is_byte_bpe(self):
        """Returns whether the files are byte-level BPE, from their names and kind."""
        if {PIECES, MERGES} <= self.files.keys():
            return True
        try:
            return parse_json(self.files[PIECES_FILE])["model"]["type"] == "BPE"
        except (LookupError, ValueError, TypeError):
            return False

    def _byte_bpe(self) -> bytes:
        """Returns the `tokenizer.json` of our tokenizer folders for the files of a RoBERTa.

        `tokenizer.json` is read if there is one, else `vocab.json` with `merges.txt`. InputError if
        it is not byte-level BPE, or has other special tokens than RoBERTa.
        """
        for name in (CONFIG_FILE, _SPECIAL):
            settings = self._object(name)
            for key, wanted in _NAMES.items():
                found = settings.get(key, wanted)
                found = found.get("content") if isinstance(found, dict) else found
                if found not in (wanted, None):
                    raise InputError(
                        f"`{key}` in {name} of `{self.source}` must be {wanted}. Received: "
                        f"{found!r}."
                    )
        prefix = self._settings.get(PREFIX)
        try:
            if PIECES_FILE in self.files:
                content = read_bpe(self.files[PIECES_FILE])
                prefix = content.add_prefix_space if prefix is None else prefix
            else:
                content = self._joined()
            return write_bpe(content._replace(add_prefix_space=bool(prefix)))
        except InputError:
            raise
        except (LookupError, ValueError, TypeError, AttributeError) as error:
            raise InputError(
                f"The pieces of `{self.source}` must be text, and RoBERTa's special tokens must be "
                f"among them: {error}."
            ) from error

    def _joined(self):
        """Returns the content of `vocab.json` and `merges.txt`."""
        ids = self._object(PIECES)
        pieces = sorted(ids, key=ids.__getitem__)
        if [ids[piece] for piece in pieces] != list(range(len(pieces))):
            raise ValueError(f"the ids in {PIECES} are not numbered from 0")
        merges = []
        for number, line in enumerate(self.files[MERGES].decode("utf-8-sig").split("\n"), 1):
            merge = tuple(line.removesuffix("\r").split(" "))
            if merge == ("",) or (number == 1 and line.startswith("#version:")):
                continue
            if len(merge) != 2 or not all(merge):
                raise InputError(
                    f"Each line of {MERGES} of `{self.source}` must be two pieces with a space "
                    f"between them. Received in line {number}: {line!r}."
                )
            merges.append(merge)
        return BytePieces(pieces, merges, False, pair_separators=2)

    def _object(self, name) -> dict[str, Any]:
        """Returns the object in a JSON file; an empty one if there is no such file."""
        try:
            return dict(parse_json(self.files.get(name, b"{}")))
        except (ValueError, TypeError) as error:
            raise InputError(
                f"`{name}` of `{self.source}` must contain a JSON object: {error}."
            ) from error


def _normalization(values):
    """Returns the settings of Hugging Face's `tokenizer_config.json` as `Tokenizer.load` does."""
    strip_accents = values.get("strip_accents")
    if values.get("keep_accents") is not None:
        strip_accents = not values["keep_accents"]
    settings = {"lower_case": values.get("do_lower_case"), "strip_accents": strip_accents}
    return {name: value for name, value in settings.items() if isinstance(value, bool)}
