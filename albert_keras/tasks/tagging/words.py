"""How the training sentences of a tagger were split into words."""

import logging
from collections.abc import Sequence

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.kinds import TAGGING
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.tokenizers.words import SPLITS, find_rule

logger = logging.getLogger(__name__)


def with_word_split(config: TaskConfig, examples: Sequence[TaggedExample]) -> TaskConfig:
    """Returns the configuration of a tagger with the rule by which its examples were split.

    It is the one that finds most words again in their text. Logs the rule, and warns if no rule
    suits them, as for words of Chinese or Thai.
    """
    if config.name not in TAGGING.own_tasks:
        return config
    if config.word_split is None:
        found = find_rule([example.words for example in examples])
        config = config.replace(word_split=found.rule)
        if found.warning:
            logger.warning("word split: %s.", found.warning)
    log_word_split(config)
    return config


def log_word_split(config: TaskConfig) -> None:
    """Logs how the tagger of a configuration splits plain text."""
    logger.info("Plain text is split %s (task.word_split).", SPLITS[config.word_rule])
