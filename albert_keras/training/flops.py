"""Floating-point operations of a step, counted from the shape of the model, without TensorFlow."""


def training_flops(config, batch_size, max_seq_length, max_predictions_per_seq, sentence_head=True):
    """Counts the useful operations of one pre-training step, forward and backward (int).

    They are three times the operations of the forward pass, since the backward pass makes two
    products for each product of the forward pass:

        3 * (forward_flops + 2·B·P·(H·E + E·V) + 2·B·(H·H + H·2))

    The second term is the masked-LM head at the predictions, the third the pooler and the
    sentence-order head. A multiply-add counts 2, shared weights count at each use, padding counts
    like text. Element-wise work and recomputation do not count: the MFU counts useful work only.

    B = `batch_size` (global), S = `max_seq_length`, P = `max_predictions_per_seq`, and of the
    AlbertConfig E = `embedding_size`, H = `hidden_size`, V = `vocab_size`. Without a sentence-order
    head the loss does not depend on the pooler either.

    Source:
        PaLM, appendix B (https://arxiv.org/abs/2204.02311), for what counts; Megatron-LM, appendix
        (https://arxiv.org/abs/2104.04473), for the products of a transformer.
    """
    hidden_size, embedding_size = config.hidden_size, config.embedding_size
    predictions = batch_size * max_predictions_per_seq
    masked_lm = 2 * predictions * embedding_size * (hidden_size + config.vocab_size)
    sentence_order = 2 * batch_size * hidden_size * (hidden_size + 2) if sentence_head else 0
    encoder = forward_flops(config, batch_size, max_seq_length)
    return 3 * (encoder + masked_lm + sentence_order)


def forward_flops(config, batch_size, max_seq_length):
    """Counts the operations of the encoder's forward pass, without pooler and heads (int).

        2·B·S·E·H                            projection of the embeddings, if E != H
        + L·K·(2·B·S·(4·H·H + 2·H·I)         query, key, value, output; feed-forward
               + 2·2·B·S·A·H)                attention scores; weighted sum of the values

    Letters as in `training_flops`; L = `num_hidden_layers`, K = `inner_group_num`,
    I = `intermediate_size`; A = S, or the mean number of keys of block-sparse attention.
    """
    size = config.hidden_size
    positions = batch_size * max_seq_length
    weights = 4 * size * size + 2 * size * config.intermediate_size
    keys = config.attended_keys(max_seq_length)
    block = 2 * positions * weights + 4 * positions * keys * size
    projection = 0
    if config.projects_embeddings:
        projection = 2 * positions * config.embedding_size * size
    return projection + config.num_hidden_layers * config.inner_group_num * block
