"""Only programs and pages of listed origins reach a robot: no sandboxed frame, no file, no other local port."""

import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.bridges.web.conftest import WebRun
from tests.harness.live_run import poll
from websockets.exceptions import InvalidStatus
from websockets.sync.client import ClientConnection, connect

import roboyard as ry
from roboyard.bridges import FoxgloveBridge, RosbridgeBridge
from roboyard.bridges.web_access import KNOWN_ORIGINS, WebAccess, check_origin
from roboyard.cli.bridge_options import BridgeOptions
from roboyard.errors import InputError

LOCAL = ["127.0.0.1:8765"]
EXTERNAL = [
    "null",
    "",
    "file://",
    "http://localhost",
    "http://localhost:8080",
    "http://127.0.0.1:9090",
    "http://[::1]:9090",
    "http://evil.localhost",
    "http://evil.localhost:8765",
    "https://evil.example",
    "https://evil.foxglove.dev",
    "https://foxglove.dev",
    "http://app.foxglove.dev",
    "https://app.foxglove.dev:8443",
    "https://app.foxglove.dev.evil.example",
    "https://app.foxglove.dev/",
    "https://APP.foxglove.dev",
    "https://evil.lichtblick-suite.github.io",
    "https://lichtblick-suite.github.io@evil.example",
    "app://evil",
    "chrome-extension://abcdefgh",
]


def connected(where: str, protocol: str | None, headers: dict[str, str]) -> ClientConnection:
    offered: Any = None if protocol is None else [protocol]
    return connect(where, subprotocols=offered, additional_headers=headers, compression=None)


@pytest.mark.parametrize("origin", EXTERNAL)
def test_page_of_another_origin_is_refused(origin: str) -> None:
    assert WebAccess("127.0.0.1").refusal([origin], LOCAL)
    assert WebAccess("0.0.0.0").refusal([origin], ["robot.example:8765"])
    assert WebAccess("localhost", ["http://robot.example:8080"]).refusal([origin], LOCAL)


@pytest.mark.parametrize("origin", KNOWN_ORIGINS)
def test_known_web_applications_and_programs_may_connect(origin: str) -> None:
    assert WebAccess("127.0.0.1").refusal([origin], LOCAL) == ""
    assert WebAccess("127.0.0.1").refusal([], LOCAL) == ""
    assert WebAccess("127.0.0.1").refusal([origin, origin], LOCAL)


@given(st.text(max_size=40))
def test_only_listed_origins_are_allowed(origin: str) -> None:
    access = WebAccess("127.0.0.1", ["http://localhost:8080"])
    allowed = origin in (*KNOWN_ORIGINS, "http://localhost:8080")
    assert bool(access.refusal([origin], LOCAL)) != allowed


@given(
    st.sampled_from(["http", "https", "app", "vscode-webview"]),
    st.from_regex(r"[a-z][a-z0-9-]{0,10}(\.[a-z]{2,5})?", fullmatch=True),
    st.one_of(st.none(), st.integers(1024, 65535)),
)
def test_advice_of_a_refusal_lets_the_page_connect(scheme: str, host: str, port: int | None) -> None:
    origin = f"{scheme}://{host}" + (f":{port}" if port else "")
    refusal = WebAccess("127.0.0.1").refusal([origin], LOCAL)
    assert origin in refusal
    advised = refusal.partition("--allow-origin ")[2].rstrip(")")
    assert WebAccess("127.0.0.1", [advised]).refusal([origin], LOCAL) == ""


@pytest.mark.parametrize(
    ("origin", "fault"),
    [
        ("null", "sandboxed"),
        ("*", "pattern"),
        ("http://*.example", "pattern"),
        ("", "no origin"),
        ("localhost:8080", "no origin"),
        ("http://localhost:8080/", "no origin"),
        ("http://localhost:8080/page", "no origin"),
        ("HTTP://localhost", "no origin"),
        ("http://user@localhost", "no origin"),
        ("http://", "no host"),
        ("app://", "no host"),
        ("http://localhost:80", "default port"),
        ("https://robot.example:443", "default port"),
        ("http://localhost:99999", "no valid host"),
        ("http://[::1", "no valid host"),
    ],
)
def test_bad_allowed_origin_is_one_error(origin: str, fault: str) -> None:
    with pytest.raises(InputError, match=rf"--allow-origin: .*{fault}.*\(scheme://host"):
        check_origin(origin)
    for bridge in (FoxgloveBridge, RosbridgeBridge):
        with pytest.raises(InputError, match=fault):
            bridge(allow_origins=[origin])
    with pytest.raises(InputError, match=fault):
        BridgeOptions.from_options({"foxglove": True}, (), "127.0.0.1", None, (), allow_origins=[origin])


