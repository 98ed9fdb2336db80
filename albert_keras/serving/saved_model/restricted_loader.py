"""Loads a SavedModel with the operations of tensorflow_model_server only.

A process that has imported tensorflow-text has more operations, which hides faults. As a program
(`python -m` with the name of this module, and a folder) this file loads the libraries of
operations one by one, except for those that servers lack, and calls each signature.
"""

import importlib.util
import subprocess
import sys
from pathlib import Path

from data_pipeline.child_processes import environment, module_command
from data_pipeline.errors import InputError

#: Libraries of operations of tensorflow-text 2.15 that 2.12.1, the version in servers, lacks.
MISSING_LIBRARIES = frozenset({"_trimmer_ops.so", "_utf8_binarize_op.so"})
#: What users send: nothing, bytes that are not UTF-8, a NUL, text that looks like special tokens;
#: and in a batch of its own, since all rows are padded to the longest, far too much text.
BATCHES = (
    (
        b"",
        b"\xff\xfe \xc3\x28 \xed\xa0\x80",
        b"nul \0 byte",
        "[CLS] A [MASK] [SEP] <unk> \u202e \U0001f469\u200d\U0001f52c".encode(),
    ),
    (b"much too long " * 2000,),
)


def load_restricted(folder: Path, timeout: float = 600) -> None:
    """Loads a version and calls each signature, in a new process with the operations of servers.

    Each must return one row per text and only finite numbers; otherwise InputError has the message
    of the process, which may take `timeout` seconds. A SavedModel is a program: check the model of
    somebody else with `check_ops` first.
    """
    try:
        done = subprocess.run(
            module_command(__name__, folder),
            capture_output=True,
            text=True,
            timeout=timeout,
            # Without a GPU, which a training on this machine may be using.
            env=environment(CUDA_VISIBLE_DEVICES="-1", TF_CPP_MIN_LOG_LEVEL="2"),
        )
    except subprocess.TimeoutExpired as error:
        raise InputError(f"`{folder}` did not load and answer within {timeout} s.") from error
    if done.returncode:
        lines = (done.stdout.strip() or done.stderr.strip()).splitlines()
        raise InputError(
            f"`{folder}` does not load or answer in a process with the operations of "
            f"tensorflow_model_server (exit code {done.returncode}): "
            f"{lines[-1] if lines else 'no message'}"
        )


def main(folder: Path) -> None:
    """Loads a version and calls each signature, in this process; see `load_restricted`."""
    import numpy as np
    import tensorflow as tf

    from albert_keras.serving.saved_model.signature_methods import read_signatures
    from albert_keras.serving.saved_model.warm_up import sample_inputs

    for library in _libraries():
        tf.load_op_library(str(library))
    model = tf.saved_model.load(str(folder))
    for signature in read_signatures(folder):
        for texts in BATCHES:
            inputs = sample_inputs(signature, list(texts))
            if signature.method != "predict" and not texts[0]:
                inputs["inputs"][0] = b""  # a `tf.Example` without any feature
            tensors = {name: tf.constant(value) for name, value in inputs.items()}
            for name, answer in model.signatures[signature.name](**tensors).items():
                where = f"output `{name}` of signature `{signature.name}`"
                if answer.shape.rank == 0 or answer.shape[0] != len(texts):
                    raise RuntimeError(f"{where} has shape {answer.shape} for {len(texts)} rows")
                if answer.dtype.is_floating and not np.isfinite(tf.cast(answer, tf.float32)).all():
                    raise RuntimeError(f"{where} is not finite")
    if "tensorflow_text" in sys.modules:
        raise RuntimeError("tensorflow_text was imported, so that nothing was checked")


def _libraries():
    """Returns the paths of the libraries in servers, found without importing tensorflow-text."""
    (folder,) = importlib.util.find_spec("tensorflow_text").submodule_search_locations
    found = sorted(Path(folder, "python").rglob("*.so"))
    return [path for path in found if path.name not in MISSING_LIBRARIES]


if __name__ == "__main__":
    from albert_keras.serving.saved_model.warm_up import short_message

    try:
        main(Path(sys.argv[1]))
    except Exception as error:
        sys.stdout.write(f"{type(error).__name__}: {short_message(error)}\n")
        sys.exit(1)
