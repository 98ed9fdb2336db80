"""Text → records → tf.data: the data pipeline of ALBERT pre-training, usable by any trainer."""

import importlib

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
    "train_vocabulary": "data_pipeline.tokenizers.vocabulary",
    "training_dataset": "data_pipeline.reader.reader",
    "verify_records": "data_pipeline.reports.verification",
}

__all__ = sorted(_HOMES)


def __getattr__(name):
    if name not in _HOMES:
        raise AttributeError(f"module `data_pipeline` has no attribute `{name}`")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__():
    return [*globals(), *__all__]
