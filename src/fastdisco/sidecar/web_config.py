"""What `--web.config.file` says is done, and followed when it changes."""

from __future__ import annotations

import asyncio
import logging
import ssl
import time
from pathlib import Path
from typing import TYPE_CHECKING

from aiohttp import web

from fastdisco.errors import ConfigError

from .passwords import Passwords, TooManyError
from .web_file import WebFile, read_web_file

if TYPE_CHECKING:
    from aiohttp.typedefs import Handler

logger = logging.getLogger("fastdisco")

FRESH_SECONDS = 2.0
"""Between two looks at the files: certificates are renewed, and users come and go, without a restart."""


class WebConfig:
    """The file as it is now; without one there is neither TLS nor a password."""

    def __init__(self, file: Path | None, content: WebFile) -> None:
        self._file = file
        self._content = content
        self._passwords = Passwords(content.users)
        self._seen = self._stamps()
        self.successful = True
        """Whether the file and those that it names were good when they were last read."""
        self.last_success = time.time()
        """Unix time at which they were."""

    @classmethod
    def read(cls, file: Path | None) -> WebConfig:
        """ConfigError with the key and the reason, also for a certificate that cannot be used."""
        return cls(file, read_web_file(file) if file is not None else WebFile())

    def tls(self) -> ssl.SSLContext | None:
        """For a connection that is made now; None without TLS."""
        return self._content.context

    def protect(self, app: web.Application) -> None:
        """From now on all its handlers are behind the passwords, and all its answers have the headers."""
        if self._file is not None:
            app.middlewares.append(self._guard)
            app.on_response_prepare.append(self._add_headers)

    @web.middleware
    async def _guard(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        content = self._content
        if content.rate_limit is not None and not content.rate_limit.take():
            return web.Response(status=429, text="Too Many Requests\n")
        if content.tls is not None and not content.tls.allows(request.get_extra_info("peercert")):
            return web.Response(status=403, text="the client's certificate is for another name\n")
        try:
            allowed = not content.users or await self._passwords.allow(
                request.headers.get("Authorization", ""), request.remote or "", lambda: request.transport is None
            )
        except TooManyError:
            return web.Response(status=503, text="too many passwords wait to be checked\n", headers={"Retry-After": "5"})
        if not allowed:
            return web.Response(status=401, text="Unauthorized\n", headers={"WWW-Authenticate": 'Basic realm="fastdisco"'})
        return await handler(request)

    async def _add_headers(self, _request: web.Request, response: web.StreamResponse) -> None:
        """Before an answer's first byte, however it is made."""
        response.headers.update(self._content.headers)

    async def keep_fresh(self, seconds: float = FRESH_SECONDS) -> None:
        """For ever: follows the files; what is bad leaves all as it is."""
        if self._file is None:
            return
        told = ""
        while True:
            await asyncio.sleep(seconds)
            stamps = await asyncio.to_thread(self._stamps)
            if stamps == self._seen:
                continue
            try:
                self._renew()
            except ConfigError as error:
                self.successful = False
                if str(error) != told:
                    logger.error("the file for the web server is bad, and the one before goes on: %s", error)
                told = str(error)
            else:
                self._seen, told = stamps, ""
                self.successful, self.last_success = True, time.time()
                logger.info("what %s says is followed from now on", self._file)

    def _renew(self) -> None:
        if self._file is None:
            return
        content = read_web_file(self._file)
        if (content.tls is None) != (self._content.tls is None):
            raise ConfigError(f"{self._file}: tls_server_config: TLS is turned on and off by a restart only")
        if content.users != self._content.users:
            self._passwords = Passwords(content.users)
        self._content = content

    def _stamps(self) -> list[tuple[int, int, int] | None]:
        files = [] if self._file is None else [self._file, *(self._content.tls.files if self._content.tls is not None else ())]
        return [_stamp(file) for file in files]


def _stamp(file: Path) -> tuple[int, int, int] | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
