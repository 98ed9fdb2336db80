"""How a pre-training begins: from random weights, or from trained ones, if they fit."""

from albert_keras.config import AlbertConfig, check_same_shape
from albert_keras.formats.loading import LoadReport
from albert_keras.formats.opened_model import OpenedModel
from albert_keras.models.pretraining import AlbertForPretraining
from albert_keras.shape import HEADS
from albert_keras.training.build import build_pretraining
from albert_keras.training.config import PretrainingConfig
from data_pipeline.errors import InputError, Mistake
from data_pipeline.records.dataset_info import DatasetInfo
from data_pipeline.records.record_files import RecordFiles
from data_pipeline.tokenizers.tokenization import Tokenizer
from data_pipeline.tokenizers.vocabulary_extension import is_extension
from data_pipeline.tokenizers.vocabulary_files import TOKENIZER_FOLDER

OUTPUT_BIAS = "cls/predictions/output_bias"
_HEADS = HEADS["masked_lm"] + HEADS["sentence_order"]


class Start:
    """The beginning of a pre-training run from random weights; the base class of all others.

    Attributes:
        weights: OpenedModel or None. The weights that the run starts from or learns from: their
            training records count as trained on.
        trained_positions: int. Positions whose embeddings were trained before.
    """

    weights: OpenedModel | None = None
    trained_positions = 0

    def configured(self, config: PretrainingConfig) -> PretrainingConfig:
        """Returns the configuration with the shape of the model that the weights imply."""
        return config

    def build(
        self, config: PretrainingConfig, albert_config: AlbertConfig, skips_padding: bool
    ) -> AlbertForPretraining:
        """Builds the compiled model of a resolved configuration, in the strategy's scope."""
        return build_pretraining(config, albert_config, skips_padding)

    def describe(self) -> dict | None:
        """Returns the description of the weights in `run.json`."""
        return None

    def load(self, model: AlbertForPretraining) -> LoadReport | None:
        """Assigns the first weights, all or none; None if all of them are random."""
        return None

    def lines(self, report: LoadReport) -> list[str]:
        """Returns what was loaded as text."""
        return report.lines()


class ContinuedPretraining(Start):
    """Initial weights that were combined with the records to continue with, see `of`."""

    def __init__(self, initial, extended, has_copies):
        self.weights = self._initial = initial
        self._extended = extended
        self._has_copies = has_copies  # of trained positions, for later ones
        #: Shape of the model, with the vocabulary of the records.
        self.albert_config = extended.albert_config
        #: Rows of the vocabulary that the weights do not have.
        self.num_new_pieces = self.albert_config.vocab_size - initial.albert_config.vocab_size
        #: Positions whose embeddings were trained before.
        self.trained_positions = initial.trained_positions

    @classmethod
    def of(
        cls, initial: OpenedModel, records: RecordFiles, config: PretrainingConfig | None = None
    ) -> "ContinuedPretraining":
        """Combines weights with records that were built with their tokenizer or an extension of it.

        Positions of the sequences of the first stage that were never trained start as copies of
        trained ones.

        Args:
            config: Of the run. `max_position_embeddings` of the model may be larger than that of
                the weights; the position embedding "rotary" discards a table of absolute positions.

        Raises:
            InputError: If the records were built with another tokenizer, or the weights have more
                positions.
        """
        info, ours = records.info, initial.tokenizer
        config = config or PretrainingConfig()
        positions = config.model.get("max_position_embeddings")
        first = config.stages[0].data if config.stages else None
        length = info.max_seq_length if first is None else DatasetInfo.read(first).max_seq_length
        if positions is None and length > initial.trained_positions:
            positions = initial.albert_config.max_position_embeddings
        longer = initial.lengthened(positions)
        has_copies = longer is not initial
        if config.model.get("position_embedding") == "rotary":
            longer = longer.with_rotary_positions()
        if info.tokenizer_digest != ours.digest:
            folder = records.folder / TOKENIZER_FOLDER
            theirs = Tokenizer.load(folder) if folder.is_dir() else None
            is_theirs = theirs is not None and theirs.digest == info.tokenizer_digest
            if not is_theirs or not is_extension(ours, theirs):
                raise InputError(
                    f"`{records.folder}` must be built with the tokenizer of `{initial}`, with the "
                    f"digest {ours.digest}, or with an extension of it by `vocab extend`. "
                    f"Received: {info.tokenizer_digest}.",
                    Mistake.OTHER_TOKENIZER,
                )
            longer = longer.extended(theirs)
        return cls(initial, longer, has_copies)

    def configured(self, config):
        return config.replace(model=self.model_settings(config))

    def model_settings(self, config: PretrainingConfig) -> dict:
        """Returns the nearest named model and the settings in which this model differs from it.

        The given `config.model` may change settings that weights do not depend on, such as dropout.

        Raises:
            InputError: If other settings do not agree with the weights; the error lists them all.
        """
        ours = self.albert_config
        given = dict(config.model) if "model" in config.model_fields_set else {}
        size = given.pop("size", None)
        requested = ours.replace(**given)
        if size is not None:
            requested = AlbertConfig.from_name(size, **{"vocab_size": ours.vocab_size} | given)
        shapes = {"the weights": ours, "the settings": requested}
        check_same_shape(shapes, f"`{self._initial}`")
        return ours.replace(**given).as_settings()

    def describe(self):
        return self._initial.describe()

    def load(self, model):
        # All weights that the source has, heads included; see `load_encoder`.
        return self._extended.load(model, heads=_HEADS)

    def lines(self, report):
        lines = report.lines()
        longest, trained = self.albert_config.max_position_embeddings, self.trained_positions
        if not self.albert_config.position_rows:
            if self._initial.albert_config.position_rows:
                lines.append("positions are rotary: the table of absolute positions is discarded")
        elif self._has_copies and 0 < trained < longest:
            first = trained + 1
            lines.append(f"positions {first} to {longest} start as copies of trained ones")
        if self.num_new_pieces:
            old = self._initial.albert_config.vocab_size
            lines.append(
                f"vocabulary: the rows of {old:,} pieces are kept; each of the "
                f"{self.num_new_pieces:,} new ones starts as the mean of the pieces that its text "
                "was split into"
            )
        return lines
