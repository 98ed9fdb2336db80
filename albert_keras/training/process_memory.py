"""The largest amount of memory that this process has used."""

import resource
import sys
from pathlib import Path

_STATUS = Path("/proc/self/status")


def peak_mb():
    """Returns the most memory this process has ever used, in MB, mapped files included."""
    # On Linux a child inherits `ru_maxrss` from its parent; the value in /proc starts afresh.
    for line in _STATUS.read_text().splitlines() if _STATUS.is_file() else ():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024 / 1e6
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / 1e6 if sys.platform == "darwin" else peak * 1024 / 1e6
