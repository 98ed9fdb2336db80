"""Docstring -> prose: what is code, a table, a heading or markup goes, sentences stay.

Knows the habits of Google, NumPy and reST docstrings. `installed_docs.py` gathers the docstrings.
"""

import re

from data_pipeline.text.corpus import Document
from data_pipeline.text.sentences import split_sentences

MIN_WORDS = 4  # of a sentence
MIN_LETTERS = 0.87  # share of letters and spaces in a sentence

# What stands alone on its line, or opens a block that is no prose.
_UNDERLINE = re.compile(r"([=\-~^*#\"'`+._:])\1{2,}\s*$")
_SECTION = re.compile(r"[A-Z][\w ]{0,30}:$|#+ ")
_NUMPY_ENTRY = re.compile(r"\*{0,2}\w+(?:, ?\*{0,2}\w+)* : \S")  # "axis : int, optional"
_TABLE_LINE = re.compile(r"[+|].*[+|]$|[=+\-|\s]{5,}$")
_DIRECTIVE = re.compile(r"\.\. *([\w:-]+?)::\s*(.*)$")
_PROSE_DIRECTIVES = {"caution", "deprecated", "hint", "important", "note", "seealso", "tip"}
_PROSE_DIRECTIVES |= {"versionadded", "versionchanged", "warning"}
_FIELD = re.compile(r":(?:param|arg|type|returns?|rtype|raises|ivar|cvar|var)\b[^:]*:\s*")
_BULLET = re.compile(r"(?:[-*+•]|\(?\d{1,2}[.)]|\[\d+\])\s+")
_ENTRY = re.compile(r"\*{0,2}`{0,2}([A-Za-z_][\w.]*)`{0,2}(?: \([^()]*\))?: +(?=[A-Z`])")
_CODE_LINE = re.compile(r"(>>>|\.\.\. |In \[|\$ |%|@\w|(import|from|def|class|with|return) .*\w)")

_MARKUP_SIGN = re.compile(r"[`*_<\[\\]|::")
# Markup inside a line, and what stays of it.
_MARKUP = (
    (re.compile(r"\[([^\]]+)\]\((?:https?:|#|/|\.)[^)\s]*\)"), r"\1"),  # [text](url)
    (re.compile(r"`([^`<]+?)\s*<[^`>]+>`_{1,2}"), r"\1"),  # `text <url>`_
    (re.compile(r":[\w:+-]+:`[~!]?([^`<]+?)(?:\s*<[^`>]*>)?`"), r"\1"),  # :role:`text`
    (re.compile(r"\s*\[#?\w{1,12}\]_"), ""),  # footnote
    (re.compile(r"`{1,2}([^`]+)`{1,2}_{0,2}"), r"\1"),
    (re.compile(r"\*\*([^*]+)\*\*"), r"\1"),
    (re.compile(r"(?<!\w)\*([^*\s][^*]*)\*(?!\w)"), r"\1"),
    (re.compile(r"(?<!\w)_([^_\s][^_]*)_(?!\w)"), r"\1"),
    (re.compile(r"</?\w[^>]*>"), ""),
    (re.compile(r"\\([*_`|])"), r"\1"),
    (re.compile(r"::(?=\s|$)"), ":"),
)
_CODE_IN_PROSE = re.compile(
    r"\bTODO\b|https?:|www\.|==|::|:=|->|=>|<=|>=|[{}<>|\\$^~#]|\w=\S|\s=\s|\w\[|\)\(|\.\.\.|__\w+__|`|\*\w|_\s"
)
_BROKEN_END = re.compile(
    r"(?:,|\b(?:a|an|and|are|as|at|be|by|for|from|if|in|into|is|of|on|or|that|the|to|when|with))$"
)
_SENTENCE_START = re.compile(r"[\"'(]?(?:[A-Z]|[a-z_][\w.]*(?:\(\))? (?:is|are|was|must|should)\b)")


def prose_blocks(text):
    """Yields paragraphs of a docstring, without the blocks that are code, tables or headings."""
    lines = text.expandtabs().splitlines()
    block, skip_indent, fence = [], None, False
    for line, following in zip(lines, lines[1:] + [""], strict=bool(lines)):
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if text.startswith("```") and text.count("```") == 1:
            fence = not fence
            text = ""
        elif fence:
            continue
        if skip_indent is not None and text:
            if indent > skip_indent:
                continue
            skip_indent = None
        directive = _DIRECTIVE.match(text)
        ends = not text or directive or _starts_item(text, indent, block)
        if ends and block:
            yield from _joined(block)
            # After "::" comes a literal block, after a heading "Usage:" code as a rule.
            if block[-1][1].endswith("::"):
                skip_indent = block[0][0]
            block = []
        if not text:
            continue
        if directive:
            if directive[1] in _PROSE_DIRECTIVES:
                text = re.sub(r"^[\d.]+\s*", "", directive[2])
                block = [(indent, text)] if text else []
            else:
                skip_indent = indent
        elif _is_heading(text, following.strip()):
            yield from _joined(block)
            if text.lower().startswith(("references", "see also")):
                skip_indent = indent
            block = []
        else:
            block.append((indent, text))
    yield from _joined(block)


def _starts_item(text, indent, block):
    """Tells whether a line opens a list item, an argument's entry or an indented block."""
    if _BULLET.match(text) or _FIELD.match(text) or text.startswith((">>>", "@")):
        return True
    if not block:
        return False
    if _ENTRY.match(text) and indent <= block[0][0]:
        return True
    # The second line of an item stands deeper than its first; one space is a slip.
    change = indent - block[-1][0]
    return abs(change) > 1 and (len(block) > 1 or change < 0)


def _is_heading(text, following):
    return bool(
        _SECTION.match(text)
        and len(text.split()) <= 4
        or _UNDERLINE.match(text)
        or _UNDERLINE.match(following)
        or _TABLE_LINE.match(text)
        or _NUMPY_ENTRY.match(text)
    )


def _joined(block):
    """Yields the paragraph of a block of (indent, text) unless it is code."""
    if not block or _CODE_LINE.match(block[0][1]):
        return
    text = " ".join(text for _, text in block)
    for opening in (_BULLET, _FIELD):
        opened = opening.match(text)
        text = text[opened.end() :] if opened else text
    entry = _ENTRY.match(text)
    if entry:
        text = f"{entry[1]}: {text[entry.end() :]}"
    if _MARKUP_SIGN.search(text):
        for pattern, replacement in _MARKUP:
            text = pattern.sub(replacement, text)
    text = " ".join(text.split())
    if len(text.split()) >= MIN_WORDS:
        yield text


def prose_sentences(text):
    """Returns the sentences of a paragraph that read as prose, and the number of all."""
    sentences = split_sentences(Document("", (text,)))
    kept = [sentence for sentence in sentences if _is_prose(sentence)]
    # A broken end ("found in your config file at") is what a dropped block leaves behind.
    if kept and (_BROKEN_END.search(kept[-1]) or (kept[-1][-1].isalnum() and len(sentences) > 1)):
        kept.pop()
    return kept, len(sentences)


def _is_prose(sentence):
    if len(sentence.split()) < MIN_WORDS or _CODE_IN_PROSE.search(sentence):
        return False
    body = _ENTRY.sub("", sentence, count=1)
    letters = sum(map(str.isalpha, sentence)) + sentence.count(" ")
    return bool(_SENTENCE_START.match(body)) and letters >= MIN_LETTERS * len(sentence)
