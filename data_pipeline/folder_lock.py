"""Locks of folders in which a process works for a long time, a build or a training.

The lock is one of the operating system (`flock`) on a file in the folder. The file contains the
names of the host and the process for the message to other processes. A killed process loses the
lock, so a file without a lock means nothing. The file is locked instead of the folder because NFS
keeps locks on folders to one machine.
"""

import contextlib
import errno
import fcntl
import logging
import os
import socket
from pathlib import Path

from data_pipeline.errors import InputError
from data_pipeline.files import LOCK_FILE, naming

logger = logging.getLogger(__name__)

_READ_ONLY = {errno.EACCES, errno.EROFS, errno.EPERM}
_NO_LOCKS = {errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL}


class FolderLock:
    """The right of one process to work in a folder, until the end of a `with` block.

    Args:
        folder: Path. The folder, which need not exist before `take`.
        work: str. What the message to others says of the folder.
        makes_folder: bool. Whether `take` creates the folder; it is removed again if it is empty in
            the end.
    """

    def __init__(
        self,
        folder: Path,
        work: str = "is being trained",
        makes_folder: bool = False,
    ):
        self._path = folder / LOCK_FILE
        self._work = work
        self._folder = folder
        self._makes_folder = makes_folder
        self._made: list[Path] = []
        self._descriptor: int | None = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()

    def take(self, inside: Path | None = None) -> None:
        """Takes the lock, unless this object has it already.

        Args:
            inside: Path or None. The temporary folder that is going to be renamed to the folder, so
                that it appears with its lock; None if it exists.

        Raises:
            InputError: If another process has the lock; it is named.
            OSError: If the file cannot be created, except for a lack of permission: then nothing is
                locked.
        """
        if self._descriptor is not None:
            return
        folder = self._folder
        if self._makes_folder:
            missing = [each for each in (folder, *folder.absolute().parents) if not each.exists()]
            folder.mkdir(parents=True, exist_ok=True)
            self._made = missing
        path = self._path if inside is None else inside / self._path.name
        while True:
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            except OSError as error:
                if error.errno in _READ_ONLY:
                    return  # a complete run can be read there, and nothing can be written
                raise
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                os.close(descriptor)
                if error.errno not in _NO_LOCKS:
                    raise self.refusal() from None
                logger.warning(
                    "`%s` is on a filesystem without locks: make sure that no other process "
                    "writes there.",
                    self._folder,
                )
                return
            # The process that had the lock before may have removed the file in between.
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                    break
            os.close(descriptor)
        self._descriptor = descriptor
        with naming(path):
            os.truncate(descriptor, 0)
            os.write(descriptor, f"process {os.getpid()} on host {socket.gethostname()}\n".encode())

    def release(self) -> None:
        """Removes the file and gives the lock up, if this object has it."""
        if self._descriptor is None:
            return
        with contextlib.suppress(OSError):  # the folder is gone, or was never renamed
            if os.path.samestat(os.stat(self._path), os.fstat(self._descriptor)):
                self._path.unlink()
        os.close(self._descriptor)
        self._descriptor = None
        with contextlib.suppress(OSError):  # it contains something
            for folder in self._made:
                folder.rmdir()

    def refusal(self) -> InputError:
        """Returns the error for a process that does not get the lock; it names the one that has."""
        holder = "another process"
        with contextlib.suppress(OSError):
            with open(self._path, encoding="utf-8", errors="replace") as file:
                holder = file.read(200).strip() or holder
        return InputError(
            f"`{self._folder}` {self._work} by {holder}. Wait until it has ended, or choose "
            "another `out`."
        )
