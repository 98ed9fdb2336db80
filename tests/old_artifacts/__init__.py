"""What 1.0.0 wrote, see README.md."""

import tarfile
from pathlib import Path

#: Archives of the two lines of Keras, `<name>.tar.xz` beside this file.
LINES = ("keras-2", "keras-3")


def unpack(folder, name="", line=LINES[0]):
    """Unpacks what a line of Keras wrote into a folder, or what has a name; returns its path."""
    with tarfile.open(Path(__file__).with_name(f"{line}.tar.xz")) as archive:
        members = archive.getmembers()
        if name:
            members = [one for one in members if f"{one.name}/".startswith(f"{name}/")]
        archive.extractall(folder, members, filter="data")
    return Path(folder, name)
