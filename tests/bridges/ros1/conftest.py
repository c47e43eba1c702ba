"""A master of ROS 1 in a few lines, so that the bridge is tested where no ROS is installed."""

from __future__ import annotations

import socketserver
import struct
import threading
from collections.abc import Iterator
from typing import Any
from xmlrpc.client import ServerProxy
from xmlrpc.server import SimpleXMLRPCRequestHandler, SimpleXMLRPCServer

import pytest


class _Server(socketserver.ThreadingMixIn, SimpleXMLRPCServer):
    daemon_threads = True
    allow_reuse_address = True


class _Handler(SimpleXMLRPCRequestHandler):
    rpc_paths = ("/", "/RPC2")


class SmallMaster:
    """Keeps who publishes, hears and serves what, and parameters; tells hearers of publishers."""

    def __init__(self, port: int = 0) -> None:
        self.publishers: dict[str, dict[str, str]] = {}
        self.subscribers: dict[str, dict[str, str]] = {}
        self.services: dict[str, tuple[str, str]] = {}
        self.nodes: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.parameters: dict[str, Any] = {}
        self._server = _Server(("127.0.0.1", port), _Handler, logRequests=False, allow_none=True)
        self.port: int = self._server.server_address[1]
        self.uri = f"http://127.0.0.1:{self.port}/"
        self._server.register_instance(self)
        self._thread = threading.Thread(target=lambda: self._server.serve_forever(0.02), daemon=True)
        self._thread.start()

    def getPid(self, caller: str) -> tuple[int, str, int]:
        return 1, "", 4711

    def lookupNode(self, caller: str, node: str) -> tuple[int, str, str]:
        return (1, "", self.nodes[node]) if node in self.nodes else (-1, "unknown node", "")

    def registerPublisher(self, caller: str, topic: str, kind: str, uri: str) -> tuple[int, str, list[str]]:
        self.nodes[caller] = uri
        self.types[topic] = kind
        self.publishers.setdefault(topic, {})[caller] = uri
        for hearer in set(self.subscribers.get(topic, {}).values()):
            with ServerProxy(hearer) as proxy:
                proxy.publisherUpdate("/master", topic, sorted(self.publishers[topic].values()))
        return 1, "", sorted(self.subscribers.get(topic, {}).values())

    def registerSubscriber(self, caller: str, topic: str, kind: str, uri: str) -> tuple[int, str, list[str]]:
        self.nodes[caller] = uri
        self.subscribers.setdefault(topic, {})[caller] = uri
        return 1, "", sorted(self.publishers.get(topic, {}).values())

    def unregisterPublisher(self, caller: str, topic: str, uri: str) -> tuple[int, str, int]:
        return 1, "", int(self.publishers.get(topic, {}).pop(caller, None) is not None)

    def unregisterSubscriber(self, caller: str, topic: str, uri: str) -> tuple[int, str, int]:
        return 1, "", int(self.subscribers.get(topic, {}).pop(caller, None) is not None)

    def registerService(self, caller: str, name: str, where: str, uri: str) -> tuple[int, str, int]:
        self.nodes[caller] = uri
        self.services[name] = (where, uri)
        return 1, "", 1

    def unregisterService(self, caller: str, name: str, where: str) -> tuple[int, str, int]:
        return 1, "", int(self.services.pop(name, None) is not None)

    def lookupService(self, caller: str, name: str) -> tuple[int, str, str]:
        return (1, "", self.services[name][0]) if name in self.services else (-1, "nobody serves it", "")

    def getParam(self, caller: str, key: str) -> tuple[int, str, Any]:
        return (1, "", self.parameters[key]) if key in self.parameters else (-1, "not set", 0)

    def setParam(self, caller: str, key: str, value: Any) -> tuple[int, str, int]:
        self.parameters[key] = value
        return 1, "", 0

    def deleteParam(self, caller: str, key: str) -> tuple[int, str, int]:
        for known in [name for name in self.parameters if name == key or name.startswith(f"{key}/")]:
            del self.parameters[known]
        return 1, "", 0

    def subscribeParam(self, caller: str, uri: str, key: str) -> tuple[int, str, dict[str, Any]]:
        return 1, "", {}

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def master() -> Iterator[SmallMaster]:
    server = SmallMaster()
    yield server
    server.close()


def frame(data: bytes) -> bytes:
    return struct.pack("<I", len(data)) + data


def header(**fields: str) -> bytes:
    return frame(b"".join(frame(f"{key}={value}".encode()) for key, value in fields.items()))
