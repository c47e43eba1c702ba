"""Who may connect to a bridge over WebSockets: programs, and web pages of listed origins.

Every web page that is open in a browser can open a WebSocket to this machine; the same-origin policy does not hold for
them.  The browser states the page's origin (scheme, host and port) in the header ``Origin``, about which a page cannot
lie (RFC 6454, RFC 6455 section 10.2).  Origins are compared exactly: a page of another port belongs to another program,
and ``null`` is what the browser states for sandboxed frames of any page.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

from roboyard.errors import InputError

KNOWN_ORIGINS: Final = (
    "https://app.foxglove.dev",
    "https://studio.foxglove.dev",
    "https://lichtblick-suite.github.io",
)
"""Web applications that read these protocols and are served by their makers."""
_ORIGIN: Final = re.compile(r"[a-z][a-z0-9+.-]*://[a-z0-9._:\[\]-]*")
_DEFAULT_PORTS: Final = {"http": 80, "https": 443, "ws": 80, "wss": 443}
_MAX_SHOWN: Final = 200


def check_origin(origin: str) -> str:
    """The origin, if it is written as browsers state it.

    Raises:
        InputError: It is ``null`` or a pattern, or it has a path, a capital letter, or its scheme's default port.
    """
    fault = _fault_of(origin)
    if fault:
        raise InputError(
            f"{origin[:_MAX_SHOWN]!r} {fault}",
            location="--allow-origin",
            valid="scheme://host or scheme://host:port as the browser states it, e.g. http://localhost:8080",
        )
    return origin


def _fault_of(origin: str) -> str:
    """Why ``origin`` cannot be allowed; "" if it can."""
    if origin == "null":
        return "is what browsers state for sandboxed frames of any page, and names nobody"
    if "*" in origin:
        return "is a pattern; each origin must be named"
    if not _ORIGIN.fullmatch(origin):
        return "is no origin"
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return "has no valid host and port"
    if not parts.hostname and origin != "file://":
        return "has no host"
    if port is not None and port == _DEFAULT_PORTS.get(parts.scheme):
        return f"names the default port of {parts.scheme}, which browsers leave out"
    return ""


class WebAccess:
    """Decides who may connect to one server.

    Args:
        host: Address that the server listens on.
        allow_origins: Origins of web pages that may connect, besides those of `KNOWN_ORIGINS`.

    Raises:
        InputError: One of ``allow_origins`` is no origin.
    """

    def __init__(self, host: str, allow_origins: Collection[str] = ()) -> None:
        self._origins = frozenset((*KNOWN_ORIGINS, *map(check_origin, allow_origins)))
        self._checks_host = _is_loopback(host)

    def refusal(self, origins: Sequence[str], hosts: Sequence[str]) -> str:
        """Why a request may not connect, as a sentence for people; "" if it may.

        Args:
            origins: Values of its header ``Origin``; programs that are no browsers state none.
            hosts: Values of its header ``Host``.
        """
        if len(origins) > 1:
            return "a request with several headers Origin was refused"
        if origins and origins[0] not in self._origins:
            return _refusal_of_origin(origins[0])
        if self._checks_host and (len(hosts) != 1 or not _is_loopback(_host_name(hosts[0]))):
            named = ", ".join(hosts)[:_MAX_SHOWN]
            return (
                f"a request for the host {named!a} was refused: the bridge listens on this machine only, "
                "as 127.0.0.1 or localhost (--bridge-host ADDR listens elsewhere)"
            )
        return ""


def _refusal_of_origin(origin: str) -> str:
    quoted_origin = ascii(origin[:_MAX_SHOWN])
    if _fault_of(origin):
        advice = "open the page from a web server and allow its origin: --allow-origin http://HOST:PORT"
    else:
        advice = f"if you trust it: --allow-origin {origin[:_MAX_SHOWN]}"
    return f"a web page of the origin {quoted_origin} wanted to connect and was refused ({advice})"


def _host_name(header: str) -> str:
    """The name or address in a header ``Host``, without its port."""
    try:
        return urlsplit(f"//{header}").hostname or ""
    except ValueError:
        return ""


def _is_loopback(host: str) -> bool:
    """Whether a name or address is this machine's own, which no other machine reaches."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
