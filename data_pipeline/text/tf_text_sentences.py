"""Splits paragraphs into sentences with tensorflow-text.

Importing this loads TensorFlow and tensorflow-text; `sentences` does so only when asked for it.
"""

import tensorflow_text as tf_text


def break_sentences(paragraphs):
    """Splits paragraphs where `StateBasedSentenceBreaker` sees the start of a sentence.

    Only its starts are used: a sentence goes on to the next one, so that nothing between the end
    of one and the start of another is lost.

    Args:
        paragraphs: sequence of str. All are split in one call.

    Returns:
        list of str. In order; together they are the paragraphs, character by character.

    Source:
        https://www.tensorflow.org/text/api_docs/python/text/StateBasedSentenceBreaker
    """
    texts = [paragraph.encode() for paragraph in paragraphs]
    if not texts:
        return []
    _, starts, _ = tf_text.StateBasedSentenceBreaker().break_sentences_with_offsets(texts)
    sentences = []
    for text, edges in zip(texts, starts.to_list(), strict=True):
        edges = [0, *edges[1:], len(text)]
        pairs = zip(edges, edges[1:], strict=False)
        sentences.extend(text[start:end].decode() for start, end in pairs)
    return sentences
