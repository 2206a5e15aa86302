"""A server of the page for this machine only, which updates the page when runs finish."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Lock
from typing import Any, cast

from twofold.errors import UserError
from twofold.experiments.store import Store
from twofold.report.page.contents import Known, page_contents
from twofold.report.page.document import as_json, document

HOST, PORT = "127.0.0.1", 8000
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",  # in addition to the page's own policy
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Watched:
    """The contents of a store's page, as JSON, with a tag that changes when they do."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: Known = {}
        self._seen: object = None
        self._lock = Lock()
        self._made = ("", "")
        self._page = b""  # of these contents, built when it is first asked for

    def contents(self) -> tuple[str, str]:
        """Return the contents and their tag, computed again only if the store has changed."""
        with self._lock:
            version = _seen(self._store.folder)
            if version != self._seen:
                folder = self._store.folder  # it may be missing while it is created again
                runs = self._store.runs(curves=True) if folder.is_dir() else []
                text = as_json(page_contents(runs, str(folder), version[1], self._known))
                self._made = text, hashlib.sha256(text.encode()).hexdigest()[:16]
                self._page, self._seen = b"", version
            return self._made

    def page(self) -> bytes:
        """Return the page of the contents. It has megabytes, and many may ask at once."""
        text, tag = self.contents()
        with self._lock:
            if self._made != (text, tag):  # the store has changed meanwhile
                return document(text, tag).encode()
            self._page = self._page or document(text, tag).encode()
            return self._page


def _seen(folder: Path) -> tuple[frozenset[tuple[str, int]], int]:
    """Return run folders with the times of their last change, and the number of begun runs."""
    runs = [(e.name, e.stat().st_mtime_ns) for e in _folders(folder)]
    return frozenset(runs), len(_folders(folder / ".work"))


def _folders(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [e for e in entries if e.is_dir() and not e.name.startswith(".")]
    except FileNotFoundError:
        return []


class Handler(BaseHTTPRequestHandler):
    """The handler of two addresses, which can only be read."""

    server_version, sys_version = "twofold", ""
    timeout = 30.0  # seconds for a client to say something

    def __init__(self, watched: Watched, *args: Any) -> None:
        self._watched = watched
        super().__init__(*args)

    def do_GET(self) -> None:
        port = cast(ThreadingHTTPServer, self.server).server_port
        if self.headers["Host"] not in (f"{HOST}:{port}", f"localhost:{port}"):
            # A page of a different site whose name was resolved to this machine (DNS rebinding).
            self._answer(HTTPStatus.MISDIRECTED_REQUEST)
            return
        answers: dict[str, Callable[[], None]] = {"/": self._page, "/contents.json": self._contents}
        answers.get(self.path, partial(self._answer, HTTPStatus.NOT_FOUND))()

    def do_HEAD(self) -> None:
        self.do_GET()

    def _page(self) -> None:
        self._answer(HTTPStatus.OK, self._watched.page(), "text/html; charset=utf-8")

    def _contents(self) -> None:
        text, tag = self._watched.contents()
        if self.headers["If-None-Match"] == f'"{tag}"':
            self._answer(HTTPStatus.NOT_MODIFIED)
        else:
            self._answer(HTTPStatus.OK, text.encode(), "application/json", ETag=f'"{tag}"')

    def _answer(
        self, status: HTTPStatus, body: bytes = b"", kind: str = "text/plain", **more: str
    ) -> None:
        self.send_response(status)
        for name, value in (HEADERS | more).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Log nothing, since the page asks continually."""


class PageServer(ThreadingHTTPServer):
    """A server that many clients may ask at once, and that a client may leave at any time."""

    daemon_threads = True
    request_queue_size = 512

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a client that has gone; a real error is shown in one line."""
        error = sys.exception()
        if not isinstance(error, ConnectionError | TimeoutError):
            print(f"twofold: the page can't be served: {error!r}", file=sys.stderr)


def page_server(store: Store, port: int | None = None) -> ThreadingHTTPServer:
    """Return a server of the store's page on a port; by default the usual or any free one."""
    handler = partial(Handler, Watched(store))
    for attempt in (PORT, 0) if port is None else (port,):
        try:
            return PageServer((HOST, attempt), handler)
        except (OSError, OverflowError) as error:
            reason = error
    raise UserError(f"can't serve on port {port}: {reason}")
