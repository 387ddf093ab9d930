"""A peer as a running program: started on loopback, asked for its own metrics, and measured through the kernel."""

from __future__ import annotations

import json
import os
import random
import shutil
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from ..cases import Figures
from ..jobs import CLOSED, Job
from ..memory import peak, resident
from ..runs.child import RunError
from .samples import Samples

CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "fastdisco-peers"
"""Where `make peers` puts programs."""
EVERY = 0.1
"""Seconds between two looks at a peer's metrics: the grain of its figures."""
_ANSWERS = 10.0  # seconds in which a program must tell its version
_LAST_LINES = 5
_TICKS = os.sysconf("SC_CLK_TCK")


class Peer(ABC):
    """A program to compare with; a subclass knows its configuration and its metrics."""

    name: ClassVar[str]
    remark: ClassVar[str] = ""
    """What has to be known to read its figures."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @cached_property
    def version(self) -> str:
        """What it says of itself, which may be nothing; RunError if it cannot be started or does not know the question."""
        command = [str(self.path), *self.version_flags]
        try:
            done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=_ANSWERS, check=False)
        except OSError as error:
            raise RunError(f"{self.path} cannot be started: {error.strerror}") from None
        except subprocess.TimeoutExpired:
            raise RunError(f"{' '.join(command)} did not end within {_ANSWERS:g} s") from None
        said = (done.stdout + done.stderr).decode(errors="replace")
        if done.returncode:
            raise RunError(ending(" ".join(command), done.returncode, said))
        return said.strip().partition("\n")[0]

    version_flags: ClassVar[tuple[str, ...]] = ("--version",)

    @abstractmethod
    def command(self, folder: Path, port: int) -> list[str]:
        """How it is started, its configuration in `folder / "scrape.yml"`."""

    @abstractmethod
    def registered(self, samples: Samples, kept: Mapping[str, int], discovered: int) -> bool:
        """Whether each job has so many targets, out of all that were discovered."""

    @abstractmethod
    def kept(self, samples: Samples) -> dict[str, float]:
        """Targets by job."""

    @abstractmethod
    def handled(self, samples: Samples) -> float | None:
        """Objects that came, changed or went so far, if it tells when it is done with one."""

    @contextmanager
    def run(self, url: str, jobs: Sequence[Job]) -> Iterator[RunningPeer]:
        """The program, discovering from the server at `url`; it is gone at the end."""
        # JSON is YAML. A day between scrapes, and all of them to a closed port.
        scrape = [
            {"job_name": job.name, "scrape_interval": "1d", "kubernetes_sd_configs": [job.discovery(url)], "relabel_configs": job.rules()}
            for job in jobs
        ]
        if not all(one["relabel_configs"][-1] == {"target_label": "__address__", "replacement": CLOSED} for one in scrape):
            raise RunError("the last rule of each job of a peer must send its scrapes to a closed port")
        with tempfile.TemporaryDirectory(prefix="fastdisco-bench-") as name:
            folder = Path(name)
            (folder / "scrape.yml").write_text(json.dumps({"scrape_configs": scrape}))
            running = RunningPeer(self, folder, free_port())
            try:
                yield running
            finally:
                running.stop()


class RunningPeer:
    """One process of a peer."""

    def __init__(self, peer: Peer, folder: Path, port: int) -> None:
        self.peer = peer
        self._log = folder / "log"
        self._url = f"http://127.0.0.1:{port}/metrics"
        with self._log.open("wb") as log:
            self.began = time.monotonic()
            self._process = subprocess.Popen(
                peer.command(folder, port), stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def samples(self) -> Samples:
        """Its metrics now; none while it does not listen yet. RunError if it has ended."""
        if (status := self._process.poll()) is not None:
            raise RunError(ending(self.peer.name, status, self._log.read_text(errors="replace")))
        try:
            with urllib.request.urlopen(self._url, timeout=60) as answer:
                return Samples(answer.read().decode())
        except (urllib.error.URLError, ConnectionError):
            return Samples("")

    def wait(self, condition: Callable[[Samples], bool], *, timeout: float, what: str, every: float = EVERY) -> float:
        """The time on the monotonic clock at which its metrics first met the condition."""
        deadline = time.monotonic() + timeout
        while True:
            if condition(self.samples()):
                return time.monotonic()
            if time.monotonic() > deadline:
                raise RunError(f"{self.peer.name}: after {timeout:g} s still waiting for {what}")
            time.sleep(every)

    def cpu(self) -> float:
        """Seconds so far, all threads."""
        fields = Path(f"/proc/{self._process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def figures(self, now: float) -> Figures:
        """From its start until `now`."""
        pid = self._process.pid
        return {"wall": now - self.began, "cpu": self.cpu(), "peak": peak(pid), "steady": resident(pid)}

    def stop(self) -> None:
        """End it, and wait."""
        self._process.kill()
        self._process.wait()


def ending(program: str, status: int, written: str) -> str:
    """How a program ended that should not have, with the last lines of what it wrote; `status` is below 0 for a signal."""
    how = f"status {status}" if status >= 0 else f"signal {-status}"
    last = [line.rstrip() for line in written.splitlines() if line.strip()][-_LAST_LINES:]
    return f"{program} ended with {how}" + (":\n" + "\n".join(last) if last else " and wrote nothing")


def free_port() -> int:
    """A port below the kernel's ephemeral range: a client that retries must not connect to itself."""
    while True:
        port = random.randrange(20_000, 32_000)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port


def find(name: str) -> Path | None:
    """Where `make peers` puts it, or on PATH."""
    cached = CACHE / name
    if os.access(cached, os.X_OK):
        return cached
    found = shutil.which(name)
    return Path(found) if found else None
