"""What a published version is, in a sentence, and what it is not for."""

from albert_keras.serving.export.card_record import read_json, value_at
from albert_keras.serving.export.card_text import bullets, escaped, names, number, section, wrapped
from albert_keras.serving.graph.text_packing import BYTES_PER_PLACE
from albert_keras.tasks.kinds import REGRESSION, SPANS, SPANS_OR_NONE, TAGGING
from data_pipeline.records.dataset_info import TOKENIZER_FOLDER


def summary(version):
    """Says in a sentence what a version (CardVersion) is, its labels after it."""
    shape = version.at("run", "albert_config", kind=dict)
    layers, groups, width, pieces = (
        value_at(shape, key, kind=int)
        for key in ("num_hidden_layers", "inner_group_num", "hidden_size", "vocab_size")
    )
    parameters = version.at("num_parameters", kind=int)
    parts = ["ALBERT"]
    if layers and width:
        parts.append(f"{number(layers * (groups or 1))} layers of {number(width)}")
    if parameters:
        parts.append(f"{parameters / 1e6:,.1f} M parameters")
    if pieces:
        parts.append(f"a vocabulary of {number(pieces)} pieces")
    sentence = ", ".join((*parts, *_training_of(version)))
    labels = names(version.at("task", "labels", kind=list))
    return "\n\n".join(
        part
        for part in (
            wrapped(f"{sentence}."),
            f"Labels: {labels}." if labels else "",
            f"This card is about version {version.number}, the newest of [all](#versions).",
        )
        if part
    )


def _training_of(version):
    step = version.at("step", kind=int)
    steps = "" if step is None else f" for {number(step)} steps"
    if version.kind == "pretraining":
        order = " and tells the order of texts" if "sentence_order" in version.signatures else ""
        return [f"pre-trained{steps}; fills masks{order}"]
    if version.kind != "finetuning":
        return []
    task = escaped(version.at("task", "name"))
    texts = "pairs of texts" if version.at("task", "takes_pair", kind=bool) else "texts"
    labels = number(len(version.at("task", "labels", kind=list)) or None) or "several"
    purpose = ""
    if version.task_kind:
        purpose = version.task_kind.card_purpose.format(labels=labels, texts=texts)
    return [
        f"fine-tuned{f' for {task}' if task else ''}{steps}" + (f"; {purpose}" if purpose else "")
    ]


def limits_section(version):
    """Writes what a version (CardVersion) does not read, know or promise."""
    kind, length = version.task_kind, version.at("max_seq_length", kind=int)
    tokenizer = read_json(version.folder / TOKENIZER_FOLDER / "tokenizer_config.json")
    lines = []
    if length:
        most = number(BYTES_PER_PLACE * length)
        cut = (
            f"and at most {number(length)} pieces (words or parts of words) of all texts of an "
            "input together"
        )
        if kind and kind.finds_spans:
            cut = f"in windows of {number(length)} pieces (words or parts of words)"
        lines.append(f"Of a text {most} bytes are read, {cut}; the rest is not seen.")
    if kind is TAGGING:
        lines.append('Words that are not seen have the tag ""; `Predictor` tags them, too.')
    lines.append("Bytes that are not UTF-8 are read as U+FFFD, the replacement character.")
    if value_at(tokenizer, "lower_case", kind=bool):
        lines.append("Upper and lower case are the same to it.")
    if value_at(tokenizer, "strip_accents", kind=bool):
        lines.append("Letters with accents are the same to it as those without.")
    if "fill_mask" in version.signatures:
        lines.append("`[MASK]` means something to `fill_mask` and `serving_default` only.")
    if kind is SPANS:
        lines.append("It always gives an answer, even where the passage has none.")
    threshold = version.at("tuned", "null_threshold", kind=float)
    if kind is SPANS_OR_NONE and threshold is not None:
        lines.append(f"A question stays unanswered from a `null_score` of {number(threshold)} on.")
    lines += [
        "It knows what its training data say, in their language, and may repeat their mistakes "
        "and prejudices.",
        "It is not for decisions about people, unless you have tested it for that, on data of "
        "your own.",
    ]
    if kind is not REGRESSION:
        lines.append(
            "Its probabilities are not calibrated: of answers with 0.9 more or fewer than nine in "
            "ten may be right."
        )
    return section("Limits", bullets(lines))
