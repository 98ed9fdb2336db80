"""An HTTP server on loopback that answers as `tensorflow_model_server` does.

For tests where the real one is not at hand. Written from its documented behaviour: the folder of
versions, the shapes and rules of REST, codes, batching, warm-up; see `contract/`.
"""

import json
import re
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from google.protobuf.json_format import MessageToDict

from albert_keras.serving.protocol import json_answers, json_requests
from albert_keras.serving.protocol.status import StatusError, invalid, of_tensorflow
from tests.albert_keras.serving.contract.versions import ModelVersions

_SPEC = r"(?:/versions/(?P<version>\d+)|/labels/(?P<label>[^/:]+))?"
_PREDICT = re.compile(
    rf"/v1/models/(?P<model>[^/:]+){_SPEC}:(?P<method>classify|regress|predict)", re.I | re.A
)
_STATUS = re.compile(
    rf"/v1/models(?:/(?P<model>[^/:]+))?{_SPEC}(?:/(?P<part>metadata))?", re.I | re.A
)


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
        self._timeout, self._models = timeout, {}
        for name, model in models.items():
            own = model if isinstance(model, dict) else {"base_path": model}
            self._models[name] = ModelVersions(name, **{**options, **own})
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
            self._grpc.stop(None).wait()
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
        for model in self._models.values():
            model.close()

    def answer(self, method, path, body):
        """Returns (HTTP status, body); 404 without a body for what is not of the interface."""
        path = path.partition("?")[0]
        if not path.lower().startswith("/v1/"):
            return 404, b""
        try:
            return 200, self._answer(method, path, body)
        except Exception as error:
            status = error if isinstance(error, StatusError) else of_tensorflow(error)
            message = json.dumps({"error": status.message})
            return status.http_status, message.encode()

    def _answer(self, method, path, body):
        match = {"POST": _PREDICT, "GET": _STATUS}[method].fullmatch(path)
        if not match:
            raise invalid(f"Malformed request: {method} {path}")
        if match["model"] is None:
            raise invalid("Missing model name in request.")
        name = urllib.parse.unquote(match["model"])
        version = None if match["version"] is None else int(match["version"])
        if version is not None and version >= 2**63:
            raise invalid(f"Failed to convert version: {version} to numeric.")
        chosen = {"version": version, "label": match["label"]}
        if method == "POST":
            return self._predict(match["method"].lower(), name, chosen, body)
        if match["part"]:
            return self._metadata(name, chosen)
        return self._status(name, chosen)

    def _versions(self, name, missing):
        if name not in self._models:
            raise StatusError("NOT_FOUND", missing)
        return self._models[name]

    def _servable(self, name, chosen):
        version = chosen["version"]
        wanted = f"Latest({name})" if version is None else f"Specific({name}, {version})"
        versions = self._versions(name, f"Servable not found for request: {wanted}")
        return versions.servable(**chosen)

    def _predict(self, method, name, chosen, body):
        document, signature = json_requests.read_body(body)
        if method != "predict":
            examples = json_requests.read_examples(document)
            _, servable = self._servable(name, chosen)
            if method == "classify":
                found = servable.classify(signature, examples, self._timeout)
                return json_answers.write_classify(*found)
            found = servable.regress(signature, examples, self._timeout)
            return json_answers.write_regress(found)
        _, servable = self._servable(name, chosen)
        tensors, in_rows = json_requests.read_predict(document, servable.inputs_of(signature))
        outputs = servable.predict(signature, tensors, timeout=self._timeout)
        return json_answers.write_predict(outputs, in_rows)

    def _status(self, name, chosen):
        versions = self._versions(name, f"Could not find any versions of model {name}")
        return _json(
            {
                "model_version_status": [
                    {
                        "version": str(version),
                        "state": state,
                        "status": {
                            "error_code": error.code if error else "OK",
                            "error_message": error.message if error else "",
                        },
                    }
                    for version, state, error in versions.status(**chosen)
                ]
            }
        )

    def _metadata(self, name, chosen):
        version, servable = self._servable(name, chosen)
        signatures = {
            key: MessageToDict(
                one, preserving_proto_field_name=True, including_default_value_fields=True
            )
            for key, one in servable.signatures.items()
        }
        spec = {"name": name, "signature_name": "", "version": str(version)}
        return _json(
            {"model_spec": spec, "metadata": {"signature_def": {"signature_def": signatures}}}
        )


def _json(value):
    return json.dumps(value, indent=1).encode()


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
