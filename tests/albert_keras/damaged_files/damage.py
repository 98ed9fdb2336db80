"""Damages the content of a file: flipped bits, cuts, hostile words, and hostile values in JSON."""

import contextlib
import io
import json
import zipfile

#: What replaces a value in JSON.
_VALUES = (None, True, -1, 0, 1e30, 10**30, 2**31, 2**63, "", "x" * 10_000, "\0", "/dev/zero")
_VALUES += ("../../x", [], [[]], [None], {}, {"a": {}}, float("nan"), float("inf"), 0.5)
#: What is put into any file.
_WORDS = (
    b"[" * 3_000,
    b"1e30",
    b"-1",
    b"9" * 5000,
    b"null",
    b"NaN",
    b'{"a": {}}',
    b"\xff",
    b"\0",
)
_WORDS += (b"\n", b"\t", b'"', b"<doc ", b"&a [*a]", b"!!binary x", b"\xed\xa0\x80", b"\r")
_LENGTH = 8  # bytes of the number in front of the header of a safetensors file


def damaged(content: bytes, rng) -> bytes:
    """Returns the content of a file with some damage; `rng` is a np.random.Generator.

    Half of the damage keeps the structure of the file: archives, JSON, JSON in front of tensors,
    and lines of JSON stay valid, so that what they contain is read.
    """
    if not content:
        return bytes(rng.integers(256, size=20, dtype="uint8"))
    if rng.integers(2):
        for change in (_in_archive, _in_header, _in_json, _in_line):
            with contextlib.suppress(ValueError, RecursionError, zipfile.BadZipFile):
                return change(content, rng)
    return _any_damage(content, rng)


def _any_damage(content, rng):
    kind = rng.integers(5)
    begin, end = sorted(int(place) for place in rng.integers(len(content) + 1, size=2))
    if kind == 0:
        changed = bytearray(content)
        for place in rng.integers(len(content), size=int(rng.integers(1, 9))):
            changed[place] ^= 1 << int(rng.integers(8))
        return bytes(changed)
    if kind == 1:
        return content[:begin]
    if kind == 2:
        return content[:begin] + content[end:]
    if kind == 3:
        return content[:end] + content[begin:]
    word = _WORDS[rng.integers(len(_WORDS))]
    return content[:begin] + word + content[begin + int(rng.integers(2)) :]


def _in_archive(content, rng):
    if not content.startswith(b"PK"):
        raise ValueError("no archive")
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    name = sorted(members)[rng.integers(len(members))]
    members[name] = damaged(members[name], rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, member in members.items():
            archive.writestr(name, member)
    return packed.getvalue()


def _in_header(content, rng):
    end = _LENGTH + int.from_bytes(content[:_LENGTH], "little")
    if not _LENGTH < end <= len(content):
        raise ValueError("no header")
    header = _in_json(content[_LENGTH:end], rng)
    return len(header).to_bytes(_LENGTH, "little") + header + content[end:]


def _in_json(content, rng):
    value = json.loads(content)
    places = list(_places(value))
    if not places:
        raise ValueError("no object or list")
    parent, key = places[rng.integers(len(places))]
    if isinstance(parent, dict) and not rng.integers(8):
        del parent[key]
    else:
        parent[key] = _VALUES[rng.integers(len(_VALUES))]
    return json.dumps(value, indent=2).encode()


def _in_line(content, rng):
    lines = content.split(b"\n")
    number = rng.integers(len(lines))
    lines[number] = json.dumps(json.loads(_in_json(lines[number], rng))).encode()
    return b"\n".join(lines)


def _places(value):
    """Yields (object or list, key) of each value in JSON."""
    waiting = [value]
    while waiting:
        parent = waiting.pop()
        if isinstance(parent, dict | list):
            for key in parent if isinstance(parent, dict) else range(len(parent)):
                yield parent, key
                waiting.append(parent[key])
