"""The record of a conversion: `conversion.json` and `README.md` in the folder of the result."""

from pathlib import Path

from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import CONVERSION_RECORD
from albert_keras.models.weight_count import family_name, model_line
from data_pipeline.files import write_json

#: In the folder of a converted model, beside `RECORD`.
CARD = "README.md"
HEAD_NAMES = {
    "masked_lm": "masked-LM head",
    "sentence_order": "sentence-order head",
    "classifier": "classifier",
    "spans": "span head",
    "spans_or_none": "span head with no-answer",
}
_ABSENT = {
    "masked_lm": "initialized randomly if pre-training continues; fine-tuning does not need it",
    "sentence_order": "the model has none (`sentence_head=False`)",
}


def shape_line(record: dict) -> str:
    """Returns what a converted model is, from its `albert_config` and `num_parameters`."""
    shape = AlbertConfig.from_dict(record["albert_config"])
    return (
        f"{model_line(shape, record['num_parameters'])}, hidden {shape.hidden_size}, "
        f"{shape.num_attention_heads} heads, embedding {shape.embedding_size}, {shape.hidden_act}"
    )


def head_lines(record: dict) -> list[str]:
    """Returns a line for each head that says whether it was converted, or why not."""
    names, target = HEAD_NAMES, record["format"]
    lines = [f"{names[head]}: converted" for head in record["heads"]]
    lines += [f"{names[head]}: dropped, {target} has none" for head in record["left_heads"]]
    absent = record["absent_heads"]
    return lines + [f"{names[head]}: not in the source; {_ABSENT[head]}" for head in absent]


def verification_lines(record: dict) -> list[str]:
    """Returns what was compared, and the largest differences."""
    found = record["verification"]
    if found is None:
        return ["not verified (--no-verify)"]
    lines = [f"{found['equal_tensors']:,} tensors: bit-equal to the tensors of the source"]
    if not found["differences"]:
        return [
            *lines,
            "outputs: not compared; this needs a model of Hugging Face, and transformers",
        ]
    return lines + [
        f"{output}: differs by {difference:.2g} at most ({found['source']}, {found['target']})"
        for output, difference in found["differences"].items()
    ]


def write_card(folder: Path, record: dict):
    """Writes the record (see `convert.ConversionResult`) as JSON and as a model card."""
    write_json(folder / CONVERSION_RECORD, record, ensure_ascii=False)
    shape, vocabulary = AlbertConfig.from_dict(record["albert_config"]), record["vocabulary"]
    library = "transformers" if record["format"] == "hugging-face" else "keras"
    is_roformer = shape.position_embedding == "rotary" and shape.sharing == "none"
    kind = "RoFormer" if is_roformer else family_name(shape)
    sections = {
        f"# {kind}, converted by albert-keras": [
            f"Source: `{Path(record['source']).name}`, format {record['source_format']}",
            f"Format: {record['format']}",
            f"Digest of the encoder's weights: `{record['encoder_digest']}`",
            shape_line(record),
            "Vocabulary: " + (vocabulary["sentence"] if vocabulary else "none in the source"),
            *record["notes"],
        ],
        "## Heads": head_lines(record) or ["none in the source"],
        "## Verification": verification_lines(record),
        "## Files of the source (SHA-256)": [
            f"`{name}`: `{digest}`" for name, digest in record["source_files"].items()
        ],
    }
    text = f"---\nlibrary_name: {library}\ntags:\n- {kind.lower()}\n---\n"
    for title, lines in sections.items():
        text += f"\n{title}\n\n" + "".join(f"- {line}\n" for line in lines)
    (folder / CARD).write_text(text, encoding="utf-8")
