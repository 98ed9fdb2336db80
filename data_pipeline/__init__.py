"""Text → records → tf.data: the data side of ALBERT pre-training, usable by any trainer."""

import importlib

#: Public name -> module that holds it, loaded at first use: `import data_pipeline` is light.
_HOMES = {
    "DatasetInfo": "data_pipeline.dataset_info",
    "Document": "data_pipeline.corpus",
    "InputError": "data_pipeline.errors",
    "MaskingConfig": "data_pipeline.config",
    "PretrainingDataConfig": "data_pipeline.config",
    "RecordFiles": "data_pipeline.record_folder",
    "Tokenizer": "data_pipeline.tokenization",
    "adopt_records": "data_pipeline.adoption",
    "build_records": "data_pipeline.build",
    "check_corpus": "data_pipeline.reports.corpus_check",
    "evaluation_dataset": "data_pipeline.reader",
    "inspect_records": "data_pipeline.reports.inspection",
    "mask_ngrams": "data_pipeline.masking",
    "read_corpus": "data_pipeline.corpus",
    "train_vocabulary": "data_pipeline.vocabulary",
    "training_dataset": "data_pipeline.reader",
    "verify_records": "data_pipeline.reports.verification",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module `data_pipeline` has no attribute `{name}`")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__():
    return [*globals(), *__all__]
