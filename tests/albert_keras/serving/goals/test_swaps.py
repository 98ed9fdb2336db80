"""No request fails while versions are swapped, and a broken version never takes traffic."""

import contextlib
import shutil
import threading
import time

import pytest
import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

from albert_keras.serving.client.client_errors import ServingError
from albert_keras.serving.client.grpc_client import GrpcClient
from albert_keras.serving.client.rest_client import RestClient
from albert_keras.serving.export.publishing import new_version
from tests.albert_keras.serving.contract.model import next_version, predict_record, write_warmup
from tests.albert_keras.serving.contract.process import contract_process
from tests.albert_keras.serving.contract.serving import wait_for
from tests.albert_keras.serving.real_server import EXECUTABLE, model_server

CLIENTS = 8


class MarkModel(tf.Module):
    """Answers `mark`, by which versions differ; fails on the text "fail", as no export does."""

    def __init__(self):
        super().__init__()
        self.mark = tf.Variable(0.0, trainable=False)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="text")])
    def ask(self, text):
        fails = tf.reduce_any(text == "fail")
        with tf.control_dependencies([tf.debugging.assert_equal(fails, False, "no fail")]):
            upper = tf.strings.upper(text)
        return {"upper": upper, "mark": tf.fill(tf.shape(text), self.mark)}


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Returns a version that is in no base path."""
    folder, model = tmp_path_factory.mktemp("prepared") / "1", MarkModel()
    tf.saved_model.save(model, str(folder), {"serving_default": model.ask})
    return folder


def copy_of(prepared, folder, version):
    """Writes a version that answers `mark` with its number."""
    shutil.copytree(prepared, folder, dirs_exist_ok=True)
    mark = tf.Variable(float(version))
    tf.train.Checkpoint(mark=mark).write(str(folder / "variables" / "variables"))


def served(base, is_quick):
    """Returns a context manager of a server: of its own process, but where it has to be quick."""
    if is_quick or shutil.which(EXECUTABLE):
        return model_server({base.name: base})
    return contract_process(base)


class Clients:
    """Threads that ask all the time, half of them over gRPC, and never a second time.

    Attributes:
        answers: list of (version, seconds).
        failures: list of str.
    """

    def __init__(self, server, name):
        self.answers, self.failures, self._stop = [], [], threading.Event()
        options = {"timeout": 60, "retries": 0}
        connections = [
            GrpcClient(server.grpc_target, name, **options)
            if number % 2
            else RestClient(server.url, name, **options)
            for number in range(CLIENTS)
        ]
        self._threads = [threading.Thread(target=self._ask, args=(one,)) for one in connections]

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @property
    def versions(self):
        """set of int. Those that have answered."""
        return {version for version, _ in self.answers}

    def wait_for(self, version, seconds=60):
        """Waits until a version answers; what it has answered before does not count."""
        end, place = time.monotonic() + seconds, len(self.answers)
        while time.monotonic() < end:
            if any(one == version for one, _ in self.answers[place:]):
                return
            time.sleep(0.01)
        raise AssertionError(f"version {version} has not answered: {self.failures[:3]}")

    def report(self, what, start):
        seconds = time.monotonic() - start
        slowest = max(seconds for _, seconds in self.answers)
        print(
            f"{what}: {len(self.answers)} answers to {CLIENTS} clients within {seconds:.0f} s, "
            f"{len(self.failures)} failures, the slowest took {slowest:.2f} s"
        )

    def _ask(self, client):
        with client:
            while not self._stop.is_set():
                start = time.monotonic()
                try:
                    (mark,) = client.predict(text=["a"])["mark"]
                except ServingError as error:
                    self.failures.append(str(error))
                else:
                    self.answers.append((int(mark), time.monotonic() - start))


@pytest.mark.parametrize(
    "swaps, is_quick", [(5, True), pytest.param(100, False, marks=pytest.mark.slow)]
)
def test_no_request_fails_while_versions_are_swapped(prepared, tmp_path, swaps, is_quick):
    base = tmp_path / "books"
    copy_of(prepared, base / "1", 1)
    start = time.monotonic()
    with served(base, is_quick) as server, Clients(server, base.name) as clients:
        clients.wait_for(1)
        for _ in range(swaps):
            with new_version(base) as draft:
                copy_of(prepared, draft.folder, draft.version)
            clients.wait_for(draft.version)
    clients.report(f"{swaps} swaps", start)
    assert not clients.failures
    assert clients.versions == set(range(1, swaps + 2))


def cut_variables(folder):
    path = folder / "variables" / "variables.data-00000-of-00001"
    path.write_bytes(path.read_bytes()[:2])


def empty_graph(folder):
    (folder / "saved_model.pb").write_bytes(b"")


def unknown_operation(folder):
    path = folder / "saved_model.pb"
    model = saved_model_pb2.SavedModel.FromString(path.read_bytes())
    for function in model.meta_graphs[0].graph_def.library.function:
        for node in function.node_def:
            if node.op == "StringUpper":
                node.op = "TFText>RoundRobinTrim2"
    path.write_bytes(model.SerializeToString())


def failing_warm_up(folder):
    write_warmup(folder, [predict_record("serving_default", text=["fail"])])


def half_copied(folder):
    shutil.rmtree(folder / "variables")


QUICK_FAULTS = {cut_variables: "", failing_warm_up: "no fail"}
FAULTS = {
    **QUICK_FAULTS,
    empty_graph: "",
    unknown_operation: "TFText>RoundRobinTrim2",
    half_copied: "variables",
}


@pytest.mark.parametrize(
    "faults, is_quick", [(QUICK_FAULTS, True), pytest.param(FAULTS, False, marks=pytest.mark.slow)]
)
def test_a_broken_version_never_takes_traffic(prepared, tmp_path, faults, is_quick):
    base = tmp_path / "books"
    copy_of(prepared, base / "1", 1)
    start = time.monotonic()
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(served(base, is_quick))
        status = stack.enter_context(RestClient(server.url, base.name, timeout=60))
        clients = stack.enter_context(Clients(server, base.name))
        clients.wait_for(1)
        for fault, said in faults.items():
            broken = next_version(base)
            staging = base / f".{broken.name}.tmp-1"
            copy_of(prepared, staging, int(broken.name))
            fault(staging)
            staging.rename(broken)
            error = wait_for("END", status, int(broken.name), 60).error
            print(f"{fault.__name__}: {' '.join(error.split())[:160]}")
            assert error and said in error
            assert [one.version for one in status.status() if one.state == "AVAILABLE"] == [1]
            clients.wait_for(1)
        assert clients.versions == {1}
        with new_version(base) as draft:
            copy_of(prepared, draft.folder, draft.version)
        clients.wait_for(draft.version)
    clients.report(f"{len(faults)} broken versions", start)
    assert not clients.failures and clients.versions == {1, draft.version}
