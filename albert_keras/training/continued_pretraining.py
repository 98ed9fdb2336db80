"""Trained weights that a pre-training begins with: whose they are, and whether they fit.

Where they lie is not known here: `initial` is an `InitialWeights`, or anything with its attributes
`albert_config`, `tokenizer`, `digest`, and its methods `load` and `extended`.
"""

import json
import logging

from albert_keras.config import FREE_SETTINGS, AlbertConfig
from albert_keras.interop.model_weights import HEADS
from albert_keras.training.distributed.cluster import is_chief
from data_pipeline.errors import InputError
from data_pipeline.files import whole_file
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_extension import is_extension

logger = logging.getLogger(__name__)

OUTPUT_BIAS = "cls/predictions/output_bias"
#: What became of each weight, beside `run.json`.
_LOADED = "loaded.json"
_HEADS = HEADS["masked_lm"] + HEADS["sentence_order"]


class ContinuedPretraining:
    """Weights to begin with on certain records.

    Attributes:
        albert_config: AlbertConfig. Of their model, with the vocabulary of the records.
        num_new_pieces: int. Rows that the weights do not have.
    """

    def __init__(self, initial, extended):
        """Use `ContinuedPretraining.of`."""
        self._initial, self._extended = initial, extended
        self.albert_config = extended.albert_config
        self.num_new_pieces = self.albert_config.vocab_size - initial.albert_config.vocab_size

    @classmethod
    def of(cls, initial, records):
        """Brings weights and records together.

        Args:
            initial: InitialWeights.
            records: RecordFiles. Made with the tokenizer of the weights, or with one that has more
                pieces behind the same.

        Raises:
            InputError: If they were made with another tokenizer.
        """
        info, ours = records.info, initial.tokenizer
        if info.tokenizer_digest == ours.digest:
            return cls(initial, initial)
        if info.tokenizer_digest is None:
            if info.vocab_size != ours.vocab_size:
                raise InputError(
                    f"`{records.folder}` should have the {ours.vocab_size:,} pieces of "
                    f"`{initial}`. Received: {info.vocab_size:,}."
                )
            logger.warning(
                "`%s` came without a tokenizer: nothing tells whether its ids are those of `%s`",
                records.folder,
                initial,
            )
            return cls(initial, initial)
        folder = records.folder / TOKENIZER_FOLDER
        theirs = Tokenizer.load(folder) if folder.is_dir() else None
        if theirs is None or theirs.digest != info.tokenizer_digest:
            theirs = None
        if theirs is None or not is_extension(ours, theirs):
            raise InputError(
                f"`{records.folder}` should be made with the tokenizer of `{initial}`, of digest "
                f"{ours.digest}, or with one that `vocab extend` made of it. Received: "
                f"{info.tokenizer_digest}."
            )
        return cls(initial, initial.extended(theirs))

    def model_settings(self, config):
        """Returns what `config.model` has to be for this model.

        Args:
            config: PretrainingConfig. Settings of the model given there may change what weights do
                not depend on, such as dropout, and have to agree with theirs otherwise.

        Returns:
            dict: the named model that is nearest, and what is different in it.

        Raises:
            InputError: With all settings that do not agree.
        """
        given = config.model if "model" in config.model_fields_set else {}
        changes = {name: value for name, value in given.items() if name != "size"}
        asked = dict(AlbertConfig.from_name(config.size, **changes))
        named = asked.keys() - {"vocab_size"} if "size" in given else set()
        problems = [
            f"{name}: {ours!r} there, {asked[name]!r} asked for"
            for name, ours in self.albert_config
            if name in (named | changes.keys()) - FREE_SETTINGS and ours != asked[name]
        ]
        if problems:
            listing = "\n  ".join(problems)
            raise InputError(
                f"The model follows from `{self._initial}`, and the settings contradict it:\n"
                f"  {listing}\nLeave --size and such settings out."
            )
        free = {name: asked[name] for name in changes.keys() & FREE_SETTINGS}
        return _settings_of(self.albert_config.replace(**free))

    def describe(self):
        """Returns what `run.json` keeps of them: dict."""
        return {"origin": str(self._initial), "origin_digest": self._initial.digest}

    def load(self, model):
        """Assigns all weights that are there, of the heads too, or none: LoadReport.

        Raises:
            InputError: See `load_encoder`.
        """
        return self._extended.load(model, heads=_HEADS)

    def lines(self, report):
        """Says what became of each weight: list of str."""
        lines = report.lines()
        if self.num_new_pieces:
            old = self._initial.albert_config.vocab_size
            lines.append(
                f"vocabulary: the rows of {old:,} pieces kept, {self.num_new_pieces:,} new ones "
                "begin as the mean of those their text was cut into"
            )
        return lines


def report_loaded(strategy, run, lines):
    """Says what became of each weight, and keeps it in the run.

    Args:
        strategy: tf.distribute.Strategy.
        run: Run.
        lines: list of str.
    """
    for line in lines:
        logger.info("%s", line)
    if is_chief(strategy):
        with whole_file(run.path / _LOADED) as temporary:
            temporary.write_text(json.dumps(lines, indent=2) + "\n", encoding="utf-8")


def _settings_of(albert_config):
    """Writes a model as the nearest named one and what is different in it; V is left out."""

    def differences(name):
        named = AlbertConfig.from_name(name)
        return {
            key: value
            for key, value in albert_config
            if key != "vocab_size" and value != getattr(named, key)
        }

    size = min(AlbertConfig.names(), key=lambda name: len(differences(name)))
    return {"size": size} | differences(size)
