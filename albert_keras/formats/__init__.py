"""Models of other code: one module per format, with the same three functions.

- `is_source(path)` returns whether a path looks like the format, from the names of its files.
- `read(path, trust_pickle=False, config=None)` returns `ModelWeights`. `path` is a file, a folder
  or the prefix of a checkpoint. `trust_pickle` allows reading pickled files, which only
  `hugging_face` has. `config` is the configuration of a checkpoint, by default the
  one in its folder or above; formats that always have one do not take it. InputError names all
  tensors that are missing, unexpected, of another shape or not finite, damaged files, and what our
  models cannot express.
- `write(weights, folder)` writes `ModelWeights` into an empty folder. InputError names what the
  format cannot express and missing tensors; OSError is passed on.
"""
