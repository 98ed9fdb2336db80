"""The README is read in one sitting, and leads to an answer with few commands."""

from tests.documentation.code_blocks import ROOT, blocks_of, command_lines

README = ROOT / "README.md"


def test_it_has_at_most_150_lines():
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 150


def test_six_commands_lead_from_a_clone_to_an_answer_over_http():
    lines = README.read_text(encoding="utf-8").splitlines()
    start = lines.index("## From a clone to an answer over HTTP")
    end = lines.index("## Documentation")
    blocks = [block for block in blocks_of(README) if start < block.line <= end]
    commands = [line for block in blocks for line in command_lines(block)]
    assert commands[0] == "make demo" and commands[-1].startswith("curl ")
    assert len(commands) <= 6
