"""Commands and options of earlier versions: each answers with what replaces it, exit code 2."""

import re

from data_pipeline.errors import InputError

#: What was removed, as it was typed after `albert-keras`: a sentence that names its replacement.
#: An option follows its command; `|` separates several options of one command, and one of the
#: values of an option follows it, as in `finetune --objective unsupervised`.
_REMOVED = """
analyze convergence: Use `albert-keras analyze layers --depth N`.
analyze similarity: Use `albert-keras analyze layers`.
analyze attention: docs/analysis.md has the lines of Python; `albert-keras serve` draws the
  attention within a text.
analyze embeddings: docs/analysis.md has the lines of Python.
benchmark: Run `python -m tests.benchmarks` in a clone of the repository.
score: Use `albert-keras evaluate --predictions FILE --task TASK --data FILE`.
finetune --head|--lstm-units: The head on a frozen encoder is a linear layer.
distill --cache-teacher: The teacher runs in each step.
distill --top-k: The whole vocabulary of the teacher is compared.
finetune --objective unsupervised: Training on texts alone did not help: give pairs.
finetune --exit-heads, evaluate --exit-at-confidence, export --exit-at-confidence: `albert-keras
  distill` trains a smaller model, which answers faster.
evaluate --all-seeds, predict --all-seeds|--with: A fine-tuning answers with its best seed;
  results.json has the scores of all seeds.
finetune --delimiter, evaluate --delimiter, predict --delimiter, data check --delimiter, distill
  --delimiter: It is detected, from the names of the columns as well.
finetune --cache: Nothing is stored: texts are encoded when a training starts.
data check --figure, data inspect --figure: `--json` has the numbers.
data adopt --max-seq-length|--max-predictions-per-seq: The first record shows the lengths.
data adopt --pattern: Name the files `*.tfrecord`, and put them into one folder.
card: Use `albert-keras export --card --out FOLDER`.
config: Each command reports all problems of its --config FILE before it starts; `albert-keras
  pretrain --dry-run` also tries the run.
explain: docs/errors.md explains the numbers of errors.
study: Use `albert-keras runs study`.
plan --table: docs/costs.md has the table.
plan --size|--batch|--steps|--max-seq-length|--attention|--recompute|--devices|--precision|--mfu:
  The plan chooses the model; `albert-keras pretrain --dry-run` measures what one of your choice
  needs, and docs/costs.md has the formula.
plan --device|--memory: The plan is for the CPU of this machine; `albert-keras pretrain --dry-run`
  measures memory and time on another device.
plan --measure: A CPU is measured unless `--tflops` is given.
plan --config-out: Use `--out FILE`; the default is plan.yaml.
plan --bytes-per-piece|--bytes-per-token: Tokens are counted in a sample of the text.
report: Use `albert-keras runs report RUN`.
runs plot: `albert-keras runs report RUN` draws the curves of a run; `tensorboard --logdir FOLDER`
  draws those of several.
runs remove: Remove its folder, `rm -r RUN`.
similar --text-column|--id-column: Embed the table first, `albert-keras embed --file TABLE`.
init --preset: Use `albert-keras init data --config PRESET`.
init --data|--tokenizer: `albert-keras finetune` and `pretrain` adapt to their data themselves;
  `data check --task` counts labels and tokens.
init --size|--student|--steps|--batch-size|--lr|--task|--train|--dev: Use `--set KEY=VALUE`, such
  as `--set model.size=albert-mini`.
convert --from: The format of SOURCE is recognized by its files.
convert --no-verify: The tensors that are written are always compared with the source.
convert --trust-pickle: Save the weights as model.safetensors: docs/interop.md has the line of
  Python.
export --keep: A version is a folder and a .keras file: remove those that you do not need.
export --eval-data: Answer held-out examples by `albert-keras predict EXPORT --file FILE`.
export --encode-layers: Use `albert-keras embed --layers`.
serve --requests-per-second|--burst: The local server is for one user; put your own proxy in front
  of it.
serve --computed-at-once: Two requests are computed at a time.
serve --rows: A request has at most 64 texts.
serve-check --grpc: Use --rest.
serve-check --feature: The features are text and pair, those of our exports.
serve-check --label: Labels are not checked.
serve-check --clients|--requests|--texts: Measure speed with a load tool such as wrk.
server-kit --latest|--specific|--label: Edit models.config in the kit; its README.md says how. A
  kit of the folder of one version serves that version.
server-kit --grpc-port|--proxy-port: The kit publishes REST, --rest-port; see the documentation of
  TensorFlow Serving for the rest.
"""


def _entries(listing):
    """Yields (a removed command or option, its replacement)."""
    for line in listing.strip().replace("\n  ", " ").splitlines():
        names, _, text = line.partition(": ")
        for words in names.split(", "):
            command, *options = re.split(r" (?=--)|\|", words)
            yield from ((f"{command} {option}", text) for option in options)
            if not options:
                yield command, text


REMOVED = dict(_entries(_REMOVED))


def check_command(path: str, name: str) -> None:
    """Raises InputError if a command was removed; `path` has the commands before it."""
    _refuse([*path.split()[1:], name])


def check_options(path: str, words: list[str]) -> None:
    """Raises InputError if the words after the commands `path` have an option that was removed.

    A value of an option may have been removed as well, as `--name value` or `--name=value`.
    """
    commands = path.split()[1:]
    flat = [part for word in words for part in word.split("=", 1)]
    for position, word in enumerate(flat):
        if word.startswith("-"):
            _refuse([*commands, word])
            _refuse([*commands, *flat[position : position + 2]])


def _refuse(words):
    old = " ".join(words)
    if old in REMOVED:
        raise InputError(f"`albert-keras {old}` was removed. {REMOVED[old]}")
