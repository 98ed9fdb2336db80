"""The check of `Host` and `Origin`: a local server answers programs and its own page only.

Any page that is open in a browser can send requests to loopback. Without this check it could use
the computer, or read answers through a name that resolves to loopback (DNS rebinding).
"""

import ipaddress

_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def is_loopback(host):
    """Returns whether only this computer can reach an address that a server listens on.

    Args:
        host: str. A name or an IP address.
    """
    try:
        return host.lower() == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def allowed_hosts(host):
    """Returns the names by which clients may address a server, a frozenset of str; None allows all.

    Args:
        host: str. Address that it listens on.
    """
    if not is_loopback(host):
        return None  # it may have names that it does not know
    return frozenset((*_LOOPBACK_NAMES, f"[{host}]" if ":" in host else host.lower()))


def reason_to_refuse(method, headers, hosts):
    """Returns why a request comes from neither a program nor the own page; "" if it does.

    Args:
        method: str. HTTP method.
        headers: Mapping of str -> str. Names in lower case.
        hosts: frozenset of str or None. See `allowed_hosts`.
    """
    host = headers.get("host", "").lower()
    if hosts is not None and _without_port(host) not in hosts:
        return f"The header `Host` must be one of {', '.join(_LOOPBACK_NAMES)}."
    origin = headers.get("origin")
    if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
        return "Pages of other origins must not use this server."
    # Browsers that omit Origin from some requests send this; programs send neither.
    is_link = method == "GET" and headers.get("sec-fetch-mode") == "navigate"
    if headers.get("sec-fetch-site", "none") not in ("none", "same-origin") and not is_link:
        return "Pages of other sites must not use this server."
    return ""


def is_json(content_type):
    """Returns whether a Content-Type, "" if there is none, is JSON.

    A page of another origin cannot send this type without asking the server first.
    """
    return content_type.partition(";")[0].strip().lower() in ("", "application/json")


def _without_port(host):
    name, colon, port = host.rpartition(":")
    return name if colon and (port.isdigit() or not port) and not name.endswith(":") else host
