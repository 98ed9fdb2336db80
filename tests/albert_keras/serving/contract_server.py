"""An HTTP server on loopback that answers as `tensorflow_model_server` does, in its own words.

For tests where the real one is not at hand. Written from its documented behaviour: the folder of
versions, the shapes and rules of REST, codes, batching, warm-up; see `contract/`.
"""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from albert_keras.serving.protocol.rest_routes import answer
from tests.albert_keras.serving.contract.versions import ModelVersions


class ContractServer:
    """Serves models until it is closed; use it in a `with` block.

    Args:
        models: dict of name -> folder with versions, or dict of arguments of ModelVersions.
        timeout: float. Seconds for a request, as `--rest_api_timeout_in_ms`.
        with_grpc: bool. Whether to serve gRPC as well; needs `tensorflow-serving-api`.
        **options: Arguments of ModelVersions for all models. Versions are looked for every 20 ms
            and loaded once, but where these say otherwise.

    Attributes:
        url: str. Where it listens.
        grpc_target: str or None. The same for gRPC.
    """

    def __init__(self, models, timeout=30.0, with_grpc=False, **options):
        options = {"poll_seconds": 0.02, "retries": 0, "retry_seconds": 0.0, **options}
        self._models = {}
        for name, model in models.items():
            own = model if isinstance(model, dict) else {"base_path": model}
            self._models[name] = ModelVersions(name, timeout=timeout, **{**options, **own})
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler_of(self))
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()
        self._grpc, self.grpc_target = None, None
        if with_grpc:
            from tests.albert_keras.serving.contract.grpc_service import start_grpc

            self._grpc, self.grpc_target = start_grpc(self._models)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        if self._grpc:
            self._grpc.stop(None).wait(60)
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(60)
        for model in self._models.values():
            model.close()

    def answer(self, method, path, body):
        """Returns (HTTP status, body); 404 without a body for what is not of the interface."""
        return answer(self._models, method, path, body)


def _handler_of(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            self._do("GET")

        def do_POST(self):
            self._do("POST")

        def _do(self, method):
            body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            status, content = server.answer(method, self.path, body)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_):
            pass

    return Handler
