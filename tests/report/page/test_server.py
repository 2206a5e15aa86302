"""The page's contents, document and server, without a browser: test_page_browser.py has one."""

from __future__ import annotations

import http.client
import json
import re
import threading

import numpy as np
import pytest
from helpers.runs import curve_run

from twofold import Store, UserError
from twofold.report.page.server import page_server

nan = np.nan


def contents_of(page: str) -> dict:
    """What a browser would read."""
    (text,) = re.findall(r'<script type="application/json" id="contents">(.*?)</script>', page)
    return json.loads(text)


def pair(first: list[float], second: list[float]) -> list[list[float]]:
    """Two tasks of four iterations: accuracies on the first, and on the second from its start."""
    return [first, [nan] * 4 + second]


ONE = pair([50, 60, 80, 90, 70, 60, 80, 89.5], [20, 40, 60, 80])


@pytest.fixture
def store(tmp_path) -> Store:
    store = Store(tmp_path / "runs")
    store.prepare()
    for method in ("er", "er+gem"):
        store.save(curve_run(method, ONE))
    return store


@pytest.fixture
def served(store):
    """The server's port, while it runs."""
    with page_server(store, 0) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


def ask(port: int, method: str, path: str, **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request(
        method, path, headers={name.replace("_", "-"): headers[name] for name in headers}
    )
    answer = connection.getresponse()
    answer.text = answer.read().decode()
    connection.close()
    return answer


def test_the_served_page_may_ask_its_own_server_and_nobody_else(served):
    answer = ask(served, "GET", "/")
    assert answer.status == 200
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "connect-src 'self';" in answer.text
    tag = re.search(r'data-tag="(\w+)"', answer.text)[1]
    assert ask(served, "GET", "/contents.json", If_None_Match=f'"{tag}"').status == 304
    again = ask(served, "GET", "/contents.json")
    assert json.loads(again.text) == contents_of(answer.text)
    assert again.headers["ETag"] == f'"{tag}"'


def test_a_finished_run_changes_the_contents(served, store):
    before = ask(served, "GET", "/contents.json")
    store.save(curve_run("er+agem", ONE))
    after = ask(served, "GET", "/contents.json", If_None_Match=before.headers["ETag"])
    assert after.status == 200
    methods = [cell["method"] for cell in json.loads(after.text)["cells"]]
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
