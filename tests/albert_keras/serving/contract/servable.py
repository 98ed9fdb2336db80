"""A loaded version with what only the model server does: batching, warm-up, chosen outputs."""

import tensorflow as tf

from albert_keras.serving.protocol.servable import DEFAULT_SIGNATURE, Servable
from albert_keras.serving.protocol.status import StatusError, invalid
from tests.albert_keras.serving.contract.batching import Batcher
from tests.albert_keras.serving.contract.warmup import read_warmup


class ContractServable(Servable):
    """A version that answers as `tensorflow_model_server` does.

    Args:
        folder: Path. Of the version.
        batching: BatchingParameters or None.
        check_methods: bool. Whether a signature must have the right `method_name`, as with
            `--enable_signature_method_name_check`.
        timeout: float. Seconds that a request may wait for its batch.
    """

    def __init__(self, folder, batching=None, check_methods=False, timeout=30.0):
        super().__init__(folder)
        self._folder = folder
        self._check_methods, self._timeout = check_methods, timeout
        self._batcher = Batcher(self._run_chosen, batching) if batching else None

    def close(self):
        if self._batcher:
            self._batcher.close()

    def predict(self, name, tensors, output_filter=()):
        """Returns the outputs of a predict request; all where `output_filter` is empty."""
        name = name or DEFAULT_SIGNATURE
        if name not in self.signatures:
            raise StatusError("FAILED_PRECONDITION", f"The signature `{name}` was not found.")
        outputs = self.signatures[name].outputs
        if not set(output_filter) <= set(outputs) or len(set(output_filter)) < len(output_filter):
            raise invalid(f"The output filter must be different ones of {', '.join(outputs)}.")
        self.check_inputs(name, tensors)
        wanted = tuple(output_filter) or tuple(outputs)
        if self._batcher:
            return self._batcher.run(name, wanted, tensors, self._timeout)
        return self._run_chosen(name, wanted, tensors)

    def warm_up(self):
        """Runs the requests of the warm-up file; the first that fails raises."""
        for kind, request in read_warmup(self._folder):
            signature = request.model_spec.signature_name
            if kind == "predict":
                tensors = {key: tf.make_ndarray(one) for key, one in request.inputs.items()}
                self.predict(signature, tensors, list(request.output_filter))
            else:
                getattr(self, kind)(signature, examples_of(request.input))

    def _run_examples(self, name, examples, method, allowed):
        written = f"tensorflow/serving/{method}"
        if self._check_methods and self.signature(name).method_name != written:
            raise invalid(f"The method of the signature must be {written}.")
        return super()._run_examples(name, examples, method, allowed)

    def _run_chosen(self, name, wanted, tensors):
        outputs = self.run(name, tensors)
        return {alias: outputs[alias] for alias in wanted}


def examples_of(message):
    """Returns the serialized tf.Example of a `tensorflow.serving.Input`, with their context."""
    if not message.HasField("example_list_with_context"):
        return [one.SerializeToString() for one in message.example_list.examples]
    context = message.example_list_with_context.context.SerializeToString()
    # Serialized messages one after the other are the merged message.
    return [context + one.SerializeToString() for one in message.example_list_with_context.examples]
