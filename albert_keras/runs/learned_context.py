"""Whether a masked LM has learned to use context, from its scores in the log of a run."""

from collections.abc import Mapping
from typing import Any

from albert_keras.report import count_of, percent


def context_verdict(scores: Mapping[str, Any]) -> tuple[bool, str]:
    """Returns whether a masked LM is better than what it was compared with, and a sentence.

    Args:
        scores: Fields of an `Evaluation`, also as a line of a run's log. Without the `baselines`,
            which need the records of the training, the sentence does not say that context was
            learned.
    """
    found = {f"always guessing `{scores['unigram_guess']}`": scores["unigram_accuracy"]}
    for name, baseline in (scores.get("baselines") or {}).items():
        found[f"the {name} model"] = baseline["masked_lm_accuracy"]
    name, best = max(found.items(), key=lambda item: item[1])
    own, count = scores["masked_lm_accuracy"], scores["num_predictions"]
    both = f"accuracy {percent(own)} versus {percent(best)} on {count_of(count, 'masked token')}"
    if own <= best:
        return False, f"not worth using yet: no better than {name}: {both}"
    if len(found) > 1:
        return True, f"context was learned: better than {name}: {both}"
    return True, f"better than {name}: {both}; bigrams of the training were not counted"
