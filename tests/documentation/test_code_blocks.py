"""What pages say exists: languages, commands, options, targets of make, files, folders.

`test_pages_run.py` executes them.
"""

import ast
import re

import pytest
import typer
import yaml

import albert_keras
import data_pipeline
from albert_keras.cli import app
from albert_keras.training.config import PretrainingConfig
from data_pipeline.errors import InputError
from tests.documentation.code_blocks import (
    ALL_BLOCKS,
    LANGUAGES,
    PAGES,
    REASONS,
    ROOT,
    albert_keras_commands,
    command_lines,
)

#: Options of other programs that the text mentions.
_FOREIGN = {
    *("--direct_num_workers", "--direct_running_mode", "--force-reinstall", "--master"),
    *("--no-deps", "--rest_api_port", "--sdk_container_image", "--upgrade", "--upgrade-package"),
    "--peers",  # of the benchmarks
}
COMMANDS = [
    (block, arguments)
    for block in ALL_BLOCKS
    for line in command_lines(block)
    for arguments in albert_keras_commands(line)
]


_ROOT_COMMAND = typer.main.get_command(app)


def prose_of(page):
    """Returns the text of a page without its code blocks."""
    text = page.read_text(encoding="utf-8")
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def every_command(command=_ROOT_COMMAND, name=""):
    """Yields the name and the command of each command and group: "", "doctor", "data build"."""
    yield name, command
    for word, inner in getattr(command, "commands", {}).items():
        yield from every_command(inner, f"{name} {word}".strip())


@pytest.mark.parametrize("block", ALL_BLOCKS, ids=str)
def test_a_block_has_a_language_and_a_known_reason_not_to_run(block):
    assert block.language in LANGUAGES, f"the language must be one of {list(LANGUAGES)}"
    assert not block.reason or block.reason in REASONS
    if block.language == "console":
        assert re.search(r"^\$ ", block.text, re.MULTILINE)
    if block.language == "python":
        ast.parse(block.text)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_all_code_is_fenced(page):
    """An indented block would have no language, so that nothing would check it."""
    text = prose_of(page)
    assert not re.findall(r"(?<=\n\n)    (?=\S).*", text)
    assert not re.findall(r"^#+[^#\s].*", text, re.MULTILINE), "MkDocs reads it as a heading"


@pytest.mark.parametrize("block, arguments", COMMANDS, ids=lambda value: str(value)[:60])
def test_commands_and_their_options_exist(block, arguments):
    command, words = _ROOT_COMMAND, list(arguments)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    assert command is not _ROOT_COMMAND, f"{block}: no such command: {arguments}"
    command.make_context(command.name, words)


def test_options_in_the_text_exist():
    known = {"--help", *_FOREIGN}
    for one in (one for _, command in every_command() for one in command.params):
        known |= {*one.opts, *one.secondary_opts}
    scripts = [ROOT / "tests" / "tpu_check" / "__main__.py", *ROOT.glob("docs/studies/*.py")]
    for script in scripts:
        known |= set(re.findall(r"\"(--[a-z-]+)\"", script.read_text(encoding="utf-8")))
    unknown = {}
    for page in PAGES:
        for code in re.findall(r"`([^`]+)`", prose_of(page)):
            for name in re.findall(r"(?<![\w-])--[a-z][\w-]*", code):
                if name not in known:
                    unknown.setdefault(name, set()).add(page.name)
    assert not unknown


def test_targets_of_make_exist():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z-]+):", makefile, re.MULTILINE))
    named = {
        name
        for page in PAGES
        for name in re.findall(r"(?:^|`)make ([a-z-]+)", page.read_text(), re.MULTILINE)
    }
    assert named <= targets


def test_settings_are_known():
    for block in ALL_BLOCKS:
        if block.language == "yaml":
            values = yaml.safe_load(block.text)
            if "training" in values or "model" in values:
                try:
                    PretrainingConfig(**values)
                except InputError as error:
                    pytest.fail(f"{block}: {error}")


