"""Downloads from real servers on the loopback interface, good and bad."""

from __future__ import annotations

import hashlib
import os
import pty
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from helpers.servers import Serve, Server, closed_port

from twofold.datasets import fetch
from twofold.errors import UserError

BODY = bytes(range(256)) * 4000  # a megabyte


SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "file.bin"


def bring(target: Path, *servers: Server) -> None:
    fetch.download([server.url + "file.bin" for server in servers], target, SHA256)


def part(target: Path) -> Path:
    return target.with_name("file.bin.part")


def test_a_file_is_brought(serve: Serve, target: Path, capsys: pytest.CaptureFixture[str]) -> None:
    server = serve({"file.bin": BODY})
    bring(target, server)
    assert target.read_bytes() == BODY
    assert list(target.parent.iterdir()) == [target]
    assert server.asked == [("file.bin", None)]
    assert capsys.readouterr().err == f"fetching file.bin (1.0 MB) from {server.url[7:-1]}\n"


def test_it_is_resumed(serve: Serve, target: Path) -> None:
    server = serve({"file.bin": BODY})
    part(target).write_bytes(BODY[:300_000])
    bring(target, server)
    assert target.read_bytes() == BODY
    assert server.asked == [("file.bin", "bytes=300000-")]


def test_a_server_that_ignores_ranges(serve: Serve, target: Path) -> None:
    part(target).write_bytes(BODY[:300_000])
    bring(target, serve({"file.bin": BODY}, "whole"))
    assert target.read_bytes() == BODY


def test_a_whole_part_is_moved_into_place(serve: Serve, target: Path) -> None:
    part(target).write_bytes(BODY)
    bring(target, serve({"file.bin": BODY}))
    assert target.read_bytes() == BODY
    assert not part(target).exists()


def test_a_cut_connection_is_taken_up_again(serve: Serve, target: Path) -> None:
    server = serve({"file.bin": BODY}, "cut")
    with pytest.raises(UserError, match="the connection broke after"):
        bring(target, server)
    assert len(server.asked) == fetch.ATTEMPTS
    assert not target.exists()
    kept = part(target).stat().st_size
    assert kept > 0.9 * len(BODY)  # a half, and a half of what was left, ...
    good = serve({"file.bin": BODY})
    bring(target, good)
    assert good.asked == [("file.bin", f"bytes={kept}-")]
    assert target.read_bytes() == BODY


def test_a_broken_mirror_hands_over_to_the_next(serve: Serve, target: Path) -> None:
    cut, good = serve({"file.bin": BODY}, "cut"), serve({"file.bin": BODY})
    bring(target, cut, good)
    assert target.read_bytes() == BODY
    assert good.asked[0][1] is not None  # it went on from where the first had stopped


def test_wrong_bytes_are_deleted(serve: Serve, target: Path) -> None:
    with pytest.raises(UserError, match=r"cannot download file.bin .*wrong checksum, deleted"):
        bring(target, serve({"file.bin": BODY}, "wrong"))
    assert list(target.parent.iterdir()) == []


def test_a_wrong_mirror_hands_over_to_the_next(serve: Serve, target: Path) -> None:
    bring(target, serve({"file.bin": BODY}, "wrong"), serve({"file.bin": BODY}))
    assert target.read_bytes() == BODY


def test_a_wrong_part_is_deleted(serve: Serve, target: Path) -> None:
    server = serve({"file.bin": BODY})
    part(target).write_bytes(b"x" * 1000)
    with pytest.raises(UserError, match="wrong checksum"):
        bring(target, server)
    bring(target, server)  # the next attempt begins anew
    assert target.read_bytes() == BODY


def test_another_range_is_refused(serve: Serve, target: Path) -> None:
    part(target).write_bytes(BODY[:1000])
    with pytest.raises(UserError, match="another range"):
        bring(target, serve({"file.bin": BODY}, "shifted"))
    assert part(target).read_bytes() == BODY[:1000]


def test_a_missing_file(serve: Serve, target: Path) -> None:
    with pytest.raises(UserError, match="404"):
        bring(target, serve({}))


def test_nobody_answers(target: Path) -> None:
    with pytest.raises(UserError, match="Connection refused"):
        fetch.download([closed_port() + "file.bin"], target, SHA256)


def test_a_name_that_does_not_resolve(target: Path) -> None:
    with pytest.raises(UserError, match=r"no-such-host\.invalid: ") as caught:
        fetch.download(["http://no-such-host.invalid/file.bin"], target, SHA256)
    assert "\n" not in str(caught.value)


def test_a_mute_server(serve: Serve, target: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fetch, "TIMEOUT", 0.2)
    with pytest.raises(UserError, match="timed out"):
        bring(target, serve({"file.bin": BODY}, "mute"))


def test_something_that_does_not_speak_http(target: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(1000)
            connection.sendall(b"\x16\x03 nonsense\r\n\r\n")
            connection.close()

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(UserError, match="cannot download"):
            fetch.download([f"http://127.0.0.1:{listener.getsockname()[1]}/"], target, SHA256)


def test_a_bar_on_a_terminal(serve: Serve, target: Path) -> None:
    server = serve({"file.bin": BODY})
    script = (
        "import sys; from pathlib import Path; from twofold.datasets import fetch\n"
        "fetch.download([sys.argv[1]], Path(sys.argv[2]), sys.argv[3])"
    )
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", script, server.url + "file.bin", str(target), SHA256]
    environment = {**os.environ, "COLUMNS": "100", "TERM": "xterm"}
    subprocess.run(command, stderr=theirs, check=True, env=environment)
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert "file.bin from 127.0.0.1" in shown
    assert "1.0/1.0 MB" in shown
    assert target.read_bytes() == BODY
