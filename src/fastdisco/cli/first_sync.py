"""Waiting for the first sync of a job, never in silence: what it waits for is told, and what cannot come is not waited for."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Collection
from typing import Any

from fastdisco.api_watcher import APIWatcher
from fastdisco.discovery import Discovery
from fastdisco.errors import FastdiscoError

from .log import hold, let_go

_DEFAULT_TIMEOUT = 60.0
_LOOK = 0.05  # seconds between two looks at the state
_HOLD = 5.0  # seconds in which most failures come to their end, which tells of them
_TELL = 10.0  # seconds between two words about what is waited for
_ATTEMPTS = 3  # then a server that cannot be reached will hardly be there soon

# What the next attempt will not change: all of 4xx but the codes that ask for it, and what is wrong on this side.
_HOPELESS = re.compile(r"status code 4(?!08|09|10|29)\d\d|cannot trust |cannot read |cannot use the TLS files ")
_UNREACHABLE = re.compile(r"cannot connect |no connection ")

logger = logging.getLogger("fastdisco")


class NoTargets(FastdiscoError):  # noqa: N818  says what there is
    """The first sync has not come, or cannot."""


async def first_sync(discovery: Discovery, job: APIWatcher, role: str | Collection[str], timeout: float | None) -> None:
    """Returns when `job`, the only one of `discovery`, has synced; NoTargets says why it has not.

    The log holds troubles back, and is left to the caller to let go.

    `role`: that of the job's configuration, or those of all. `timeout` None: a minute, less if the server cannot be reached; 0: for ever.
    """
    loop = asyncio.get_running_loop()
    roles = (role,) if isinstance(role, str) else role
    began = loop.time()
    told = began
    tries: dict[str, set[float]] = {}
    hold()
    synced = loop.create_task(job.synced())
    try:
        while not (await asyncio.wait([synced], timeout=_LOOK))[0]:
            watchers = [one for group in discovery.status()["groups"] for one in group["watchers"]]
            pending = [one for one in watchers if not one["settled"]]
            troubles = "; ".join(map(_trouble, pending or watchers))
            if timeout != 0:
                limit = _DEFAULT_TIMEOUT if timeout is None else timeout
                if reasons := _hopeless(watchers, pending, roles) or (_unreachable(pending, tries) if timeout is None else []):
                    raise NoTargets("; ".join(dict.fromkeys(reasons)))
                if loop.time() - began >= limit:
                    raise NoTargets(f"no first sync within {limit:g} s (--timeout SECONDS waits for longer): {troubles}")
            if loop.time() - began >= _HOLD:
                let_go()
            if loop.time() - told >= _TELL:
                told = loop.time()
                logger.warning("still waiting for the first sync: %s", troubles)
        await synced
    finally:
        synced.cancel()


def _hopeless(watchers: list[dict[str, Any]], pending: list[dict[str, Any]], roles: Collection[str]) -> list[str]:
    """Why no sync will come: all that the roles themselves read is refused, or something has failed for good."""
    own = [one for one in watchers if one["kind"] in roles]
    if own and all(one["refused"] and not one["listed"] for one in own):
        return [f"the server refused {one['path']}: {one['refused']}" for one in own]
    return [_trouble(one) for one in pending if one["next_retry"] and _HOPELESS.match(one["last_error"])]


def may_come(discovery: Discovery) -> bool:
    """Whether what is waited for may come without a change by somebody: a path that has not settled, or targets to be rendered."""
    pending = [one for group in discovery.status()["groups"] for one in group["watchers"] if not one["settled"]]
    return not pending or not all(one["next_retry"] and _HOPELESS.match(one["last_error"]) for one in pending)


def _unreachable(pending: list[dict[str, Any]], tries: dict[str, set[float]]) -> list[str]:
    """What could not be reached several times; each attempt that fails has its own time of the next."""
    for one in pending:
        if one["next_retry"] and _UNREACHABLE.match(one["last_error"]):
            tries.setdefault(one["path"], set()).add(one["next_retry"])
    failed = [one for one in pending if len(tries.get(one["path"], ())) >= _ATTEMPTS]
    return [f"after {_ATTEMPTS} attempts (--timeout SECONDS goes on for longer): {_trouble(one)}" for one in failed[:1]]


def _trouble(watcher: dict[str, Any]) -> str:
    if watcher["last_error"]:
        return f"{watcher['path']}: {watcher['last_error']}"
    return f"{watcher['path']} ({watcher['state']}): {'nothing wrong' if watcher['last_contact'] else 'no answer'} so far"
