"""`albert-keras card`."""

from pathlib import Path

from albert_keras.cli.command import Output, command
from albert_keras.cli.options import argument


@command()
def card(
    model: Path = argument(..., "Folder of an exported model, with its versions."),
):
    """Write the model card of an export again, for example after a change of its card.yaml.

    The card, README.md, describes the versions of the model. Facts that cannot be determined
    automatically, such as licences, are read from card.yaml in the same folder; see docs/export.md.

    \b
    Example:
      albert-keras card saved_models/books
    """
    from albert_keras.serving.export.card_facts import FACTS
    from albert_keras.serving.export.model_card import write_model_card

    write_model_card(model)
    has_facts = (model / FACTS).is_file()
    facts = f"with the facts of {FACTS}" if has_facts else f"without facts: there is no {FACTS}"
    path = model / "README.md"
    return Output({"path": path, "has_facts": has_facts}, [f"{path}, {facts}"])
