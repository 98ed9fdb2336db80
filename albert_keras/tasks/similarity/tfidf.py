"""Cosines of TF-IDF vectors: how similar texts are by the words they share."""

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

from albert_keras.tasks.examples import TextExample


def tfidf_cosines(texts: list[str], examples: list[TextExample]) -> np.ndarray:
    """Returns the cosine of the TF-IDF vectors of each pair of texts, float64 [N], 0 to 1.

    A word is what scikit-learn takes by default: two or more letters or digits, in lower case.

    Args:
        texts: Texts from which words and their frequencies are taken, usually of the training.
        examples: Pairs. A pair without any word of `texts` has the cosine 0.
    """
    words = TfidfVectorizer()
    try:
        words.fit(texts)
    except ValueError:  # there is no word in any text
        return np.zeros(len(examples))
    first = words.transform([example.first for example in examples])
    second = words.transform([example.second for example in examples])
    return np.asarray(first.multiply(second).sum(axis=1), np.float64)[:, 0]
