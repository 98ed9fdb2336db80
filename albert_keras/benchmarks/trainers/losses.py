"""The loss of single steps, so that one sees that a contestant really trains."""


class LossLog:
    """Notes first and last loss in the facts of a contestant.

    Args:
        facts: dict. Gets `first_loss`, `last_loss` and `updates`.
    """

    def __init__(self, facts):
        self._facts = facts
        self._total = 0.0

    def add(self, loss):
        """Notes the loss of one step (float)."""
        self._facts.setdefault("first_loss", loss)
        self._facts["last_loss"] = loss
        self._facts["updates"] = self._facts.get("updates", 0) + 1

    def add_mean(self, mean):
        """Notes a step by the mean of all steps up to it, which is what Keras tells (float)."""
        updates = self._facts.get("updates", 0) + 1
        total = mean * updates
        self.add(total - self._total)
        self._total = total
