"""A Ray cluster to train runs on: joined at an address or started here, and observed."""

from __future__ import annotations

import contextlib
import io
import itertools
import logging
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from twofold.errors import UserError

# Ray reads these when it is imported.
os.environ.update(
    {
        # This keeps a cluster that is started here on 127.0.0.1, out of others' reach.
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # avoids a FutureWarning
        # Ask a silent node for a sign of life after a minute instead of five, which is as soon as
        # nodes permit. Wait 20 seconds for its answer instead of two minutes.
        "RAY_grpc_client_keepalive_time_ms": "65000",
        "RAY_grpc_client_keepalive_timeout_ms": "20000",
        # Seconds for a node to start, instead of 30, which a busy machine exceeds.
        "RAY_raylet_start_wait_time_s": "120",
        **os.environ,
    }
)

import ray

import psutil  # isort: skip  # Ray brings it along

DIAL, ANSWER = 5.0, 20.0  # seconds to reach an address, and for a cluster there to answer
PATIENCE = 5.0  # or as many times as long as Ray's import takes, which is long on a busy machine
GRACE = 2.0  # seconds for the processes of a cluster to end by themselves
OBJECTS = 100 * 2**20  # bytes of shared memory in a cluster started here: runs are small
LOOK_EVERY = 0.5  # seconds between two looks at the nodes, or readings of messages
LOOK_FOR_HEAD, LOST = 3.0, 4  # seconds between two looks at the head; how many may be in vain

# Ray tries an address for minutes and prints messages. A process that can be stopped tries first.
PROBE = """
import logging, sys
import ray
print("ready", flush=True)
try:
    ray.init(sys.argv[1], log_to_driver=False, logging_level=logging.CRITICAL)
except Exception as error:
    sys.exit(" ".join(str(error).split()) or repr(error))
"""


@contextmanager
def cluster(address: str | None, workers: int | None) -> Iterator[None]:
    """Connect to the cluster at an address, or start one, unless already connected to one."""
    if ray.is_initialized():
        yield
        return
    if address is not None:
        _probe(address)
    try:
        try:
            with _interrupts_put_off():
                _connect(address, workers)
        except Exception as error:  # Ray raises a plain Exception if a node starts too late
            why = (str(error).strip() or repr(error)).splitlines()[0]
            raise UserError(
                f"can't {'join' if address else 'start'} a Ray cluster: {why}"
            ) from error
        yield
    finally:
        # A joined cluster continues to run. Ray's last messages do not belong in the output.
        with _interrupts_put_off(), contextlib.redirect_stdout(io.StringIO()):
            started_here = [] if address else _processes()
            ray.shutdown()
            _end(started_here)


def _connect(address: str | None, workers: int | None) -> None:
    quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address is not None:
        ray.init(address, **quiet)
        return
    ray.init(
        "local",
        num_cpus=workers,
        include_dashboard=False,
        object_store_memory=OBJECTS,
        **quiet,
    )


def _processes() -> list[psutil.Process]:
    """Return all processes of the cluster that this process has started."""
    node: Any = ray._private.worker._global_node
    found: list[psutil.Process] = []
    for info in itertools.chain.from_iterable(node.all_processes.values() if node else ()):
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(info.process.pid)
            found += [process, *process.children(recursive=True)]
    return found


def _end(processes: list[psutil.Process]) -> None:
    """Kill what Ray has left: without its head, a cluster lives for another minute."""
    _, left = psutil.wait_procs(processes, timeout=GRACE)
    for process in left:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()


@contextmanager
def _interrupts_put_off() -> Iterator[None]:
    """Delay Ctrl-C and SIGTERM: they would crash Ray as it starts, or leave processes behind."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    signals_received: list[int] = []
    signals = (signal.SIGINT, signal.SIGTERM)
    handlers = [
        signal.signal(each, lambda number, frame: signals_received.append(number))
        for each in signals
    ]
    try:
        yield
    finally:
        for each, handler in zip(signals, handlers, strict=True):
            signal.signal(each, handler)
    if signals_received:
        signal.raise_signal(signal.Signals(signals_received[0]))


def _probe(address: str) -> None:
    """Raise UserError at once if there is no cluster that this process can join."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if host and port.isdigit():
        try:
            socket.create_connection((host.strip("[]"), int(port)), timeout=DIAL).close()
        except OSError as error:
            raise UserError(f"no Ray cluster at {address}: {error.strerror or error}") from None
    code, said = _answer(address)
    if code is None:
        if "Unauthenticated" in said:
            why = f"the Ray cluster at {address} wants its token: set RAY_AUTH_MODE=token"
        else:
            why = (
                f"no Ray cluster at {address}, or none that has this machine for a node "
                f"(`ray start --address {address}` makes it one)"
            )
        raise UserError(why)
    if code != 0:
        raise UserError(f"can't join the Ray cluster at {address}: {said.strip().splitlines()[-1]}")


def _answer(address: str) -> tuple[int | None, str]:
    """Return the exit code of a process that joins the cluster, and what it says.

    The code is None if the process takes too long.
    """
    start = time.monotonic()
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([sys.executable, "-c", PROBE, address], **pipes)
    try:
        assert process.stdout is not None
        process.stdout.readline()  # it has imported Ray
        limit = max(ANSWER, PATIENCE * (time.monotonic() - start))
        _, said = process.communicate(timeout=limit)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        process.kill()
        return None, process.communicate()[1]
    finally:
        process.kill()


class Head:
    """The cluster's head. Ray ends the whole process if it is lost: this notices it earlier."""

    def __init__(self) -> None:
        host, _, port = ray.get_runtime_context().gcs_address.rpartition(":")
        self._place = host.strip("[]"), int(port)
        self._looked, self._in_vain = time.monotonic(), 0

    @property
    def lost(self) -> bool:
        return self._in_vain >= LOST

    def check(self) -> None:
        """Raise UserError if the head has not answered for some time."""
        if time.monotonic() - self._looked < LOOK_FOR_HEAD:
            return
        self._looked = time.monotonic()
        try:
            socket.create_connection(self._place, timeout=LOOK_FOR_HEAD).close()
            self._in_vain = 0
        except OSError:
            self._in_vain += 1
        if self.lost:
            raise UserError(
                "the Ray cluster is gone: what is finished is kept, and the same command continues "
                "once the cluster is back"
            )


class Nodes:
    """The nodes of a cluster and their resources, which change when nodes come and go.

    A thread asks the head, since a call waits forever if the head is gone.
    """

    def __init__(self) -> None:
        self._closed = threading.Event()
        self._look()
        threading.Thread(target=self._keep_looking, daemon=True).start()

    def _look(self) -> None:
        self.resources: dict[str, float] = ray.cluster_resources()
        self.all: list[dict[str, Any]] = ray.nodes()

    def _keep_looking(self) -> None:
        while not self._closed.wait(LOOK_EVERY):
            with contextlib.suppress(Exception):  # the next look may succeed
                self._look()

    def close(self) -> None:
        self._closed.set()


class Hushed:
    """Standard output without the messages of Ray's threads, such as that a node was lost."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if threading.current_thread().name.startswith("ray_"):
            return len(text)
        return self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
