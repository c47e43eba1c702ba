"""Who may look and who may steer: an address on this machine, an origin that is our own page, a token.

Any page that somebody has open in the same browser can reach 127.0.0.1.  It can neither read the token, which only the
address that was printed carries, nor lie about its origin, which the browser states.
"""

from __future__ import annotations

import hmac
import secrets
from urllib.parse import urlsplit

_LOOPBACK = ("127.0.0.1", "localhost", "[::1]")


class Access:
    """What a browser must bring.

    Args:
        token: None: a new one that nobody can guess.

    Attributes:
        token: Whoever has it may look and ask for control.
    """

    def __init__(self, token: str | None = None) -> None:
        self.token = token or secrets.token_urlsafe(18)

    def refusal_of_page(self, host: str | None) -> str:
        """Why a request for a file is refused; "" if it is not.

        A name of somebody else's that leads to this machine (DNS rebinding) is none of ours.

        Args:
            host: As the request states it, with or without a port.
        """
        name = (host or "").rpartition(":")[0] if (host or "").rpartition(":")[2].isdecimal() else host
        return "" if name in _LOOPBACK else "not an address of this machine"

    def refusal(self, host: str | None, origin: str | None, token: str) -> str:
        """Why a request for a socket is refused; "" if it is not.

        Args:
            host: As the request states it: name and port.
            origin: Of the page that asks; None where it is no browser.
            token: That it brings.
        """
        if self.refusal_of_page(host):
            return self.refusal_of_page(host)
        if origin is not None:
            said = urlsplit(origin)
            if said.scheme != "http" or said.netloc != host:
                return "another origin"
        if not hmac.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            return "a wrong token"
        return ""
