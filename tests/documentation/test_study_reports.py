"""The reports in docs/studies/, which `albert-keras runs study` wrote."""

import csv
import re

import pytest

from tests.documentation.code_blocks import ROOT

REPORTS = sorted((ROOT / "docs" / "studies").iterdir())
LARGEST_PICTURE = 150_000  # bytes


@pytest.mark.parametrize("folder", REPORTS, ids=lambda folder: folder.name)
def test_a_report_is_complete_and_linked(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {"report.md", "summary.csv", "scores.csv", "scores.png", "curves.png"}
    text = (folder / "report.md").read_text(encoding="utf-8")
    assert "Not finished yet" not in text and "2 seeds" in text
    assert all(path.stat().st_size < LARGEST_PICTURE for path in folder.glob("*.png"))
    page = (ROOT / "docs" / "studies.md").read_text(encoding="utf-8")
    assert f"(studies/{folder.name}/report.md)" in page
    with open(folder / "scores.csv", encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["seed"] for row in rows} == {"1", "2"} and {row["trained_on"] for row in rows} == {
        "0"
    }


@pytest.mark.parametrize("folder", REPORTS, ids=lambda folder: folder.name)
def test_a_report_names_no_folder_of_a_machine(folder):
    for path in folder.iterdir():
        if path.suffix != ".png":
            text = path.read_text(encoding="utf-8")
            assert not re.search(r"(^|[\s`\",])/(tmp|home|root|work|mnt|Users)/", text), path


def test_there_are_reports():
    assert "sentence-task" in {folder.name for folder in REPORTS}
