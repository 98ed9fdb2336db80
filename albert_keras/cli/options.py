"""Options that several commands share, in one spelling."""

from pathlib import Path
from typing import Annotated

import typer

Corpus = Annotated[
    list[str],
    typer.Option(
        "--corpus",
        metavar="PATH",
        help="Text file, folder or 'glob'; may be repeated.",
        show_default=False,
    ),
]
CorpusFormat = Annotated[
    str,
    typer.Option(
        "--format",
        help="auto, prose, sentences (one per line), jsonl or wikiextractor.",
    ),
]
ConfigFile = Annotated[
    Path | None,
    typer.Option(
        "--config",
        metavar="FILE",
        help="YAML or JSON settings, or the name of a recipe.",
        show_default=False,
    ),
]
Set = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="KEY=VALUE",
        help="One setting, by its dotted key; may be repeated.",
        show_default=False,
    ),
]
Seed = Annotated[
    int | None, typer.Option("--seed", help="Decides all that is random.", show_default=False)
]
Strategy = Annotated[
    str | None,
    typer.Option(
        "--strategy", help="auto, tpu, mirrored, multiworker or single.", show_default="auto"
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and all messages.")]
