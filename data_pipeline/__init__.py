"""Text → records → tf.data: the data pipeline of ALBERT pre-training, usable by any trainer."""

import importlib
from typing import TYPE_CHECKING, Any

from data_pipeline.tensorflow_line import silence_startup, use_keras_2

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
    from data_pipeline.records.adoption import adopt_records as adopt_records
    from data_pipeline.records.dataset_info import DatasetInfo as DatasetInfo
    from data_pipeline.records.record_folder import RecordFiles as RecordFiles
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

silence_startup()
use_keras_2()

#: Public name -> its module, which is imported at first use so that `import data_pipeline` is fast.
_HOMES = {
    "DatasetInfo": "data_pipeline.records.dataset_info",
    "Document": "data_pipeline.text.corpus",
    "InputError": "data_pipeline.errors",
    "MaskingConfig": "data_pipeline.config",
    "PretrainingDataConfig": "data_pipeline.config",
    "RecordFiles": "data_pipeline.records.record_folder",
    "Tokenizer": "data_pipeline.tokenizers.tokenization",
    "adopt_records": "data_pipeline.records.adoption",
    "build_records": "data_pipeline.building.build",
    "check_corpus": "data_pipeline.reports.corpus_check",
    "evaluation_dataset": "data_pipeline.reader.reader",
    "inspect_records": "data_pipeline.reports.inspection",
    "mask_ngrams": "data_pipeline.instances.masking",
    "read_corpus": "data_pipeline.text.corpus",
    "train_byte_bpe": "data_pipeline.tokenizers.library_training",
    "train_vocabulary": "data_pipeline.tokenizers.vocabulary",
    "train_wordpiece": "data_pipeline.tokenizers.library_training",
    "training_dataset": "data_pipeline.reader.reader",
    "verify_records": "data_pipeline.reports.inspection",
}

__all__ = sorted(_HOMES)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module `data_pipeline` has no attribute `{name}`")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
