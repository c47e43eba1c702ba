"""Who may look: a hostile page, a foreign name, a wrong token are refused; so is what no page would say."""

import socket
import urllib.error
import urllib.request

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.view.conftest import Stage
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from roboyard.errors import InputError
from roboyard.view.access import Access
from roboyard.view.holder import Holder
from roboyard.view.pages import page_file
from roboyard.view.server import CLIENT_LIMIT


@given(st.text())
def test_only_the_token_is_accepted(token: str) -> None:
    access = Access("right")
    refused = access.refusal("127.0.0.1:8711", "http://127.0.0.1:8711", token)
    assert bool(refused) == (token != "right")


@pytest.mark.parametrize(
    "origin",
    [
        "http://evil.example",
        "https://127.0.0.1:8711",
        "http://127.0.0.1:9999",
        "http://localhost:8711",
        "null",
        "",
        "file://",
    ],
)
def test_other_origin_is_refused(origin: str) -> None:
    assert Access("t").refusal("127.0.0.1:8711", origin, "t")


@pytest.mark.parametrize(
    "host", [None, "", "evil.example", "evil.example:8711", "127.0.0.1.evil.example", "10.0.0.1:1"]
)
def test_foreign_host_name_is_refused(host: str | None) -> None:
    access = Access("t")
    assert access.refusal_of_page(host)
    assert access.refusal(host, f"http://{host}", "t")


def test_tokens_are_different() -> None:
    assert len({Access().token for _ in range(50)}) == 50


@pytest.mark.parametrize(
    "path", ["/../server.py", "/page/../../server.py", "/.hidden.js", "/three/x/y.js", "/README.md", "/a"]
)
def test_files_outside_the_page_are_not_served(path: str) -> None:
    assert page_file(path) is None


def test_page_headers_forbid_frames_and_external_content(stage: Stage) -> None:
    with urllib.request.urlopen(stage.view.url.partition("#")[0]) as answer:
        assert answer.headers["X-Frame-Options"] == "DENY"
        policy = answer.headers["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in policy
    assert "default-src 'none'" in policy


def test_foreign_pages_and_guessed_tokens_get_no_socket(stage: Stage) -> None:
    address, _, token = stage.start().view.url.partition("#")
    base = address.replace("http", "ws") + "socket"
    for url, origin in ((f"{base}?token={token}", "http://evil.example"), (f"{base}?token=guess", None), (base, None)):
        with pytest.raises(InvalidStatus) as refused, connect(url, origin=origin):  # type: ignore[arg-type]
            pass
        assert refused.value.response.status_code == 403
    request = urllib.request.Request(address, headers={"Host": "evil.example"})
    with pytest.raises(urllib.error.HTTPError, match="403"):
        urllib.request.urlopen(request)
    assert stage.client(origin=address.rstrip("/")).wait_for("poses")


@pytest.mark.parametrize(
    "message",
    [
        "", "no JSON", "[]", "7", '{"op": 3}', "{}", '{"op": "dance"}', '{"op": "want"}', '{"op": "rate", "rate": NaN}',
        '{"op": "rate", "rate": 1e999}', '{"op": "rate", "rate": -1}', '{"op": "rate", "rate": true}', '{"op": "step"}',
        '{"op": "want", "topic": "\\u0000", "on": true}', "[" * 5000, '{"op": "seek", "time": 3}', b"\x00\x01",
    ],
)  # fmt: skip
def test_malformed_requests_are_refused_and_do_no_harm(stage: Stage, message: str | bytes) -> None:
    client = stage.start().client()
    client.control()
    client.socket.send(message)
    assert client.wait_for("refused")["what"]
    before = client.wait_for("poses")["t"]
    assert client.wait_for("poses")["t"] >= before


def test_too_long_message_ends_only_the_connection(stage: Stage) -> None:
    client = stage.start().client()
    client.socket.send("x" * 100_000)
    with pytest.raises(ConnectionClosed):
        client.wait_for("never")
    assert stage.client().wait_for("poses")


def test_flood_of_requests_is_throttled_and_the_run_goes_on(stage: Stage) -> None:
    client, other = stage.start(rate=1.0).client(), stage.client()
    client.control()
    start = other.wait_for("poses")["t"]
    for _ in range(3000):
        client.send("rate", rate=1.0)
    assert "too many" in client.wait_for("refused")["what"]
    assert other.wait_for("poses")["t"] > start
    assert stage.run.bus.inputs.dropped == 0


def test_number_of_viewers_is_limited(stage: Stage) -> None:
    for _ in range(CLIENT_LIMIT):
        stage.client()
    with pytest.raises(InvalidStatus) as refused:
        stage.client()
    assert refused.value.response.status_code == 503


def test_unfinished_request_does_not_delay_others(stage: Stage) -> None:
    with socket.create_connection(("127.0.0.1", stage.view.server.port)) as idle:
        idle.sendall(b"GET /socket HTTP/1.1\r\n")
        assert stage.start().client().wait_for("poses")


# -- control -----------------------------------------------------------------------------------------------------------
@given(st.lists(st.tuples(st.sampled_from(["came", "left", "take", "give", "keep"]), st.integers(1, 4)), max_size=40))
def test_at_most_one_connected_viewer_has_control(events: list[tuple[str, int]]) -> None:
    holder, there = Holder(), set[int]()
    for what, viewer in events:
        if what == "came":
            there.add(viewer)
            holder.came(viewer)
        elif what == "left":
            there.discard(viewer)
            holder.left(viewer)
        elif viewer in there:
            try:
                getattr(holder, what)(viewer)
            except InputError as error:
                assert what in ("give", "keep")
                assert holder.number != viewer, error
        assert holder.number is None or holder.number in there
        assert set(holder.asking) <= there - {holder.number}


def test_control_is_handed_over(stage: Stage) -> None:
    first, second = stage.start().client(), stage.client()
    first.control()
    assert second.ask("pause")["op"] == "refused"
    second.send("take")
    assert first.wait_for("control", asking=[second.number])["holder"] == first.number
    first.send("give")
    second.control()
    assert second.ask("pause")["op"] == "done"
    second.close()
    first.wait_for("control", viewers=[first.number])
    first.send("take")
    first.control()


def test_read_only_view_refuses_control(stage: Stage) -> None:
    stage.view.server.holder.read_only = True
    client = stage.start().client()
    for op in ("pause", "take", "end", "reset"):
        client.send(op)
        assert "looking only" in client.wait_for("refused")["what"]
    assert not stage.control.is_stopping
