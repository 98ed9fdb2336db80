"""How often a run uses its records, and what to do if it is too often."""

import collections
import logging
import math

from albert_keras.report import count_of

logger = logging.getLogger(__name__)

#: More passes over the records than the first number cause a warning; task-adaptive pre-training
#: uses 100 (Gururangan et al. 2020, table 14). The warning suggests the second number, the passes
#: of BERT (Devlin et al. 2019, appendix A.2).
_MAX_EPOCHS, _USUAL_EPOCHS = 100, 40


def report_epochs(training, stages, staged):
    """Logs the passes over the records, and a shorter run if there are too many of them."""
    num_rows = collections.Counter()
    for number, stage in enumerate(stages):
        info, steps, name = stage.records.info, training.steps, ""
        if staged is not None:
            steps = staged.plan.ends[number] - staged.plan.start_of(number)
            name = f"stage {number + 1} of {len(stages)}: "
        rows = steps * stage.training.batch_size
        num_rows[info.fingerprint] += rows
        epochs = rows / len(stage.records)
        shown = f"{epochs:,.0f}" if epochs >= 10 else f"{epochs:.2g}"
        batch_size = stage.training.batch_size
        steps = count_of(steps, "step")
        logger.info("%s%s of %d records: %s epochs", name, steps, batch_size, shown)
    sizes = {stage.records.info.fingerprint: len(stage.records) for stage in stages}
    epochs = max(num_rows[fingerprint] / size for fingerprint, size in sizes.items())
    if epochs > _MAX_EPOCHS:
        logger.warning(
            "Each record is used %s times. More than %d epochs rarely help: build more records, or "
            "use `steps=%d` for %d epochs.",
            f"{epochs:,.0f}",
            _MAX_EPOCHS,
            math.ceil(training.steps * _USUAL_EPOCHS / epochs),
            _USUAL_EPOCHS,
        )
