"""What writer and reader of an export agree on; light, so that mistakes are answered at once."""

import re
from pathlib import Path

#: What a user types where a piece is to be filled in; only `fill_mask` takes it for more than text.
MASK_LITERAL = "[MASK]"
#: Candidates for each [MASK].
TOP_K = 10


def versions(folder):
    """Lists the versions of an exported model, ascending.

    Args:
        folder: str or Path. Folder of the name; `tensorflow_model_server`'s base path.

    Returns:
        list of int.
    """
    folder = Path(folder)
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    return sorted(int(name) for name in names if re.fullmatch(r"[1-9]\d*", name))
