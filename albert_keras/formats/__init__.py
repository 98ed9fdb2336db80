"""Models on disk: what is at a path (`detection`), and `open_model`, which opens it.

Each format in the table `detection.FORMATS` has a module with these functions:

- `read(path)` returns `ModelWeights`; `path` is a file, a folder or the prefix of a checkpoint.
  Modules of checkpoints also take `config`, by default the file in the folder or above. InputError
  names all tensors that are missing, unexpected, of another shape or not finite, damaged files, and
  what our models cannot express. Ours and Google's ALBERT are found by `own.find_weights` instead.
- `read_tokenizer(path)` returns the `Vocabulary` beside the weights, or None.
- `write(weights, folder)` writes `ModelWeights`, all tensors of the model, into an empty folder.
  InputError names what the format cannot express; OSError is passed on.
"""
