"""Makes an archive beside this file, and what is expected of it, with the packages of a release.

README.md beside it gives the commands.
"""

import csv
import io
import json
import lzma
import os
import random
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import keras

from tests.old_artifacts import LINES, measures

#: Words of the two topics that the sentences, and the table to be classified, are made of.
_PEOPLE = {
    "sea": ["sailor", "captain", "pilot", "fisherman", "diver", "smuggler", "keeper's wife"],
    "kitchen": ["baker", "cook", "waiter", "butcher", "grandmother", "pastry chef", "miller"],
}
_THINGS = {
    "sea": "boat net sail harbour anchor mast lantern compass rope seagull".split(),
    "kitchen": "bread soup oven table kettle onion pepper cheese ladle dough".split(),
}
_DEEDS = {
    "sea": ["mends", "rows past", "ties up", "paints", "watches", "drags home", "follows"],
    "kitchen": ["stirs", "slices", "warms", "carries", "tastes", "burns", "throws away"],
}
_KINDS = "old quiet proud young red small French hungry lazy famous careful brave".split()
_TIMES = (
    *("at noon", "before dawn", "in the rain", "after the feast", "on Sunday", "for 12 days"),
    *("while everybody sleeps", "with both hands", "without a word", "in March", "for £7"),
)

#: What the archive holds.
_KEPT = (
    *("tokenizer", "records", "records-roberta", "pretraining.json", "run", "run-interrupted"),
    *("train.csv", "dev.csv", "finetuned", "saved_models"),
)
#: What the archive leaves out: it is never read again, or describes the machine; and checkpoints
#: that are not the newest.
_LEFT_OUT = ("tensorboard", "features", "*.png", "step-00000006")


def sentence(draw, topic):
    """Makes a sentence about one of the two topics."""
    person, deed = draw.choice(_PEOPLE[topic]), draw.choice(_DEEDS[topic])
    thing, other = draw.sample(_THINGS[topic], 2)
    kind = draw.choice(_KINDS)
    forms = (
        f"The {kind} {person} {deed} the {thing}.",
        f"A {person} {deed} the {thing} {draw.choice(_TIMES)}.",
        f"Then the {thing} stands near the {kind} {other}.",
        f"The {person} sees the {thing}, and {deed} the {other}.",
    )
    return draw.choice(forms)


def write_texts(draw):
    """Writes `corpus.txt`, 30 documents, and the two tables of the task."""
    documents = [[sentence(draw, topic) for _ in range(8)] for topic in ("sea", "kitchen") * 15]
    text = "\n\n".join("\n".join(document) for document in documents)
    Path("corpus.txt").write_text(text + "\n", encoding="utf-8")
    for name, count in (("train.csv", 32), ("dev.csv", 12)):
        with open(name, "w", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("text", "topic"))
            for _ in range(count // 2):
                for topic in ("sea", "kitchen"):
                    writer.writerow((sentence(draw, topic), topic))


def command(*words):
    """Runs `albert-keras` with some words, as a person does."""
    from albert_keras.cli import main

    sys.argv = ["albert-keras", *words]  # what run.json keeps
    status = main(list(words))
    if status:
        raise SystemExit(f"albert-keras {' '.join(words)} ended with {status}")


def make_all():
    """Makes everything in the current folder; returns what is expected of it."""
    from albert_keras import pretrain
    from albert_keras.training.config import PretrainingConfig

    write_texts(random.Random(3))
    Path("pretraining.json").write_text(json.dumps(measures.PRETRAINING, indent=2) + "\n")
    corpus = ("--corpus", "corpus.txt", "--format", "sentences")
    command("vocab", *corpus, "--size", "160", "--out", "tokenizer")
    build = ("data", "build", *corpus, "--tokenizer", "tokenizer")
    build += ("--max-seq-length", "32", "--workers", "1")
    command(*build, "--num-shards", "2", "--out", "records")
    unmasked = ("--preset", "roberta", "--num-shards", "1", "--out", "records-roberta")
    command(*build, *unmasked)

    sys.argv = ["albert-keras", *measures.PRETRAIN, "run-interrupted"]
    pretrain("records", "run-interrupted", PretrainingConfig(**measures.PRETRAINING), max_steps=4)
    command(*measures.PRETRAIN, "run")
    log = [json.loads(line) for line in Path("run/log.jsonl").read_text().splitlines()]
    command("export", "--run", "run", "--out", "saved_models/old")
    command(*measures.FINETUNE)
    command("export", "--run", "finetuned", "--out", "saved_models/old-topics")
    results = json.loads(Path("finetuned/results.json").read_text())
    shutil.copytree("run", "run-scored")  # scores are added to the log
    return {
        "tokenizer": measures.of_tokenizer("tokenizer"),
        "records": measures.of_records("records"),
        "records-roberta": measures.of_records("records-roberta"),
        "log": measures.of_log(log),
        "checkpoint": measures.of_checkpoint("run/checkpoints/step-00000008/model.ckpt"),
        "evaluation": measures.of_evaluation("run-scored", "records", allow_trained_rows=True),
        "keras": measures.of_keras_model("saved_models/old/model-1.keras"),
        "export": measures.of_pretrained_export("saved_models/old"),
        "scores": results["seeds"][0]["scores"],
        "best_step": results["seeds"][0]["best_step"],
        "task_evaluation": measures.of_task_evaluation("finetuned", "dev.csv"),
        "answers": measures.of_finetuned_run("finetuned"),
        "exported_answers": measures.of_finetuned_export("saved_models/old-topics"),
    }


def pack(archive, names):
    """Packs files and folders into a `.tar.xz` whose bytes depend on their contents alone.

    XZ finds that most files are there several times, such as tokenizers; gzip does not look that
    far back.
    """
    paths = [Path(name) for name in names]
    paths += [below for path in paths if path.is_dir() for below in path.rglob("*")]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for path in sorted(paths):
            if any(part.match(pattern) for part in (path, *path.parents) for pattern in _LEFT_OUT):
                continue
            member = tarfile.TarInfo(path.as_posix())
            if path.is_dir():
                member.type, member.mode = tarfile.DIRTYPE, 0o755
                tar.addfile(member)
            else:
                contents = path.read_bytes()
                member.size = len(contents)
                tar.addfile(member, io.BytesIO(contents))
    archive.write_bytes(lzma.compress(buffer.getvalue(), preset=9 | lzma.PRESET_EXTREME))


def main():
    """Writes the archive of the Keras that is installed, and what is expected of it."""
    out = Path(__file__).parent.absolute()
    [line] = [name for name in LINES if keras.__version__.startswith(name.removeprefix("keras-"))]
    scratch = Path(tempfile.gettempdir(), "albert-keras-1.0.0")  # named in the files
    scratch.mkdir()
    try:
        os.chdir(scratch)
        expected = make_all()
        pack(out / f"{line}.tar.xz", _KEPT)
    finally:
        os.chdir(out)
        shutil.rmtree(scratch)
    text = json.dumps(expected, indent=1, ensure_ascii=False)
    (out / f"{line}.json").write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
