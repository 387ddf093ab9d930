"""A job's targets at one moment, taken out of the engine for whoever asks at the same time."""

from __future__ import annotations

import asyncio
import zlib
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from weakref import ref

from xxhash import xxh3_128_hexdigest

from fastdisco._export import Snapshot
from fastdisco.errors import NotSynced

from .label_choice import final_label, split_address, used_label

if TYPE_CHECKING:
    from fastdisco._batch import Batch
    from fastdisco._core import Symbols
    from fastdisco._subscriber import Subscriber
    from fastdisco.api_watcher import APIWatcher

    from .query import Query, Syntax

_AT_ONCE = 1000  # targets between two turns of the loop: a millisecond or so
_RECENT = 32  # slices, 8 MiB: how far those who read at the same time may be apart and still share them


@dataclass(slots=True, weakref_slot=True)
class Export:
    """The targets that a query has given. Its slices are those of a `Snapshot`."""

    snapshot: Snapshot
    etag: str
    """Of the content: equal targets have equal ones, also in another process."""
    revision: object
    """Of what they were made of; see `revision`."""
    _recent: OrderedDict[tuple[int, Syntax, bool], bytes] = field(default_factory=OrderedDict)

    async def slice(self, number: int, syntax: Syntax, *, deflated: bool = False) -> bytes:
        """One slice, rendered once for all who read it at about the same time; deflated as a part of a stream."""
        key = (number, syntax, deflated)
        made = self._recent.get(key)
        if made is None:
            made = self.snapshot.render(number, syntax)
            await asyncio.sleep(0)
            if deflated:
                made = await asyncio.to_thread(_deflate, made)
            self._recent[key] = made
            if len(self._recent) > _RECENT:
                self._recent.popitem(last=False)
        return made


def revision(job: APIWatcher, query: Query) -> object:
    """What a query gives is the same as long as this is. It keeps no group, and so no objects, alive."""
    if query.dropped:
        return [(ref(group), group.revision) for group, _ in job.subscribers], job.relabel_configs if query.labels == "used" else ()
    return ref(job), [subscriber.revision for _, subscriber in job.subscribers], job.relabel_configs


async def take(symbols: Symbols, job: APIWatcher, query: Query) -> Export:
    """In slices of the loop's time; sorting is done on another thread. NotSynced if the job has ended, or ends meanwhile."""
    _check(job)
    now = revision(job, query)
    snapshot = Snapshot(symbols, _wanted(job, query), split_address if query.labels == "final" else None)
    for group, subscriber in job.subscribers:
        if query.labels == "final":
            await _take_final(snapshot, subscriber)
        else:
            await group.discover_again(subscriber, _adding(snapshot, subscriber, query), dropped=query.dropped)
    _check(job)
    snapshot.seal()
    digests = await asyncio.to_thread(snapshot.arrange, query.labels == "final")
    return Export(snapshot, xxh3_128_hexdigest(digests), now)


def _check(job: APIWatcher) -> None:
    """A job that has ended has let go of its targets: what is taken of it would be none, or some."""
    if not job.is_synced:
        raise NotSynced(f"job {job.name} was stopped")


def _wanted(job: APIWatcher, query: Query) -> Callable[[str], bool] | None:
    if query.labels == "final":
        return final_label
    if query.labels == "used":
        relabeling = job.subscribers[0][1].relabeling
        return used_label(relabeling.rules if relabeling is not None else ())
    return None


def _adding(snapshot: Snapshot, subscriber: Subscriber, query: Query) -> Callable[[Batch], None]:
    def add(batch: Batch) -> None:
        snapshot.add_batch(batch, subscriber.role, subscriber.profile, None if query.dropped else subscriber.relabeling)

    return add


async def _take_final(snapshot: Snapshot, subscriber: Subscriber) -> None:
    labels = subscriber.labels()
    await asyncio.sleep(0)  # a list of 300,000 is a slice of its own
    for start in range(0, len(labels), _AT_ONCE):
        for one in labels[start : start + _AT_ONCE]:
            snapshot.add_labels(one)
        await asyncio.sleep(0)


def _deflate(text: bytes) -> bytes:
    """A part of a deflate stream that refers to none before it and ends at a byte."""
    compressor = zlib.compressobj(level=4, wbits=-zlib.MAX_WBITS)
    return compressor.compress(text) + compressor.flush(zlib.Z_FULL_FLUSH)
