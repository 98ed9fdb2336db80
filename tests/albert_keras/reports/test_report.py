"""The page of a run: complete, without external resources, and with every text escaped."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from albert_keras.cli import main
from albert_keras.reports.page import write_report
from albert_keras.runs.learned_context import context_verdict
from albert_keras.tasks.metrics import Interval
from albert_keras.tasks.results import read_results, save_results

_EMPTY_TAGS = {"meta", "img"}


class Page(HTMLParser):
    """Checks that elements are nested, and collects the text and the addresses of a page."""

    def __init__(self, path):
        super().__init__()
        self.source = Path(path).read_text(encoding="utf-8")
        self.open, self.words, self.addresses, self.tags = [], [], [], []
        self.feed(self.source)
        assert self.open == []
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.addresses += [value for name, value in attrs if name in ("src", "href")]
        if tag not in _EMPTY_TAGS:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in _EMPTY_TAGS:
            self.open.pop()

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open[-1:] != ["style"]:
            self.words.append(data)


def test_the_page_of_a_pretraining(folder, capsys):
    log = folder / "a" / "log.jsonl"
    evaluation = {
        "masked_lm_accuracy": 0.25,
        "masked_lm_loss": 4.5,
        "unigram_accuracy": 0.07,
        "unigram_guess": "<b>",
        "num_records": 1234,
        "num_predictions": 9000,
        "overlap": {"rows": 1234, "normalised": 3, "is_estimate": False},
    }
    with open(log, "a") as lines:
        lines.write(json.dumps({"step": 12, "loss": None, "skipped": 3}) + "\n")
        lines.write(json.dumps({"step": 12, "evaluation": evaluation}) + "\n")
    assert main(["runs", "report", f"{folder}/a"]) == 0
    path = folder / "a" / "report.html"
    assert f"report: {path}" in capsys.readouterr().out
    page = Page(path)
    (curves,) = page.addresses
    assert curves.startswith("data:image/png;base64,") and not re.search(
        r"https?://|@import|url\(", page.source
    )
    assert "prefers-color-scheme: dark" in page.source and "<b>" not in page.source
    for part in (
        "The run is not complete: step 12 of 20.",
        "3 updates of a skipped",
        "3 of 1,234 records were trained on",
        "Step 12 on 1,234 records",
        "masked LM, this model 25.00 % 4.500",
        "always guessing `<b>` 7.00 %",
        "training.steps 20",
        "fingerprint ab path records",
    ):
        assert part in page.text, part
    assert "optimizer.lr 0.001" in page.text


def test_the_page_of_a_finetuning(folder):
    tuned = folder / "tuned"
    result = read_results(tuned)
    baselines = {"most frequent answer": {"dev": {"accuracy": 0.9}}}
    leads = {"most frequent answer": Interval(-0.2, 0.1)}
    seeds = tuple(seed._replace(leads=leads) for seed in result.seeds)
    files = {"dev": {"errors": "elsewhere/errors.tsv"}}
    save_results(tuned, result._replace(seeds=seeds, baselines=baselines, files=files))
    (tuned / "errors.tsv").write_text(
        "id\tconfidence\ttruth\tanswer\ttext\n7\t0.99\t1\t0\ta <script>bad</script> film\n"
    )
    (tuned / "confusion.png").write_bytes(b"png")
    page = Page(write_report(tuned))
    first, second, confusion = page.addresses  # the curves of both seeds
    assert len(first) > 10_000 < len(second) and confusion == "data:image/png;base64,cG5n"
    assert "script" not in page.tags
    for part in (
        "this model, median (standard deviation 0.035) 0.825",
        "most frequent answer 0.900 -0.075 [-0.175, +0.125]",
        "undecided: accuracy 0.825 versus 0.900 of the most frequent answer",
        "1 of 1 wrong answers of dev",
        "7 0.99 1 0 a <script>bad</script> film",
    ):
        assert part in page.text, part


@pytest.mark.parametrize(
    "accuracy, bigram, says",
    [
        (0.138, 0.164, "not worth using yet: no better than the bigram model: accuracy 13.8 % "),
        (0.05, None, "not worth using yet: no better than always guessing `the`: accuracy 5.0 % "),
        (0.2, 0.164, "context was learned: better than the bigram model: accuracy 20.0 % versus"),
        (0.2, None, "better than always guessing `the`: accuracy 20.0 % versus 7.0 % on 9,000"),
    ],
)
def test_a_pretraining_is_compared_with_counting(accuracy, bigram, says):
    scores = {
        "masked_lm_accuracy": accuracy,
        "unigram_accuracy": 0.07,
        "unigram_guess": "the",
        "num_predictions": 9000,
        "baselines": bigram and {"bigram": {"masked_lm_accuracy": bigram}},
    }
    is_better, sentence = context_verdict(scores)
    assert sentence.startswith(says) and is_better == (accuracy == 0.2)


def test_a_run_that_is_damaged_has_no_page(folder, capsys):
    (folder / "a" / "run.json").write_text("{")
    assert main(["runs", "report", str(folder / "a")]) == 2
    assert "run.json` is damaged" in capsys.readouterr().err
    assert not (folder / "a" / "report.html").exists()
