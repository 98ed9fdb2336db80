"""Reads the docstrings and settings of the sources as the reference shows them.

Griffe reads the sources for mkdocstrings and calls this extension.
"""

import ast
import re

import griffe

#: `lower_case, strip_accents: Text.` in a docstring, with the indented lines that continue it.
_GROUP = re.compile(r"^( +)(\w+(?:, \w+)+):((?: .*)?(?:\n\1 +.*)*)$", re.MULTILINE)


#: `Example:` and the indented code below it.
_EXAMPLE = re.compile(r"^( *)Example:\n((?:\1 +.*(?:\n+|\Z))+)", re.MULTILINE)


class Sources(griffe.Extension):
    """Explains each parameter and each setting by itself, and shows examples as code."""

    def on_attribute_instance(self, *, node, attr, **_):
        """Takes default and docstring of a field from its call of `option()` or `setting()`."""
        call = getattr(node, "value", None)
        if not isinstance(call, ast.Call) or len(call.args) < 2:
            return
        if getattr(call.func, "id", "") not in ("option", "setting"):
            return
        default, explanation = call.args[:2]
        attr.value = ast.unparse(default)
        if isinstance(explanation, ast.Constant):
            attr.docstring = griffe.Docstring(explanation.value, parent=attr)

    def on_function_instance(self, *, func, **_):
        _edit(func)

    def on_class_instance(self, *, cls, **_):
        _edit(cls)


def _edit(documented):
    """Repeats what explains several parameters for each of them, and fences examples."""
    if documented.docstring:
        text = _GROUP.sub(_split, documented.docstring.value)
        documented.docstring.value = _EXAMPLE.sub(_fence, text)


def _split(group):
    indentation, names, text = group.groups()
    return "\n".join(f"{indentation}{name}:{text}" for name in names.split(", "))


def _fence(example):
    indentation, code = example.groups()
    inner = indentation + "    "
    return f"{indentation}Example:\n{inner}```python\n{code.rstrip()}\n{inner}```\n"
