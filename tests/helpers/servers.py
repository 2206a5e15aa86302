"""Real HTTP servers on the loopback interface, some of them badly behaved."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server:
    """Serves `files` by name. Behaviours:

    ranges: as a server should; whole: ignores Range; cut: breaks half-way through what is asked;
    wrong: serves other bytes; shifted: answers another range; mute: accepts and never answers;
    endless: sends zeros without end; drip: sends a zero every 20 milliseconds.
    """

    def __init__(self, files: dict[str, bytes], behaviour: str) -> None:
        self.files, self.behaviour = files, behaviour
        self.asked: list[tuple[str, str | None]] = []  # (name, Range header)
        self._http = _QuietServer(("127.0.0.1", 0), _Handler)
        self._http.daemon_threads = True
        self._http.owner = self  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self._http.server_port}/"
        threading.Thread(target=self._http.serve_forever, args=(0.01,), daemon=True).start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()


class _QuietServer(ThreadingHTTPServer):
    def handle_error(self, *_: Any) -> None:
        """A client that hangs up is part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        owner: Server = self.server.owner  # type: ignore[attr-defined]
        name, requested = self.path.lstrip("/"), self.headers.get("Range")
        owner.asked.append((name, requested))
        if owner.behaviour == "mute":
            time.sleep(5)
            return
        if owner.behaviour in ("endless", "drip"):
            self._send_zeros(1 << 20 if owner.behaviour == "endless" else 1)
            return
        if name not in owner.files:
            self.send_error(404)
            return
        body = owner.files[name]
        if owner.behaviour == "wrong":
            body = bytes(byte ^ 1 for byte in body)
        start = 0
        if requested and owner.behaviour != "whole":
            start = int(re.fullmatch(r"bytes=(\d+)-", requested)[1])  # type: ignore[index]
            if start >= len(body):
                self.send_error(416)
                return
        rest = body[start:]
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(rest)))
        if start:
            output = start + 1 if owner.behaviour == "shifted" else start
            self.send_header("Content-Range", f"bytes {output}-{len(body) - 1}/{len(body)}")
        self.end_headers()
        self.wfile.write(rest[: len(rest) // 2] if owner.behaviour == "cut" else rest)

    def _send_zeros(self, count: int) -> None:
        self.send_response(200)
        self.end_headers()
        while True:
            self.wfile.write(bytes(count))
            if count == 1:
                time.sleep(0.02)

    def log_message(self, *_: Any) -> None:
        pass


Serve = Callable[..., Server]  # starts a server that stops with the test


def closed_port() -> str:
    """Return an address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/"
