"""The synthetic API server in a process of its own, started and controlled from Python."""

from __future__ import annotations

import asyncio
import contextlib
import http.client
import ssl
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import orjson

from fastdisco.synthetic.resources import resource_named


class RemoteControl:
    """What can be done to a synthetic server that runs elsewhere; `url` is where."""

    def __init__(self, url: str) -> None:
        self.url = url

    def control(self, name: str, /, argument: Any = None, **arguments: Any) -> Any:
        """One control of `fastdisco.synthetic.control.Control`, by its name; `ValueError` with the server's words if it refuses.

        With no argument at all it is a GET.
        """
        given = argument if argument is not None else arguments
        body = orjson.dumps(given) if given or argument is not None else None
        code, answer = self.request("GET" if body is None else "POST", f"/control/{name}", body)
        result = orjson.loads(answer)
        if code != 200:
            raise ValueError(str(result.get("error") or result.get("message")))
        return result

    async def acontrol(self, name: str, /, argument: Any = None, **arguments: Any) -> Any:
        """The same, without blocking the loop."""
        return await asyncio.to_thread(self.control, name, argument, **arguments)

    def clear_requests(self) -> None:
        """Begin the books anew."""
        self.request("DELETE", "/control/requests")

    def put(self, resource: str, item: Mapping[str, Any]) -> None:
        """Create or replace one object."""
        self.control("apply", [{"put": resource_named(resource).plural, "object": item}])

    def delete(self, resource: str, key: str) -> None:
        """Delete the object with this key: `namespace/name`, or `name`."""
        self.control("apply", [{"delete": resource_named(resource).plural, "key": key}])

    def request(self, method: str, target: str, body: bytes | None = None) -> tuple[int, bytes]:
        """One request on a connection of its own: the status code and the body."""
        parts = urlsplit(self.url)
        connection: http.client.HTTPConnection
        if parts.scheme == "https":
            context = ssl.create_default_context()
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
            connection = http.client.HTTPSConnection("127.0.0.1", parts.port, timeout=300, context=context)
        else:
            connection = http.client.HTTPConnection("127.0.0.1", parts.port or 0, timeout=300)
        with contextlib.closing(connection):
            connection.request(method, target, body, {"Connection": "close"})
            response = connection.getresponse()
            return response.status, response.read()


class SyntheticProcess(RemoteControl):
    """A server process, as a sync or async context manager; `url` is known once it runs.

    `objects` is a mapping as in `--objects`, or a path; the other options are those of `python -m fastdisco.synthetic`,
    with underscores: `pods=1000, seed=1, token="t", watch_list=False`. The process ends with its parent.
    """

    def __init__(self, *, objects: Mapping[str, Any] | str | Path | None = None, **options: str | float | bool) -> None:
        super().__init__("")
        self._objects = objects
        self._options = options
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """The process id; `RuntimeError` unless it runs."""
        return self._running().pid

    def start(self) -> None:
        """Start the process and wait until it listens; `RuntimeError` with what it said if it does not."""
        with tempfile.TemporaryDirectory() as folder:
            self._process = process = subprocess.Popen(
                self._command(Path(folder)),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                start_new_session=True,  # a Ctrl-C is the parent's, which then stops the server in its turn
            )
            assert process.stdout is not None
            line = process.stdout.readline()
        if not line:
            self.stop()
            raise RuntimeError(f"the synthetic server did not start: exit status {process.returncode}")
        self.url = orjson.loads(line)["url"]

    def stop(self) -> None:
        """End the process and wait for it; harmless if it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        process.terminate()
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        await asyncio.to_thread(self.start)
        return self

    async def __aexit__(self, *exc: object) -> None:
        await asyncio.to_thread(self.stop)

    def _running(self) -> subprocess.Popen[bytes]:
        if self._process is None:
            raise RuntimeError("the synthetic server does not run")
        return self._process

    def _command(self, folder: Path) -> list[str]:
        command = [sys.executable, "-m", "fastdisco.synthetic"]
        if isinstance(self._objects, Mapping):
            file = folder / "objects.json"
            file.write_bytes(orjson.dumps(self._objects))
            command += ["--objects", str(file)]
        elif self._objects is not None:
            command += ["--objects", str(self._objects)]
        for name, value in self._options.items():
            flag = "--" + name.replace("_", "-")
            if value is True and name not in _NEGATED:
                command.append(flag)
            elif value is False:
                command += [f"--no-{flag[2:]}"] if name in _NEGATED else []
            elif value is not True:
                command += [flag, str(value)]
        return command


_NEGATED = ("watch_list", "v1")
