"""XML-RPC over HTTP, as ROS 1's master and nodes speak it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, cast
from urllib.parse import urlsplit
from xml.parsers.expat import ExpatError
from xmlrpc.client import Error, Fault, dumps, loads

from roboyard.errors import InputError, MessageError, RoboyardError

Method = Callable[[str, tuple[Any, ...]], Awaitable[Any]]
"""Answers one call: (name, arguments)."""

_BODY_LIMIT: Final = 1 << 24
_LINES_LIMIT: Final = 100
_PATIENCE: Final = 5.0
_CODES: Final = {200: "OK", 400: "Bad Request", 405: "Method Not Allowed"}


class MasterError(RoboyardError):
    """The master, or a node, does not answer, or refuses."""


def split_uri(uri: str, scheme: str = "http") -> tuple[str, int]:
    """Host and port of a URI.

    Raises:
        InputError: it has none.
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port, parts = None, None, urlsplit("")
    if parts.scheme != scheme or not host or not port:
        raise InputError(f"'{uri[:200]}' is no address of ROS 1", valid=f"e.g. {scheme}://127.0.0.1:11311")
    return host, port


async def call(uri: str, method: str, *arguments: Any) -> Any:
    """Call ``method`` of the server at ``uri``: gives the third part of ROS's (code, text, value).

    Raises:
        InputError: ``uri`` is none.
        MasterError: no answer, no sense, or a refusal.
    """
    host, port = split_uri(uri)
    body = dumps(arguments, method, allow_none=True).encode()
    head = (
        f"POST /RPC2 HTTP/1.0\r\nHost: {host}:{port}\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    try:
        async with asyncio.timeout(_PATIENCE):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(head.encode() + body)
                await reader.readline()
                answer = await _read_body(reader)
            finally:
                writer.close()
    except (OSError, TimeoutError, asyncio.IncompleteReadError, ValueError, MessageError) as error:
        raise MasterError(f"{uri} does not answer {method}: {type(error).__name__} {error}".strip()) from error
    try:
        (found,), _ = loads(answer)
        code, text, value = cast("tuple[int, str, Any]", found)
    except Fault as fault:
        raise MasterError(f"{uri} fails in {method}: {fault.faultString}") from fault
    except (ExpatError, Error, ValueError, TypeError, LookupError) as error:
        raise MasterError(f"{uri} answers {method} with something else: {error}") from error
    if code != 1:
        raise MasterError(f"{uri} refuses {method}: {text}")
    return value


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, line: bytes, method: Method) -> None:
    """Answer the calls that come over one connection until it ends.

    Args:
        reader: The connection.
        writer: The connection.
        line: What was read of the first line already.
        method: Gives ROS's (code, text, value).

    Raises:
        MessageError: what came is no call.
        OSError, TimeoutError, asyncio.IncompleteReadError: the connection ended.
    """
    while True:
        if not line:
            line = await reader.read(1)
            if not line:
                return
        async with asyncio.timeout(_PATIENCE):
            first = line + await reader.readline()
            body = await _read_body(reader)
        line = b""
        if not first.startswith(b"POST "):
            writer.write(_response(405, b""))
            return
        try:
            arguments, name = loads(body)
            answer = dumps((await method(str(name), arguments),), methodresponse=True, allow_none=True)
        except (ExpatError, Error, ValueError, TypeError, LookupError) as error:
            writer.write(_response(400, b""))
            with suppress(OSError):
                await writer.drain()
            raise MessageError(f"{len(body)} bytes are no call: {error}") from error
        writer.write(_response(200, answer.encode()))
        await writer.drain()
        if first.rstrip().endswith(b"1.0"):
            return


async def _read_body(reader: asyncio.StreamReader) -> bytes:
    """Headers of HTTP, then as many bytes as they say.

    Raises:
        MessageError: too many headers, no sensible length, or a web page sent it: no node of ROS states an ``Origin``.
    """
    length = None
    for _ in range(_LINES_LIMIT):
        line = (await reader.readline()).strip()
        if not line:
            break
        key, _, value = line.partition(b":")
        if key.strip().lower() == b"origin":
            raise MessageError(f"a web page of the origin {value.strip()[:200].decode('latin-1')!a} may not call nodes")
        if key.strip().lower() == b"content-length":
            text = value.strip().decode("latin-1")
            length = int(text) if text.isdecimal() and len(text) < 12 else -1
    else:
        raise MessageError("headers of HTTP without end")
    if length is None or not 0 <= length <= _BODY_LIMIT:
        raise MessageError(f"claims {length} bytes of HTTP", valid=f"at most {_BODY_LIMIT}")
    return await reader.readexactly(length)


def _response(code: int, body: bytes) -> bytes:
    head = f"HTTP/1.1 {code} {_CODES[code]}\r\nContent-Type: text/xml\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body
