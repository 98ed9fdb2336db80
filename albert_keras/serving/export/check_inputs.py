"""What an export is asked before it is published: short and long, clean and dirty, by kind."""

from albert_keras.serving.layout import MASK_LITERAL

#: Texts as users send them. One is longer than most models read, none longer than
#: `TextPacker.max_bytes` of the shortest row, so that both paths read the same.
TEXTS = (
    "The ferry left the harbour before sunrise.",
    "",
    " \t two  words\u00a0",
    "Rain had washed the chalk marks from the wall, and nobody in the village wondered why; " * 2,
    "Ｆｕｌｌ ｗｉｄｔｈ ½ ﬁne №4 İstanbul",
    "Grüße aus Köln, où l'été est là: Ελλάδα, Россия, 東京, עברית",
    "emoji \U0001f469\u200d\U0001f52c\U0001f600 and a NUL \0 and \u202eright to left",
    "[CLS] [SEP] <unk> <pad> ▁ ▁▁ 12,345.67, e-mail@example.org",
)
_QUESTION, _OPTIONS = "What left the harbour _ ?", ("the ferry", "", "Rain, sunrise \U0001f600")


def check_inputs(kind, takes_pair=False):
    """Returns what to ask a model of a kind.

    Args:
        kind: TaskKind or None. None of a pre-trained model.
        takes_pair: bool. Whether the task has a second text.

    Returns:
        list of str with a mask or more in most of them (pre-trained), or of dict, see
        `Task.example`.
    """
    if kind is None:
        masked = [f"{MASK_LITERAL} {text[: len(text) // 2]}{MASK_LITERAL}" for text in TEXTS]
        return [*masked, TEXTS[0]]
    return inputs_of_texts(kind, takes_pair, [text for text in TEXTS if text.strip()])


def inputs_of_texts(kind, takes_pair, texts):
    """Makes something to ask a fine-tuned model of each text (list of str, none blank)."""
    if kind.has_options:
        return [
            {"context": text, "question": _QUESTION, "options": list(_OPTIONS)} for text in texts
        ]
    if kind.finds_spans:
        return [{"context": text, "question": _QUESTION} for text in texts]
    if takes_pair:
        others = texts[1:] + texts[:1]
        return [{"text": one, "pair": other} for one, other in zip(texts, others, strict=True)]
    return [{"text": text} for text in texts]
