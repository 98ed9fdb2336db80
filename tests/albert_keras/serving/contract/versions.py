"""The versions of a model: looked for in its folder, loaded, served, unloaded.

As with the server's AvailabilityPreservingPolicy, an old version goes when a new one is there.
"""

import re
import threading
import time
from pathlib import Path
from typing import NamedTuple

from albert_keras.serving.protocol.rest_routes import unknown_label, unknown_version
from albert_keras.serving.protocol.status import status_of
from tests.albert_keras.serving.contract.servable import ContractServable


class VersionPolicy(NamedTuple):
    """Which versions are to be served: `latest` so many, or `specific` ones, or `all`."""

    latest: int = 1
    specific: tuple = ()
    all: bool = False

    def choose(self, found):
        """Returns the versions to serve of those found, newest first."""
        found = sorted(found, reverse=True)
        if self.all:
            return found
        if self.specific:
            return [version for version in found if version in self.specific]
        return found[: self.latest]


class _Version:
    def __init__(self, folder):
        self.folder, self.state, self.servable = folder, "START", None
        self.error, self.tries_left, self.next_try = None, 0, 0.0


def find_versions(base_path):
    """Returns dict of version -> folder; what is not named by an int64 is not seen.

    Of two folders with the same number one counts.
    """
    found = {}
    for path in sorted(Path(base_path).iterdir()) if Path(base_path).is_dir() else []:
        if re.fullmatch(r"[+-]?\d+", path.name, re.ASCII) and -(2**63) <= int(path.name) < 2**63:
            found.setdefault(int(path.name), path)
    return found


class ModelVersions:
    """Polls the folder of one model and holds what is loaded.

    Args:
        name: str. Of the model.
        base_path: str or Path. Folder with the versions.
        policy: VersionPolicy.
        labels: dict of label -> version.
        poll_seconds: float.
        retries: int. As `--max_num_load_retries`.
        retry_seconds: float. Between them.
        batching, check_methods, timeout: See `ContractServable`.
    """

    def __init__(
        self,
        name,
        base_path,
        policy=None,
        labels=None,
        poll_seconds=1.0,
        retries=5,
        retry_seconds=60.0,
        batching=None,
        check_methods=False,
        timeout=30.0,
    ):
        self._name, self._base_path = name, Path(base_path)
        self._policy, self._labels = policy or VersionPolicy(), dict(labels or {})
        self._retries, self._retry_seconds = retries, retry_seconds
        self._options = {"batching": batching, "check_methods": check_methods, "timeout": timeout}
        self._versions, self._lock = {}, threading.Lock()
        self._stop = threading.Event()
        self._look()  # as the server, which listens when its models have been tried
        self._thread = threading.Thread(target=self._poll, args=(poll_seconds,), daemon=True)
        self._thread.start()

    def close(self):
        self._stop.set()
        self._thread.join(60)
        for version in self._versions.values():
            self._unload(version)

    def servable(self, version=None, label=None):
        """Returns (version, Servable) for a request; the newest one where neither is given."""
        if label is not None:
            version = self._labels.get(label)
            if version is None or self._state(version) != "AVAILABLE":
                raise unknown_label(self._name, label)
        with self._lock:
            ready = [key for key, one in self._versions.items() if one.state == "AVAILABLE"]
            asked = version if version is not None else max(ready, default=None)
            if asked in ready:
                return asked, self._versions[asked].servable
        raise unknown_version(self._name, version)

    def status(self, version=None, label=None):
        """Returns what `GET /v1/models/NAME` lists, newest first: (version, state, error)."""
        if label is not None:
            version = self.servable(label=label)[0]
        with self._lock:
            listed = [
                (key, one.state, one.error)
                for key, one in sorted(self._versions.items(), reverse=True)
                if version in (None, key)
            ]
        if not listed:
            raise unknown_version(self._name, version)
        return listed

    def _state(self, version):
        with self._lock:
            return self._versions[version].state if version in self._versions else None

    def _poll(self, seconds):
        while not self._stop.wait(seconds):
            self._look()

    def _look(self):
        """One round: loads what is missing, then lets go what has been replaced."""
        found = find_versions(self._base_path)
        aspired = self._policy.choose(found)
        for version in aspired:
            with self._lock:
                old = self._versions.get(version)
                if old is None or (old.state == "END" and old.error is None):
                    self._versions[version] = _Version(found[version])
                    self._versions[version].tries_left = self._retries + 1
            self._load(self._versions[version])
        served = any(self._state(version) == "AVAILABLE" for version in aspired)
        for version, one in list(self._versions.items()):
            if version in aspired:
                continue
            if one.state != "AVAILABLE" or served or not aspired:
                self._unload(one)
                if version not in found or one.error:
                    with self._lock:
                        del self._versions[version]

    def _load(self, version):
        if version.state not in ("START", "LOADING") or time.monotonic() < version.next_try:
            return
        version.state = "LOADING"
        servable = None
        try:
            servable = ContractServable(version.folder, **self._options)
            servable.warm_up()
        except Exception as error:
            if servable:
                servable.close()
            version.error = status_of(error)
            version.tries_left -= 1
            version.next_try = time.monotonic() + self._retry_seconds
            version.state = "LOADING" if version.tries_left else "END"
            return
        with self._lock:
            version.servable, version.error, version.state = servable, None, "AVAILABLE"

    def _unload(self, version):
        with self._lock:
            servable, version.servable = version.servable, None
            version.state = "END"
        if servable:
            servable.close()
