"""Finds real programs, starts them on loopback and stops them again."""

import asyncio
import os
import shutil
from collections.abc import Awaitable, Callable
from pathlib import Path

from bench.peers.program import CACHE

SYSTEM = {"openssl"}  # what a test needs besides the peers, taken from PATH


def find(name: str) -> Path | None:
    """The program of that name, or None; peers come from the cache only, for another version would find other targets."""
    if name in SYSTEM:
        found = shutil.which(name)
        return Path(found) if found else None
    path = CACHE / name
    return path if os.access(path, os.X_OK) else None


def need(name: str) -> Path:
    """The program of that name, which the test's marker has made sure of."""
    path = find(name)
    if path is None:
        raise FileNotFoundError(f"{name} is not in {CACHE}: run `make peers`")
    return path


async def until(condition: Callable[[], Awaitable[bool]], *, timeout: float, what: str, every: float = 0.1) -> None:
    """Asks again and again, for programs that tell of nothing by themselves; TimeoutError says what was waited for."""
    try:
        async with asyncio.timeout(timeout):
            while not await condition():  # noqa: ASYNC110 - another process sets no event
                await asyncio.sleep(every)
    except TimeoutError:
        raise TimeoutError(f"after {timeout:g} s still waiting for {what}") from None


class Program:
    """One running program, its output in a log file."""

    def __init__(self, *command: str | Path, log: Path) -> None:
        self.command = [str(part) for part in command]
        self.log = log
        self.process: asyncio.subprocess.Process | None = None

    @property
    def running(self) -> bool:
        return self.process is not None and self.process.returncode is None

    async def start(self, ready: Callable[[], Awaitable[bool]], *, timeout: float) -> None:
        """Returns when it is ready; a program that ends or is not ready in time is an error that shows the end of its log."""
        with self.log.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(*self.command, stdin=asyncio.subprocess.DEVNULL, stdout=log, stderr=log)

        async def up() -> bool:
            if not self.running:
                raise ChildProcessError(f"{self.command[0]} ended:\n{self.tail()}")
            return await ready()

        try:
            await until(up, timeout=timeout, what=f"{self.command[0]} to be ready")
        except TimeoutError as error:
            raise TimeoutError(f"{error}\n{self.tail()}") from None

    async def stop(self, *, grace: float = 20.0) -> None:
        """Asks it to end, and kills it when it does not."""
        if self.process is None or not self.running:
            return
        self.process.terminate()
        try:
            await asyncio.wait_for(self.process.wait(), grace)
        except TimeoutError:
            self.process.kill()
            await self.process.wait()

    async def kill(self) -> None:
        """Ends it without a chance to say goodbye to its clients."""
        if self.process is not None and self.running:
            self.process.kill()
            await self.process.wait()

    def tail(self, lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])
