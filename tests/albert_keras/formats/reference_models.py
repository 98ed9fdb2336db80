"""Models as the reference's checkpoints hold them, with other numbers under each name.

The names and axes are written out from a description of the released checkpoints, and not taken
from the package.
"""

import zlib

import numpy as np

from albert_keras.config import AlbertConfig
from albert_keras.formats.model_weights import ModelWeights

#: Two groups of two blocks; no two sizes are equal, so that nothing transposed passes.
CONFIG = AlbertConfig(
    vocab_size=50,
    embedding_size=6,
    hidden_size=8,
    num_hidden_layers=4,
    num_hidden_groups=2,
    inner_group_num=2,
    num_attention_heads=2,
    intermediate_size=12,
    max_position_embeddings=9,
    hidden_dropout_prob=0.1,
)
_SIZES = {"V": 50, "E": 6, "H": 8, "I": 12, "P": 9, "T": 2, "D": 16, "C": 3, "1": 1, "2": 2}
_BLOCK = """
attention_1/self/query/kernel HH
attention_1/self/query/bias H
attention_1/self/key/kernel HH
attention_1/self/key/bias H
attention_1/self/value/kernel HH
attention_1/self/value/bias H
attention_1/output/dense/kernel HH
attention_1/output/dense/bias H
LayerNorm/beta H
LayerNorm/gamma H
ffn_1/intermediate/dense/kernel HI
ffn_1/intermediate/dense/bias I
ffn_1/intermediate/output/dense/kernel IH
ffn_1/intermediate/output/dense/bias H
LayerNorm_1/beta H
LayerNorm_1/gamma H
"""
_OUTSIDE = """
bert/embeddings/word_embeddings VE
bert/embeddings/token_type_embeddings TE
bert/embeddings/position_embeddings PE
bert/embeddings/LayerNorm/beta E
bert/embeddings/LayerNorm/gamma E
bert/encoder/embedding_hidden_mapping_in/kernel EH
bert/encoder/embedding_hidden_mapping_in/bias H
bert/pooler/dense/kernel HH
bert/pooler/dense/bias H
"""
HEADS = {
    "masked_lm": """
cls/predictions/transform/dense/kernel HE
cls/predictions/transform/dense/bias E
cls/predictions/transform/LayerNorm/beta E
cls/predictions/transform/LayerNorm/gamma E
cls/predictions/output_bias V
""",
    "sentence_order": """
cls/seq_relationship/output_weights 2H
cls/seq_relationship/output_bias 2
""",
    "classifier": """
output_weights CH
output_bias C
""",
    "spans": """
cls/squad/output_weights 2H
cls/squad/output_bias 2
""",
    "spans_or_none": """
start_logits/dense/kernel H1
start_logits/dense/bias 1
end_logits/dense_0/kernel DH
end_logits/dense_0/bias H
end_logits/LayerNorm/beta H
end_logits/LayerNorm/gamma H
end_logits/dense_1/kernel H1
end_logits/dense_1/bias 1
answer_class/dense_0/kernel DH
answer_class/dense_0/bias H
answer_class/dense_1/kernel H1
""",
}


def numbers(name, shape):
    """Returns float32 numbers that depend on the name: no two tensors are alike."""
    return np.random.default_rng(zlib.crc32(name.encode())).normal(size=shape).astype(np.float32)


def tensors_of(text, prefix="", sizes=_SIZES):
    """Returns tensors for lines "name axes": dict of name -> array."""
    pairs = [line.split() for line in text.strip().splitlines()]
    return {
        prefix + name: numbers(prefix + name, [sizes[letter] for letter in axes])
        for name, axes in pairs
    }


def reference_tensors(*heads, groups=2, inner=2, **sizes):
    """Returns the tensors of a model of `CONFIG`, with heads."""
    sizes = _SIZES | sizes
    tensors = tensors_of(_OUTSIDE, sizes=sizes)
    if sizes["E"] == sizes["H"]:
        tensors = {n: a for n, a in tensors.items() if "embedding_hidden_mapping_in" not in n}
    for group in range(groups):
        for block in range(inner):
            scope = f"bert/encoder/transformer/group_{group}/inner_group_{block}/"
            tensors |= tensors_of(_BLOCK, scope, sizes)
    for head in heads:
        tensors |= tensors_of(HEADS[head], sizes=sizes)
    return tensors


def model_weights(*heads, config=CONFIG, tokenizer_files=None, **shape):
    """Returns ModelWeights of `reference_tensors`."""
    return ModelWeights(
        config, reference_tensors(*heads, **shape), "numbers", tokenizer_files or {}
    )


def assert_same_tensors(found, wanted):
    assert found.keys() == wanted.keys()
    for name, array in wanted.items():
        assert found[name].dtype == np.float32, name
        np.testing.assert_array_equal(found[name], array, err_msg=name)
