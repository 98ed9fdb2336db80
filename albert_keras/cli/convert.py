"""`albert-keras convert`."""

from pathlib import Path
from typing import Annotated

from typer import Option

from albert_keras.cli.command import Output, command
from albert_keras.cli.output import shell
from albert_keras.config import AlbertConfig
from albert_keras.formats.detection import OURS, detect
from albert_keras.shape import model_line
from data_pipeline.files import check_output_folder


@command()
def convert(
    given,
    source: Path,
    target: Path,
    to: Annotated[str | None, Option(metavar="FORMAT", show_default="albert-keras")] = None,
    tokenizer: Annotated[Path | None, Option(show_default="the one with the weights")] = None,
    albert_config: Path | None = None,
    pair: bool = False,
):
    """Convert a model from or to another format.

    Heads and vocabulary are converted too. TARGET is written completely or not at all, and nothing
    is overwritten. Its conversion.json describes the source.

    Examples:
      albert-keras convert albert_base/ models/albert-base
      albert-keras convert albert-base-v2-hf/ models/albert-base
      albert-keras convert runs/books books-hf --to hugging-face
      albert-keras convert model.ckpt-best models/mine --albert-config my.json --tokenizer spm.model

    Args:
      source: Run, export, name of a shipped model, hf://OWNER/NAME, checkpoint, folder or file.
      target: Output folder.
      to: Format: albert-keras, google, google-bert, hugging-face or keras-nlp.
      tokenizer: Folder, *.model, vocab.txt or tokenizer.json.
      albert_config: albert_config.json for a checkpoint without one.
      pair: The classifier or regression of SOURCE takes pairs of texts.
    """
    given["source"] = detect(source)
    check_output_folder(target, "target")
    from albert_keras.conversion.convert import convert as convert_weights

    result = convert_weights(**given)
    return Output(result, _lines(result))


def _lines(result):
    shape, vocabulary = AlbertConfig.from_dict(result.albert_config), result.vocabulary
    yield f"read `{result.source}` ({result.source_format})"
    yield (
        f"  {model_line(shape, result.num_parameters)}, hidden {shape.hidden_size}, "
        f"{shape.num_attention_heads} heads, embedding {shape.embedding_size}, {shape.hidden_act}"
    )
    yield from (f"  head {head}: converted" for head in result.heads)
    yield from (f"  head {head}: dropped, {result.format} has none" for head in result.left_heads)
    size = f"{vocabulary['pieces']:,} pieces" if vocabulary else "none found"
    yield f"  vocabulary: {size}"
    yield f"wrote {result.path} ({result.format}), encoder {result.encoder_digest[:12]}"
    if result.task is not None:
        yield f"task: {result.task}; the folder can be used for predictions like a fine-tuned run"
    elif result.format == OURS:
        command = shell("albert-keras", "finetune", "--from", result.path, "--task", "sst-2")
        yield f"next: {command} --data-dir glue/SST-2 --out runs/sst-2"
