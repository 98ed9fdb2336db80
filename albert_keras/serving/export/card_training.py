"""What a published version was trained on and how, what it scores, and what fewer bytes cost it."""

from albert_keras.serving.export.card_record import value_at
from albert_keras.serving.export.card_text import (
    base_name,
    code,
    escaped,
    facts,
    names,
    number,
    section,
    table,
    wrapped,
)
from albert_keras.tasks.kinds import REGRESSION

#: Scores of pre-training, by people's names.
_SCORES = {
    "masked_lm_accuracy": "masked pieces that are filled as in the text",
    "masked_lm_loss": "masked-LM loss, nats for each masked piece",
    "unigram_accuracy": "masked pieces, were the most frequent one always guessed",
    "sentence_order_accuracy": "pairs of texts whose order is told right",
    "sentence_order_error": "half the width of the 95 % interval of that",
    "sentence_order_chance": "pairs, were the more frequent order always guessed",
    "sentence_order_loss": "sentence-order loss, nats for each pair",
}


def data_section(version):
    """Writes what a version (CardVersion) was trained on. Of all paths the last part only."""
    data = version.at("run", "data", kind=dict)
    task = version.at("task", kind=dict)
    length = number(value_at(data, "max_seq_length", kind=int))
    is_finetuned = version.kind == "finetuning"
    # Whoever is given the card need not know where and by whom a model was trained.
    rows = [
        ("Task", escaped(value_at(task, "name"))),
        ("Records", escaped(base_name(value_at(data, "path")))),
        (
            "Rows made of the examples" if is_finetuned else "Number of records",
            number(value_at(data, "num_records", kind=int)),
        ),
        ("Length of a row", f"{length} pieces" if length else ""),
        (
            "Masked pieces of a record, at most",
            number(value_at(data, "max_predictions_per_seq", kind=int)),
        ),
        (
            "Fingerprint of the training examples"
            if is_finetuned
            else "Fingerprint of the records",
            code(value_at(data, "fingerprint")),
        ),
        ("Fingerprint of the development examples", code(value_at(data, "dev_fingerprint"))),
        ("Digest of the corpus", code(value_at(data, "corpus_digest"))),
        ("Digest of the tokenizer", code(version.at("run", "tokenizer_digest"))),
        ("Weights it began with", escaped(base_name(value_at(data, "origin")))),
        ("Digest of those weights", code(value_at(data, "origin_digest"))),
    ]
    return section("Training data", facts(rows))


def training_section(version):
    """Writes how a version (CardVersion) was trained, and by which programs."""
    training = version.at("run", "config", "training", kind=dict)
    optimizer = version.at("run", "config", "optimizer", kind=dict)
    step, planned = version.at("step", kind=int), value_at(training, "steps", kind=int)
    of_planned = f" of {number(planned)}" if planned is not None else ""
    warm_up = number(value_at(optimizer, "warmup_steps", kind=int))
    rate = number(value_at(optimizer, "lr", kind=float))
    settings = [
        escaped(value_at(optimizer, "name")),
        f"learning rate {rate}" if rate else "",
        f"{warm_up} steps of warm-up" if warm_up else "",
    ]
    seed = value_at(training, "seed", kind=int)
    programs = version.at("run", "versions", kind=dict)
    programs = [f"{name} {one}" for name, one in programs.items() if isinstance(one, str)]
    rows = [
        ("Steps", f"{number(step)}{of_planned}" if step is not None else ""),
        ("Batch size", number(value_at(training, "batch_size", kind=int))),
        ("Epochs", number(value_at(training, "epochs", kind=float))),
        ("Optimizer", ", ".join(part for part in settings if part)),
        ("Training precision", code(value_at(training, "precision"))),
        ("Seed", "" if seed is None else str(seed)),
        ("Programs", names(programs)),
        ("Commit of albert-keras", code(version.at("run", "git_commit"))),
    ]
    return section("Training", facts(rows))


