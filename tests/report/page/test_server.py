"""The page's server."""

from __future__ import annotations

import json
import re
import socket
import struct
import threading

import pytest
from helpers.page import ONE, ask, contents_of
from helpers.runs import curve_run, saved

from twofold import Store, UserError
from twofold.report.page.server import Handler, page_server


@pytest.fixture
def store(tmp_path) -> Store:
    return Store(saved(tmp_path / "runs", [curve_run(method, ONE) for method in ("er", "er+gem")]))


@pytest.fixture
def served(store):
    """The server's port, while it runs."""
    with page_server(store, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def test_the_served_page_may_ask_its_own_server_and_nobody_else(served):
    answer = ask(served, "GET", "/")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "connect-src 'self';" in answer.text
    tag = re.search(r'data-tag="(\w+)"', answer.text)[1]
    assert ask(served, "GET", "/contents.json", If_None_Match=f'"{tag}"').status == 304
    second = ask(served, "GET", "/contents.json")
    assert json.loads(second.text) == contents_of(answer.text)
    assert second.headers["ETag"] == f'"{tag}"'


def test_a_finished_run_changes_the_contents(served, store):
    before = ask(served, "GET", "/contents.json")
    store.save(curve_run("er+agem", ONE))
    after = ask(served, "GET", "/contents.json", If_None_Match=before.headers["ETag"])
    assert after.status == 200
    methods = [cell["method"] for cell in json.loads(after.text)["groups"]]
    assert methods == ["er+agem", "er+gem", "er"]  # as the folders' names

    (store.folder / ".work" / "0123456789").mkdir(parents=True)
    assert json.loads(ask(served, "GET", "/contents.json").text)["begun"] == 1


@pytest.mark.parametrize(
    ("method", "path", "headers", "status"),
    [
        ("HEAD", "/", {}, 200),
        ("GET", "/../store.json", {}, 404),
        ("GET", "/contents.json?x", {}, 404),
        ("POST", "/", {}, 501),
        ("GET", "/", {"Host": "evil.example"}, 421),
        ("GET", "/contents.json", {"Host": "evil.example:8000"}, 421),
    ],
)
def test_it_answers_its_own_two_addresses_to_this_machine_alone(
    served, method, path, headers, status
):
    answer = ask(served, method, path, **headers)
    assert answer.status == status
    assert method != "HEAD" or answer.text == ""
    assert status < 400 or "rotated-mnist" not in answer.text


def test_this_machines_other_name_is_known(served):
    assert ask(served, "GET", "/", Host=f"localhost:{served}").status == 200


def test_a_port_that_is_taken_is_named_and_the_usual_one_is_no_must(store, served, monkeypatch):
    with pytest.raises(UserError, match=f"can't serve on port {served}: "):
        page_server(store, served)
    monkeypatch.setattr("twofold.report.page.server.PORT", served)
    with page_server(store) as other:
        assert other.server_port != served


def test_clients_that_leave_and_many_at_once_are_no_trouble(served, capsys):
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", served)) as client:
            # A reset instead of an orderly end: the answer finds nobody.
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            client.sendall(f"GET / HTTP/1.0\r\nHost: 127.0.0.1:{served}\r\n\r\n".encode())
    waiting = [socket.create_connection(("127.0.0.1", served), timeout=10) for _ in range(300)]
    assert ask(served, "GET", "/contents.json").status == 200
    for client in waiting:
        client.close()
    assert capsys.readouterr().err == ""


def test_a_silent_client_is_left(served, monkeypatch):
    assert 0 < Handler.timeout <= 60
    monkeypatch.setattr("twofold.report.page.server.Handler.timeout", 0.1)
    with socket.create_connection(("127.0.0.1", served), timeout=10) as client:
        assert client.recv(10) == b""
