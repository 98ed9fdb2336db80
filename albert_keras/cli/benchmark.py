"""`albert-keras benchmark ...`."""

from pathlib import Path

import typer

from albert_keras.cli import options
from albert_keras.cli.arguments import read_values
from albert_keras.cli.command import App, Output, command
from albert_keras.cli.options import option
from albert_keras.cli.preflight import check_records

app = App(
    help="Measure speed and memory on this machine.",
    epilog="benchmarks/README.md explains the numbers.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

SECONDS = option(2, "Seconds per contestant in each round.", min=0)


def _peers(default):
    libraries = "all, none, keras-nlp or transformers"
    return option(default, f"Library to compare with: {libraries}; may be repeated.")


@app.command()
@command()
def data(
    corpus: list[str] | None = option(
        None,
        "Text file, folder or 'glob'; may be repeated.",
        metavar="PATH",
        shown="documentation of the installed packages",
    ),
    tokenizer: Path | None = option(None, "Folder written by `vocab`.", shown="trained here"),
    vocab_size: int = option(8000, "Size of the vocabulary if it is trained here."),
    max_seq_length: int = option(512, "Tokens per record."),
    copies: list[int] = option((1, 10), "Passes over the corpus; may be repeated.", min=1),
    workers: list[int] = option((1, 2), "Number of processes; may be repeated.", min=1),
    repeats: int = options.repeats(3),
    scale_to_mb: float = option(400, "Megabytes of text for the comparison of processes.", min=0),
    corpus_format: str = options.CORPUS_FORMAT,
):
    """Measure data builds: speed, stages, processes and memory.

    \b
    Example:
      albert-keras benchmark data --corpus books/ --tokenizer tokenizer/
    """
    from albert_keras.benchmarks.data import benchmark_data, data_lines

    result = benchmark_data(
        corpus,
        tokenizer,
        vocab_size,
        max_seq_length,
        copies,
        workers,
        repeats,
        scale_to_mb,
        corpus_format,
    )
    return Output(result, data_lines(result))


@app.command()
@command()
def read(
    records: Path | None = option(None, "Folder of records.", shown="built from documentation"),
    batch_size: int = options.batch_size(32),
    steps: int = option(2000, "Batches per measurement.", min=1),
    repeats: int = options.repeats(5),
    model: str = option("albert-base", "Model whose training speed to compare with."),
    no_model: bool = option(False, "Do not compare with a model.", "--no-model"),
):
    """Measure the reader with static and dynamic masks.

    \b
    Example:
      albert-keras benchmark read --records records/
    """
    typer.echo("loading TensorFlow", err=True)
    from albert_keras.benchmarks.read import benchmark_read, read_lines

    result = benchmark_read(records, batch_size, steps, repeats, None if no_model else model)
    return Output(result, read_lines(result))


@app.command()
@command()
def infer(
    model: str = options.MODEL,
    batch_size: list[int] = option((1, 32), "Texts per batch; may be repeated.", min=1),
    max_seq_length: list[int] = option((128,), "Tokens per text; may be repeated.", min=8, max=512),
    precision: list[str] = option(
        ("float32", "bfloat16", "int8"),
        "float32, bfloat16 or int8 (weights only); may be repeated.",
    ),
    peers: list[str] = option(
        ("all",),
        "Library to compare with: all, none, keras-nlp, transformers, onnxruntime or "
        "openvino; may be repeated.",
    ),
    tokenizer: Path | None = option(
        None, "Folder written by `vocab`.", shown="trained on documentation"
    ),
    repeats: int = options.repeats(5),
    seconds: float = SECONDS,
):
    """Measure an export against other libraries.

    \b
    Example:
      albert-keras benchmark infer --batch-size 1 --max-seq-length 32 --max-seq-length 128
    """
    from albert_keras.benchmarks.infer import benchmark_infer, infer_lines

    result = benchmark_infer(
        model, batch_size, max_seq_length, precision, peers, tokenizer, repeats, seconds
    )
    return Output(result, infer_lines(result))


@app.command()
@command()
def costs(
    model: list[str] | None = option(
        None, "Named model; may be repeated.", shown="the models of the paper"
    ),
    batch_size: int = options.batch_size(1),
    max_seq_length: int = options.max_seq_length(128),
    precision: str = option("float32", options.PRECISIONS),
    memory: str | None = option(None, "Memory limit, such as 20GB.", shown="80 % of the machine"),
    repeats: int = options.repeats(1),
):
    """Measure training of ALBERT and BERT as in table 2 of the paper.

    \b
    Example:
      albert-keras benchmark costs --batch-size 1 --max-seq-length 128
    """
    from albert_keras.benchmarks.costs import MODELS, benchmark_costs, costs_lines
    from albert_keras.planning.sizes import parse_bytes

    result = benchmark_costs(
        tuple(model or MODELS),
        batch_size,
        max_seq_length,
        precision,
        repeats,
        None if memory is None else parse_bytes(memory, "--memory"),
    )
    return Output(result, costs_lines(result))


@app.command()
@command()
def train(
    model: str = options.MODEL,
    batch_size: int = options.batch_size(8),
    max_seq_length: int = options.max_seq_length(128),
    precision: list[str] = option(
        ("float32", "mixed_bfloat16"), "float32 or mixed_bfloat16; may be repeated."
    ),
    peers: list[str] = _peers(("all",)),
    repeats: int = options.repeats(5),
    seconds: float = SECONDS,
):
    """Measure a training step against other libraries.

    \b
    Example:
      albert-keras benchmark train --model albert-base --batch-size 8 --max-seq-length 128
    """
    from albert_keras.benchmarks.train import benchmark_train, train_lines

    result = benchmark_train(model, batch_size, max_seq_length, precision, peers, repeats, seconds)
    return Output(result, train_lines(result))


@app.command()
@command()
def profile(
    model: str = options.MODEL,
    batch_size: int = options.batch_size(8),
    max_seq_length: int = options.max_seq_length(128),
    precision: str = option("auto", "Precision: float32, mixed_bfloat16 or auto."),
):
    """Measure the time of each operation in a training step.

    \b
    Example:
      albert-keras benchmark profile --model albert-base --precision mixed_bfloat16
    """
    from albert_keras.benchmarks.profile import benchmark_profile, profile_lines

    result = benchmark_profile(model, batch_size, max_seq_length, precision)
    return Output(result, profile_lines(result))


@app.command()
@command()
def memory(
    model: str = options.MODEL,
    batch_size: int = options.batch_size(8),
    max_seq_length: int = options.max_seq_length(512),
    precision: str = option(
        "float32", "Precision: auto, float32, mixed_bfloat16 or mixed_float16."
    ),
    parts: int = option(4, "Number of parts of an accumulated batch.", min=1),
    repeats: int = options.repeats(1),
    peers: list[str] = _peers(("none",)),
):
    """Measure the memory of a training step and ways to save it.

    \b
    Example:
      albert-keras benchmark memory --model albert-base --batch-size 8
    """
    from albert_keras.benchmarks.memory import benchmark_memory, memory_lines

    result = benchmark_memory(model, batch_size, max_seq_length, precision, parts, repeats, peers)
    return Output(result, memory_lines(result))


@app.command()
@command(resumes=True)
def learn(
    records: Path = option(..., "Folder of training records."),
    eval_data: Path = option(..., "Folder of held-out records."),
    minutes: float = option(30, "Minutes of training per contestant, without scoring.", min=0.05),
    model: str | None = option(
        None, "Named model, such as albert-mini.", shown="the model of the recipe"
    ),
    recipe: str | None = option(
        None,
        "YAML or JSON file of our settings, or the name of a recipe.",
        metavar="FILE",
        shown="the default of pretrain",
    ),
    rounds: int = option(1, "Number of trainings per contestant, with different seeds.", min=1),
    peers: list[str] = option(
        ("transformers", "keras-nlp"),
        "Library to compare with: all, none, transformers, keras-nlp or transformers-masked; may "
        "be repeated, or separated by commas.",
    ),
    peer_lr: list[float] = option(
        (2e-4, 5e-4, 1e-3),
        "Learning rate of the peers; may be repeated, and the best one is used.",
        min=1e-9,
    ),
    peer_batch_size: int = option(32, "Sequences per update of the peers.", min=1),
    out: Path = option(
        Path("runs/benchmark-learn"),
        "Folder of the curves and results; repeat the command to run the contestants that are "
        "still missing.",
    ),
):
    """Measure the time to a held-out loss against other libraries.

    \b
    Example:
      albert-keras benchmark learn --records records/ --eval-data held-out/ --minutes 30
    """
    settings = read_values(recipe)
    check_records(records, eval_data)
    typer.echo("loading TensorFlow", err=True)
    from albert_keras.benchmarks.learn import benchmark_learn
    from albert_keras.benchmarks.learning.lines import learn_lines
    from albert_keras.training.config import PretrainingConfig

    result = benchmark_learn(
        records,
        eval_data,
        out,
        minutes,
        PretrainingConfig.of(settings, size=model),
        "default recipe" if recipe is None else Path(recipe).stem,
        rounds,
        [name.strip() for text in peers for name in text.split(",")],
        peer_lr,
        peer_batch_size,
    )
    return Output(result, learn_lines(result))
