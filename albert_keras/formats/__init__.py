"""Models on disk: what is at a path (`detection`), and `open_weights`, which opens it.

Each format in the table `detection.FORMATS` has a module with these functions:

- `read(path)` returns an `OpenedModel`; `path` is a file, a folder or the prefix of a checkpoint.
  InputError names all tensors that are missing, unexpected, of another shape or not finite, damaged
  files, and what our models cannot express. Ours and Google's ALBERT are found by
  `own.find_weights` instead.
- `write(model, folder)` writes all tensors of an `OpenedModel` and its shape into an empty folder.
  InputError names what the format cannot express; OSError is passed on.

The tokenizer of any format is read by `vocabulary`, without TensorFlow, and written by
`vocabulary_writing`.
"""
