"""What an examination found."""

from typing import NamedTuple

#: States of a finding. Only a fault keeps the program from working.
OK, WARNING, FAULT = "ok", "warning", "fault"

#: How each state is marked at the start of a line.
_MARKS = {OK: "✔", WARNING: "⚠", FAULT: "✘"}


class Finding(NamedTuple):
    """One property of the machine."""

    topic: str  # one or two words, such as "disk"
    state: str  # OK, WARNING or FAULT
    text: str  # a sentence or a list of facts
    fix: str | None = None  # a command, or what to do; None if there is nothing to fix

    def lines(self) -> list[str]:
        """Returns the finding as text, the fix on a line of its own."""
        shown = [f"{_MARKS[self.state]} {self.topic:<11}  {self.text}"]
        return shown if self.fix is None else [*shown, f"{'':13}  fix: {self.fix}"]