def test_allow_origin_without_web_bridge_is_refused() -> None:
    with pytest.raises(InputError, match=r"--allow-origin http://a:1 .*--rosbridge"):
        BridgeOptions.from_options({"ros2": True}, (), "127.0.0.1", None, (), allow_origins=["http://a:1"])
    bridging = BridgeOptions.from_options({"rosbridge": True}, (), "127.0.0.1", None, (), allow_origins=["http://a:1"])
    assert bridging.allow_origins == ("http://a:1",)


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8765", "127.0.0.1.evil.example", "10.0.0.1:8765", "", "[::1"]
)
def test_external_host_name_of_this_machine_is_refused(host: str) -> None:
    for bound in ("127.0.0.1", "localhost", "::1", "127.0.0.2"):
        assert "--bridge-host" in WebAccess(bound).refusal([], [host])
        assert WebAccess(bound).refusal([], [])
        assert WebAccess(bound).refusal([], [*LOCAL, host])
    assert WebAccess("0.0.0.0").refusal([], [host]) == ""


@pytest.mark.parametrize(
    "host", ["127.0.0.1:9000", "localhost", "localhost:1", "LOCALHOST:1", "[::1]:8765", "127.1.2.3:1"]
)
def test_any_local_port_is_accepted(host: str) -> None:
    assert WebAccess("127.0.0.1").refusal([], [host]) == ""  # through a tunnel of ssh


@pytest.mark.parametrize("bridge", ["foxglove", "rosbridge"])
def test_refused_page_gets_403_and_is_logged_once(live: WebRun, bridge: str) -> None:
    server = getattr(live, bridge)
    protocol = "foxglove.sdk.v1" if bridge == "foxglove" else None
    for origin in (*EXTERNAL, "http://sandbox.example:3000", "http://sandbox.example:3000"):
        with pytest.raises(InvalidStatus) as refused:
            connected(server.where, protocol, {"Origin": origin})
        assert refused.value.response.status_code == 403
    wanted = "'http://sandbox.example:3000' wanted to connect and was refused (if you trust it: --allow-origin http"
    poll(lambda: any(wanted in line for line in live.log_lines))
    assert len([line for line in live.log_lines if wanted in line]) == 1
    assert any("origin 'null'" in line for line in live.log_lines)
    assert server.counts["refused"] == len(EXTERNAL) + 2
    assert not live.robot.commands


@pytest.mark.parametrize("bridge", ["foxglove", "rosbridge"])
def test_rebound_host_name_gets_403(live: WebRun, bridge: str) -> None:
    where = getattr(live, bridge).where
    port = int(where.rsplit(":", 1)[1])
    with socket.create_connection(("127.0.0.1", port)) as raw:
        raw.sendall(
            b"GET / HTTP/1.1\r\nHost: evil.example\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
        )
        assert raw.makefile("rb").readline().split()[1] == b"403"


@pytest.mark.parametrize("kind", [FoxgloveBridge, RosbridgeBridge])
@pytest.mark.parametrize("origin", ["http://localhost:8080", "file://", "app://."])
def test_allowed_page_is_accepted(kind: Any, origin: str) -> None:
    protocol = "foxglove.sdk.v1" if kind is FoxgloveBridge else None
    with ry.Bus() as bus:
        bridge = kind(port=0, allow_origins=[origin])
        bridge.open(bus)
        try:
            for headers in ({"Origin": origin}, {}):
                with connected(bridge.where, protocol, headers) as peer:
                    assert peer.response is not None
                    assert peer.response.status_code == 101
            with pytest.raises(InvalidStatus):
                connected(bridge.where, protocol, {"Origin": "http://localhost:8081"})
        finally:
            bridge.close()
