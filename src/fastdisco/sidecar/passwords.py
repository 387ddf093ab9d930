"""Passwords of users, checked against bcrypt hashes: slow on purpose, so never on the loop, few at a time, and remembered.

Who guesses can neither fill the queue nor push out what is known of users: each address has only a share of the queue, and right passwords
are remembered apart from wrong ones."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import os
from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping

import bcrypt

from fastdisco.errors import ConfigError

_MOST_WRONG = 1000  # that are remembered, the last ones asked for
_AT_ONCE = 1  # checks: who guesses passwords must not take all cores
_MOST_WAITING = 32  # passwords to be checked; a few seconds for the last one
_MOST_OF_ONE = 4  # of them, from the same address
NOBODY = b"$2b$10$" + b"." * 53  # what the password of a user who is not there is checked against, as long as of one who is


class TooManyError(Exception):
    """So many passwords wait for their check that this one is not taken."""


class Passwords:
    """Of one set of users: name → hash."""

    def __init__(self, users: Mapping[str, str]) -> None:
        self._users = users
        self._key = os.urandom(32)
        self._right: dict[str, bytes] = {}  # by user
        self._wrong: OrderedDict[bytes, None] = OrderedDict()
        self._turn = asyncio.Semaphore(_AT_ONCE)
        self._checks: dict[bytes, _Check] = {}
        self._of_one: Counter[str] = Counter()

    @staticmethod
    def check(name: object, hashed: object) -> None:
        """ConfigError if it is no bcrypt hash."""
        if not isinstance(hashed, str) or not hashed.startswith(("$2a$", "$2b$", "$2y$")) or len(hashed) != 60:
            raise ConfigError(f"basic_auth_users.{name}: must be a bcrypt hash")

    async def allow(self, authorization: str, address: str = "", has_gone: Callable[[], bool] = lambda: False) -> bool:
        """Whether this header has the name and the password of a user. TooManyError.

        `address` is the client's; what all who ask for it have gone from is not checked.
        """
        kind, _, coded = authorization.partition(" ")
        if kind.lower() != "basic":
            return False
        try:
            name, _, password = base64.b64decode(coded, validate=True).decode().partition(":")
        except ValueError:  # no base64, or no text in it
            return False
        # a password itself is not kept, and nobody can find it by what is
        known = hashlib.blake2b(f"{len(name)}:{name}{password}".encode(), key=self._key).digest()
        if self._right.get(name) == known:
            return True
        if known in self._wrong:
            self._wrong.move_to_end(known)
            return False
        check = self._checks.get(known)
        if check is None:
            if len(self._checks) >= _MOST_WAITING or self._of_one[address] >= _MOST_OF_ONE:
                raise TooManyError
            check = self._checks[known] = _Check()
            self._of_one[address] += 1
            check.task = asyncio.create_task(self._checked(check, known, name, password, address))
        check.waiting.append(has_gone)
        return await asyncio.shield(check.task)

    async def _checked(self, check: _Check, known: bytes, name: str, password: str, address: str) -> bool:
        try:
            async with self._turn:
                if all(has_gone() for has_gone in check.waiting):
                    return False
                hashed = self._users.get(name, "").encode() or NOBODY
                allowed = await asyncio.to_thread(_matches, password.encode(), hashed) and name in self._users
        finally:
            del self._checks[known]
            self._of_one -= Counter((address,))  # and forget those that have none
        if allowed:
            self._right[name] = known
        else:
            self._wrong[known] = None
            if len(self._wrong) > _MOST_WRONG:
                self._wrong.popitem(last=False)
        return allowed


class _Check:
    """Of one name and password, for all who ask with them."""

    task: asyncio.Task[bool]

    def __init__(self) -> None:
        self.waiting: list[Callable[[], bool]] = []


def _matches(password: bytes, hashed: bytes) -> bool:
    try:
        return bcrypt.checkpw(password[:72], hashed)  # bcrypt looks at no more, and refuses what is longer
    except ValueError:
        return False
