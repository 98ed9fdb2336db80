"""Text → records → tf.data: the data pipeline of ALBERT pre-training, usable by any trainer."""

from typing import TYPE_CHECKING

from data_pipeline.lazy_names import attach
from data_pipeline.tensorflow_line import prepare_tensorflow

if TYPE_CHECKING:  # for type checkers and editors, which do not see names loaded at first use
    from data_pipeline.building.build import build_records as build_records
    from data_pipeline.config import (
        MaskingConfig as MaskingConfig,
        PretrainingDataConfig as PretrainingDataConfig,
    )
    from data_pipeline.errors import InputError as InputError
    from data_pipeline.instances.masking import mask_ngrams as mask_ngrams
    from data_pipeline.reader.reader import (
        evaluation_dataset as evaluation_dataset,
        training_dataset as training_dataset,
    )
    from data_pipeline.records.dataset_info import DatasetInfo as DatasetInfo
    from data_pipeline.records.record_files import RecordFiles as RecordFiles
    from data_pipeline.reports.corpus_check import check_corpus as check_corpus
    from data_pipeline.reports.inspection import (
        inspect_records as inspect_records,
        verify_records as verify_records,
    )
    from data_pipeline.text.corpus import Document as Document, read_corpus as read_corpus
    from data_pipeline.tokenizers.library_training import (
        train_byte_bpe as train_byte_bpe,
        train_wordpiece as train_wordpiece,
    )
    from data_pipeline.tokenizers.tokenization import Tokenizer as Tokenizer
    from data_pipeline.tokenizers.vocabulary import train_vocabulary as train_vocabulary

prepare_tensorflow()

# The names above are loaded at first use, so that the import does not wait for TensorFlow.
__getattr__, __dir__, __all__ = attach(__name__, __file__)