def scores_section(version):
    """Writes what a version (CardVersion) scored on examples it was not trained on."""
    rows = [
        (_SCORES.get(name, escaped(name.replace("_", " "))), number(value))
        for name, value in measured(version.at("scores", kind=dict)).items()
    ]
    if not rows:
        # Older records have no such key: whether anything was measured is not known.
        return section("Scores", "None were measured.") if "scores" in version.record else ""
    records = escaped(base_name(version.at("scores", "path")))
    if version.kind == "pretraining":
        masked = number(version.at("scores", "num_predictions", kind=int))
        of_pieces = f" with {masked} masked pieces" if masked else ""
        count = number(version.at("scores", "num_records", kind=int))
        where = f"{count} held-out records {records}".strip() + of_pieces
    else:
        where = "development examples. Checkpoints are chosen by them: new texts may score less"
    unit = (
        " f1 and exact matches are in per cent."
        if version.task_kind and version.task_kind.finds_spans
        else ""
    )
    about = wrapped(f"Scores of the checkpoint on {where}.{unit}")
    return section("Scores", about, table(("Score", "Value"), rows))


def measured(scores):
    """Keeps what are scores among what an evaluation tells: dict of str to float."""
    found = {name: value_at(scores, name, kind=float) for name in scores}
    return {name: value for name, value in found.items() if isinstance(value, float)}


def main_score(version):
    """Writes the score a version (CardVersion) is told by, in one cell; "" if there is none."""
    scores = measured(version.at("scores", kind=dict))
    usual = "masked_lm_accuracy"
    name = usual if usual in scores else next(iter(scores), None)
    return "" if name is None else f"{escaped(name.replace('_', ' '))} {number(scores[name])}"


def losses_section(version):
    """Writes what storing the weights of a version (CardVersion) in fewer bytes cost."""
    rows = []
    losses = version.at("accuracy_loss", kind=dict)
    for variant, loss in losses.items():
        mean, largest = (
            number(value_at(loss, f"{which}_difference", kind=float))
            for which in ("mean", "largest")
        )
        agreement = value_at(loss, "agreement", kind=float)
        rows.append(
            (
                escaped(variant),
                number(value_at(loss, "num_predictions", kind=int)),
                "" if agreement is None else f"{100 * agreement:.1f} %",
                f"{mean} ({largest})" if mean and largest else "",
                _loss_or_scores(loss),
            )
        )
    header = ("Weights", "Compared", "Same answer", "Difference (largest)", "Score (float32)")
    note = "Differences are those of probabilities; the scores in brackets are those of float32."
    if version.task_kind is REGRESSION:
        note = "Differences are those of the numbers it answers with."
    parts = (wrapped(_compared_on(version)), table(header, rows), note)
    return section("What fewer bytes cost", *parts) if rows else ""


def _loss_or_scores(loss):
    """Writes what a variant scores, and in brackets what float32 does."""
    values = measured(value_at(loss, "scores", kind=dict))
    usual = value_at(loss, "float32_scores", kind=dict)
    masked_lm = value_at(loss, "loss", kind=float)
    if masked_lm is not None:  # of a pre-trained model
        values, usual = {"loss": masked_lm}, {"loss": value_at(loss, "float32_loss", kind=float)}
    return ", ".join(
        f"{escaped(name.replace('_', ' '))} {number(value)}"
        f" ({number(value_at(usual, name, kind=float)) or '?'})"
        for name, value in values.items()
    )


def _compared_on(version):
    """Says on what variants were compared with float32."""
    given = version.at("compared_on")
    if not given:
        return ""
    if given != "usual":
        return f"Compared with float32 on {escaped(base_name(given))}."
    losses = version.at("accuracy_loss", kind=dict).values()
    if any(value_at(loss, "scores", kind=dict) for loss in losses):
        return "Compared with float32 on development examples."
    return "Compared with float32 on texts of the documentation of Python packages."
