"""The files of the page, read from the package, and what browsers are told with them."""

from __future__ import annotations

from importlib.resources import files

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' blob: data:; "
        "connect-src 'self' ws:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
}
"""Nobody may put the page into one of theirs, and it loads nothing from elsewhere."""


def page_file(path: str) -> tuple[bytes, str] | None:
    """Content and type of a file of the page; None where there is none.

    Args:
        path: Of the request, without the query.
    """
    parts = [part for part in path.split("/") if part] or ["index.html"]
    suffix = "." + parts[-1].rpartition(".")[2]
    if len(parts) > 2 or suffix not in TYPES or any(part.startswith(".") for part in parts):
        return None
    found = files("roboyard.view").joinpath("page", *parts)
    return (found.read_bytes(), TYPES[suffix]) if found.is_file() else None