def test_the_readme_has_at_most_900_words_and_six_commands_lead_to_an_answer_over_http():
    readme = ROOT / "README.md"
    assert len(readme.read_text(encoding="utf-8").split()) <= 900
    lines = readme.read_text(encoding="utf-8").splitlines()
    start = lines.index("## From a clone to an answer over HTTP")
    end = lines.index("## Documentation")
    blocks = [block for block in ALL_BLOCKS if block.page == readme and start < block.line <= end]
    commands = [line for block in blocks for line in command_lines(block)]
    assert commands[0] == "make demo" and commands[-1].startswith("curl ") and len(commands) <= 6


def test_the_readme_begins_with_an_answer_a_fine_tuning_and_a_pre_training():
    readme = ROOT / "README.md"
    first = [block for block in ALL_BLOCKS if block.page == readme and block.line < 55]
    called = [
        arguments[0]
        for block in first
        for line in command_lines(block)
        for arguments in albert_keras_commands(line)
    ]
    assert {"predict", "finetune", "pretrain"} <= set(called)
    assert "| a pre-training |" in "".join(readme.read_text(encoding="utf-8").splitlines()[:62])


def test_figures_of_the_readme_stand_where_they_were_measured():
    pages = ("measured", "answers", "finetuning")
    names = [f"docs/{name}.md" for name in pages] + ["saved_models/albert-mini-en/README.md"]
    measured = "".join((ROOT / name).read_text(encoding="utf-8") for name in names)
    known = [float(number) for number in re.findall(r"\d+\.\d+", measured)]
    text = prose_of(ROOT / "README.md")
    start, end = text.index("**Why.**"), text.index("## From a clone")
    figures = re.findall(r"[\d.]+(?= (?:times|% of|and|GB of)|\s+%)", text[start:end])
    assert len(figures) >= 8
    for figure in figures:
        digits = len(figure.partition(".")[2])
        found = {round(value, digits) for one in known for value in (one, 100 * one)}
        assert float(figure) in found, figure


def test_all_pages_together_have_at_most_27_000_words():
    """A page that grows is a reason to shorten another one."""
    pages = [*PAGES, ROOT / "CHANGELOG.md"]
    assert sum(len(page.read_text(encoding="utf-8").split()) for page in pages) <= 27_000


def test_what_comes_from_other_libraries_has_a_call_that_runs():
    page = ROOT / "docs" / "coming-from.md"
    code = "".join(block.text for block in ALL_BLOCKS if block.page == page and not block.reason)
    rows = re.findall(r"^\|.*\|(.*)\|$", prose_of(page), re.MULTILINE)[2:]
    names = [name for row in rows for name in re.findall(r"`([\w.]+)`", row)]
    assert len(rows) >= 9 and [name for name in names if name not in code] == []


def test_what_is_public_is_listed():
    page = (ROOT / "docs" / "public.md").read_text(encoding="utf-8")
    listed = set(re.findall(r"`([\w .-]+)`", page))
    assert listed >= {*albert_keras.__all__, *data_pipeline.__all__}
    assert listed >= {name for name, one in every_command() if name and one.callback and one.params}


@pytest.mark.parametrize("page", PAGES, ids=str)
def test_links_lead_to_files_and_sections(page):
    for link, section in re.findall(r"\]\((?!https?:)([^)#]*)#?([^)]*)\)", prose_of(page)):
        target = page.parent / link if link else page
        assert target.exists(), link
        if section:
            titles = re.findall(r"^#+ (.*)", prose_of(target), re.M)
            words = [re.sub(r"[^\w\s-]", "", title).lower().split() for title in titles]
            assert section in {"-".join(one) for one in words}, f"{link}#{section}"


def test_the_tour_names_files_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tour = text[text.index("## A tour") : text.index("## How the code is written")]
    stems = {path.name for path in ROOT.glob("*_*/**/*.py")}
    for name in re.findall(r"`([\w/]+\.py)`", tour):
        folders = [ROOT, ROOT / "albert_keras", ROOT / "data_pipeline"]
        assert any((folder / name).is_file() for folder in folders) or name in stems, name


def test_the_tree_names_folders_that_exist():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    tree = text[text.index("## The tree") :].split("```")[1]
    parents = {}
    for line in tree.splitlines():
        for name in re.findall(r"^ *((?:[\w./]+/ ?)+)(?:  |$)", line):
            depth = (len(line) - len(line.lstrip())) // 4
            for part in name.split():
                folder = (ROOT if depth == 0 else parents[depth - 1]) / part
                assert folder.is_dir(), folder
            parents[depth] = folder
