"""`albert-keras convert`."""

from pathlib import Path
from typing import Annotated

import typer

from albert_keras.cli import options
from albert_keras.cli.output import show, start

#: Format -> how to go on with a folder of it.
_NEXT = {
    "albert-keras": "albert-keras finetune --from {path} --task sst-2 --data-dir glue/SST-2 --out "
    "runs/sst-2",
    "hugging-face": 'python -c "from transformers import AutoModel; '
    "AutoModel.from_pretrained('{path}')\"",
    "tf-hub": "python -c \"import tensorflow_hub; tensorflow_hub.KerasLayer('{path}')\"",
}


def convert(
    source: Annotated[
        Path,
        typer.Argument(
            metavar="SOURCE", help="Run, export, checkpoint, folder or file.", show_default=False
        ),
    ],
    target: Annotated[
        Path, typer.Argument(metavar="TARGET", help="Folder to make.", show_default=False)
    ],
    to: Annotated[
        str | None,
        options.option(
            metavar="FORMAT",
            help="albert-keras, google, google-bert, tf-hub, hugging-face, keras-nlp or tf-models.",
            default="albert-keras",
        ),
    ] = None,
    source_format: Annotated[
        str | None,
        options.option(
            "--from", metavar="FORMAT", help="Format of SOURCE, as of --to.", default="its files"
        ),
    ] = None,
    tokenizer: Annotated[
        Path | None,
        options.option(
            help="Vocabulary: a folder, *.model, vocab.txt or tokenizer.json.",
            default="the one beside the weights",
        ),
    ] = None,
    config: Annotated[
        Path | None,
        options.option(
            metavar="FILE", help="albert_config.json of a checkpoint that comes without one."
        ),
    ] = None,
    verify: Annotated[
        bool, typer.Option(help="Run source and target on random inputs and compare.")
    ] = True,
    trust_pickle: Annotated[
        bool,
        typer.Option("--trust-pickle", help="Open a pytorch_model.bin, which can run programs."),
    ] = False,
    as_json: options.Json = False,
    verbose: options.Verbose = False,
    debug: options.Debug = False,
):
    """Convert a model from or to another format, with its heads and its vocabulary.

    TARGET appears whole or not at all; nothing is overwritten. Its README.md and conversion.json
    tell where it came from.

    \b
    Example:
      albert-keras convert albert_base/ models/albert-base
      albert-keras convert albert-base-v2-hf/ models/albert-base
      albert-keras convert runs/books books-hf --to hugging-face
      albert-keras convert model.ckpt-best models/mine --config my_config.json --tokenizer spm.model
    """
    start(verbose, debug)
    from albert_keras.conversion.convert import convert as convert_model

    result = convert_model(
        source, target, to, source_format, tokenizer, config, verify, trust_pickle
    )
    show(result, _lines(result), as_json)


def _lines(result):
    from albert_keras.conversion import conversion_card

    record = result._asdict()
    vocabulary = result.vocabulary
    yield f"read `{result.source}` ({result.source_format})"
    yield f"  {conversion_card.shape_line(result.albert_config)}, {result.num_parameters:,} numbers"
    yield from (f"  {line}" for line in conversion_card.head_lines(record))
    yield f"  vocabulary: {vocabulary['sentence'] if vocabulary else 'none came along'}"
    yield f"wrote {result.path} ({result.format}), encoder {result.encoder_digest[:12]}"
    yield from (f"  {line}" for line in conversion_card.verification_lines(record))
    yield from (f"note: {note}" for note in result.notes)
    yield f"what it is: {result.path / conversion_card.CARD}"
    if result.format in _NEXT:
        tokenizer = "" if vocabulary or result.format != "albert-keras" else " --tokenizer ..."
        yield f"next: {_NEXT[result.format].format(path=result.path)}{tokenizer}"
