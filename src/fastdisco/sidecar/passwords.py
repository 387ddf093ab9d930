"""Passwords of users, checked against bcrypt hashes: slow on purpose, so never on the loop, few at a time, and remembered."""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import os
from collections import OrderedDict
from collections.abc import Mapping

import bcrypt

from fastdisco.errors import ConfigError

_MOST_REMEMBERED = 1000
_AT_ONCE = 1  # checks: who guesses passwords must not take all cores
NOBODY = b"$2b$10$" + b"." * 53  # what the password of a user who is not there is checked against, as long as of one who is


class Passwords:
    """Of one set of users: name → hash."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self._key = os.urandom(32)
        self._known: OrderedDict[bytes, bool] = OrderedDict()
        self._turn = asyncio.Semaphore(_AT_ONCE)

    @staticmethod
    def check(name: object, hashed: object) -> None:
        """ConfigError if it is no bcrypt hash."""
        if not isinstance(hashed, str) or not hashed.startswith(("$2a$", "$2b$", "$2y$")) or len(hashed) != 60:
            raise ConfigError(f"basic_auth_users.{name}: must be a bcrypt hash")

    async def allow(self, authorization: str) -> bool:
        """Whether this header has the name and the password of a user."""
        kind, _, coded = authorization.partition(" ")
        if kind.lower() != "basic":
            return False
        try:
            name, _, password = base64.b64decode(coded, validate=True).decode().partition(":")
        except (binascii.Error, UnicodeDecodeError):
            return False
        # a password itself is not kept, and nobody can find it by what is
        known = hashlib.blake2b(f"{len(name)}:{name}{password}".encode(), key=self._key).digest()
        if (allowed := self._known.get(known)) is None:
            hashed = self._users.get(name, "").encode() or NOBODY
            async with self._turn:
                if (allowed := self._known.get(known)) is None:  # others have asked the same meanwhile
                    allowed = await asyncio.to_thread(_matches, password.encode(), hashed) and name in self._users
                    self._known[known] = allowed
                    if len(self._known) > _MOST_REMEMBERED:
                        self._known.popitem(last=False)
        return allowed


def _matches(password: bytes, hashed: bytes) -> bool:
    try:
        return bcrypt.checkpw(password[:72], hashed)  # bcrypt looks at no more, and refuses what is longer
    except ValueError:
        return False
