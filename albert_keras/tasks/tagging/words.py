"""How the training sentences of a tagger were split into words."""

import logging
from collections.abc import Sequence

from albert_keras.tasks.examples import TaggedExample
from albert_keras.tasks.kinds import TAGGING
from albert_keras.tasks.task_config import TaskConfig
from data_pipeline.tokenizers.words import SPLITS, rule_of

logger = logging.getLogger(__name__)


def with_word_split(config: TaskConfig, examples: Sequence[TaggedExample]) -> TaskConfig:
    """Returns the configuration of a tagger with the rule by which its examples were split.

    Logs the rule, see `rule_of`, and warns if no rule suits them, as for words of Chinese or Thai.
    """
    if config.name not in TAGGING.own_tasks:
        return config
    if config.word_split is None:
        rule, share = rule_of([example.words for example in examples])
        config = config.replace(word_split=rule)
        if share < 0.5:
            logger.warning(
                "No rule splits plain text as the training sentences were split: the best one "
                "finds the words of %.0f %% of them. Give sentences as lists of words.",
                100 * share,
            )
    log_word_split(config)
    return config


def log_word_split(config: TaskConfig) -> None:
    """Logs how the tagger of a configuration splits plain text."""
    logger.info("Plain text is split %s (task.word_split).", SPLITS[config.word_rule])
