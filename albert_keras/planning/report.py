"""A plan as text for people, each number beside what it rests on."""

from albert_keras.planning.sizes import bytes_text


def plan_lines(plan):
    """Yields the lines that tell a Plan."""
    said = plan.assumptions
    yield (
        f"{plan.size}: {plan.weights / 1e6:,.1f} million weights, S {plan.max_seq_length}, "
        f"P {plan.max_predictions_per_seq}, {plan.precision}, on {plan.device} "
        f"({plan.replicas} replica{'s' if plan.replicas > 1 else ''})"
    )
    yield ""
    yield (
        f"What fits into {bytes_text(plan.memory_bytes)} per replica, for its "
        f"{plan.share:,} of {plan.batch_size:,} sequences"
    )
    yield f"  ({said['memory']})"
    for fit in plan.fits:
        name = "computed again" if fit.recompute else "blocks kept"
        yield f"  {name:<15} {_fit_text(fit)}{'   <- chosen' if fit == plan.chosen else ''}"
    memory = plan.chosen.memory
    yield (
        f"  {'of it':<15} process {bytes_text(memory.process)}, weights "
        f"{bytes_text(memory.weights)}, moments {bytes_text(memory.moments)}, "
        f"activations {bytes_text(memory.kept)}, working memory {bytes_text(memory.working)}, "
        f"gradients {bytes_text(memory.gradients)}; update {bytes_text(memory.update)}"
    )
    yield ""
    yield "How long"
    yield f"  {plan.steps:,} steps, {plan.sequences:,} sequences ({said['steps']})"
    yield f"  {plan.flops_per_step / 1e12:,.3g} TFLOP a step, useful ones"
    yield f"  {said['peak']}; {said['mfu']}"
    if plan.chosen.recompute:
        yield f"  {said['recompute']}"
    yield f"  {plan.seconds_per_step:,.3g} s a step, {_duration(plan.seconds)} in all"
    if plan.records is not None:
        yield ""
        yield "Text"
        yield f"  {plan.records:,} records ({said['text']})"
        yield f"  each is seen {plan.epochs:,.3g} times"
        yield f"  {bytes_text(plan.disk_bytes)} of disk for the records ({said['disk']})"
    yield ""
    yield f"Recipe {plan.recipe}"
    for command in plan.commands:
        yield f"  {command}"


def _fit_text(fit):
    if fit.memory is None:
        return f"at most {fit.largest:,} at once: no part of the batch fits"
    return (
        f"at most {fit.largest:,} at once; {fit.accumulation_steps:,} "
        f"part{'s' if fit.accumulation_steps > 1 else ''} of {fit.part:,}: "
        f"{bytes_text(fit.memory.total)}"
    )


def _duration(seconds):
    if seconds < 7200:
        return f"{seconds / 60:.1f} minutes"
    return f"{seconds / 3600:.1f} hours" if seconds < 172_800 else f"{seconds / 86_400:,.1f} days"
