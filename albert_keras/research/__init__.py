"""Tables and figures of the papers, made of one's own text and models.

`study/` trains runs that differ in a few settings and compares their scores; `analyze/` looks into
trained models: layers, heads, embeddings. Reading the definition of a study needs no TensorFlow.
"""
