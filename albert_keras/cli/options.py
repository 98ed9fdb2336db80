"""Options that several commands share, in one spelling."""

from pathlib import Path
from typing import Annotated

import typer


def option(*names, **words):
    """Returns a typer.Option that shows no default, or the words of `default`."""
    return typer.Option(*names, show_default=words.pop("default", False), **words)


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
Precision = Annotated[
    str | None,
    option("--precision", help="auto, float32, mixed_bfloat16 or mixed_float16.", default="auto"),
]
AccumulationSteps = Annotated[
    int | None,
    option("--accumulate", help="Parts a batch is computed in, to save memory.", default="1"),
]
Recompute = Annotated[
    bool | None,
    option("--recompute/--no-recompute", help="Compute blocks twice, to save memory."),
]
StepsPerExecution = Annotated[
    int | None,
    option(
        "--steps-per-execution",
        help="Steps between looks of the host; many on TPUs.",
        default="1",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Verbose = Annotated[bool, typer.Option("-v", "--verbose", help="Say more.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show tracebacks and all messages.")]
