"""What a converted model says of itself: `conversion.json` and `README.md` in its folder."""

import json
from pathlib import Path

from albert_keras.conversion.own import RECORD

#: In the folder of a converted model, beside `RECORD`.
CARD = "README.md"
_ABSENT = {
    "masked_lm": "random where pre-training goes on; fine-tuning does not need it",
    "sentence_order": "the model has none (`sentence_head=False`)",
}
HEAD_NAMES = {
    "masked_lm": "masked-LM head",
    "sentence_order": "sentence-order head",
    "classifier": "classifier",
    "spans": "span head",
    "spans_or_none": "span head with no-answer",
}


def head_lines(record):
    """Tells which heads came along, which did not, and what that means: list of str."""
    lines = [f"{HEAD_NAMES[head]}: came along" for head in record["heads"]]
    for head in record["left_heads"]:
        lines.append(f"{HEAD_NAMES[head]}: left, {record['format']} has no place for it")
    for head in record["absent_heads"]:
        meaning = _ABSENT[head]
        lines.append(f"{HEAD_NAMES[head]}: not in the source; {meaning}")
    return lines


def verification_lines(record):
    """Tells what was compared, and how large the differences are: list of str."""
    found = record["verification"]
    if found is None:
        return ["not verified (--no-verify)"]
    lines = [f"{found['equal_tensors']:,} tensors: bit-equal to those of the source"]
    return lines + [
        f"{output}: differs by {difference:.2g} at most ({found['source']}, {found['target']})"
        for output, difference in found["differences"].items()
    ]


def write_card(folder, record):
    """Writes `conversion.json` and `README.md` into the folder of a converted model.

    Args:
        folder: str or Path.
        record: dict. Plain JSON values, see `convert.ConversionResult`.
    """
    folder = Path(folder)
    text = json.dumps(record, indent=2, ensure_ascii=False) + "\n"
    (folder / RECORD).write_text(text, encoding="utf-8")
    (folder / CARD).write_text(card(record), encoding="utf-8")


def card(record):
    """Makes the card of a converted model (str, Markdown)."""
    shape = record["albert_config"]
    vocabulary = record["vocabulary"]
    library = "transformers" if record["format"] == "hugging-face" else "keras"
    kind = "BERT" if shape["sharing"] == "none" else "ALBERT"
    facts = [
        f"Source: `{Path(record['source']).name}`, format {record['source_format']}",
        f"Format: {record['format']}",
        f"Digest of the encoder's weights: `{record['encoder_digest']}`",
        f"{shape_line(shape)}, {record['num_parameters']:,} numbers",
        "Vocabulary: " + (f"{vocabulary['sentence']}" if vocabulary else "none came along"),
        *record["notes"],
    ]
    files = [f"`{name}`: `{digest}`" for name, digest in record["source_files"].items()]
    parts = (
        f"---\nlibrary_name: {library}\ntags:\n- {kind.lower()}\n---",
        f"# {kind}, converted by albert-keras",
        _bullets(facts),
        "## Heads",
        _bullets(head_lines(record) or ["none in the source"]),
        "## Verification",
        _bullets(verification_lines(record)),
        "## Files of the source (SHA-256)",
        _bullets(files),
    )
    return "\n\n".join(parts) + "\n"


def shape_line(shape):
    """Says a shape in a line (str): a dict of `albert_config.json`."""
    line = (
        f"{shape['num_hidden_layers']} layers, hidden {shape['hidden_size']}, "
        f"{shape['num_attention_heads']} heads, embedding {shape['embedding_size']}, "
        f"{shape['hidden_act']}"
    )
    return line + (", no sharing" if shape["sharing"] == "none" else "")


def _bullets(lines):
    return "\n".join(f"- {line}" for line in lines)
