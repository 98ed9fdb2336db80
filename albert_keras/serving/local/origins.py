"""Whose requests a local server answers: programs on this computer, and its own page.

Any page that is open in a browser can send requests to loopback. Without rules it could make the
server compute, or read its answers after it made its own name resolve to loopback (DNS rebinding).
"""

import ipaddress

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host):
    """Tells whether an address to listen on is reached from this computer only.

    Args:
        host: str. A name or an IP address.
    """
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host):
    """Returns the names clients may call a server by, a frozenset of str; None allows all.

    Args:
        host: str. Where it listens.
    """
    if not is_loopback(host):
        return None  # it has names that it does not know
    return frozenset((*_LOOPBACK_NAMES, f"[{host}]" if ":" in host else host.lower()))


def stranger(method, headers, hosts):
    """Returns why a request is none of a program's on this computer or of the page, "" if it is.

    Args:
        method: str. Of HTTP.
        headers: dict of str -> str. Names in lower case.
        hosts: frozenset of str or None. See `allowed_hosts`.
    """
    host = headers.get("host", "").lower()
    if hosts is not None and _without_port(host) not in hosts:
        return f"The Host of a request should be {', '.join(_LOOPBACK_NAMES)}."
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
        return "Pages of other origins may not ask this server."
    # Browsers that send no Origin with some requests send this; programs send neither.
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        is_link = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
        if not is_link:
            return "Pages of other sites may not ask this server."
    return ""


def is_json(content_type):
    """Tells whether a Content-Type is JSON; no page can send it elsewhere without asking first.

    Args:
        content_type: str. None given, "", counts as JSON.
    """
    return content_type.partition(";")[0].strip().lower() in ("", "application/json")


def _without_port(host):
    name, colon, port = host.rpartition(":")
    return name if colon and (port.isdigit() or not port) and not name.endswith(":") else host
