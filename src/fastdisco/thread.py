"""A discovery for synchronous programs: its loop runs in a thread of its own, and the same methods block."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import uvloop

if TYPE_CHECKING:
    from ._labels import Labels
    from .api_watcher import APIWatcher
    from .changes import Change, Reader
    from .config import KubernetesSDConfig
    from .explanation import Explanation
    from .relabel_config import RelabelConfig
    from .target_labels import TargetDefaults

T = TypeVar("T")


class Asynchronous(Protocol):
    """The discovery that is run."""

    def watch(
        self,
        name: str,
        config: KubernetesSDConfig | Sequence[KubernetesSDConfig],
        constructor: Callable[[Labels], Any] | None = None,
        *,
        relabel_configs: Sequence[RelabelConfig] | None = None,
        target_defaults: TargetDefaults | None = None,
        dialect: str | None = None,
    ) -> APIWatcher: ...

    async def get_object(
        self, config: KubernetesSDConfig, role: str, namespace: str, name: str, *, dialect: str | None = None
    ) -> Mapping[str, Any] | None: ...

    def status(self) -> dict[str, Any]: ...

    @property
    def jobs(self) -> Mapping[str, APIWatcher]: ...

    async def dropped_counts(self) -> dict[str, int]: ...

    async def close(self) -> None: ...


class _ClosedError(RuntimeError):
    """The loop takes no more calls, or has ended before this one did."""

    def __init__(self) -> None:
        super().__init__("the discovery is closed")


class DiscoveryThread:
    """A discovery on its own thread, for any thread to use. Constructors run on that thread; so can plain methods, in a constructor.

    What has to wait (`synced`, `get_object`, `changes`) is a RuntimeError there, since it would wait for itself.
    """

    def __init__(self, make: Callable[[], Asynchronous]) -> None:
        self._loop = uvloop.new_event_loop()
        self._close_wanted = asyncio.Event()
        self._closed = False
        self._lock = threading.RLock()  # of `_closed`; taken again where a garbage collection ends an iterator of `changes`
        made: Future[Asynchronous] = Future()
        self._thread = threading.Thread(target=self._run, args=(make, made), name="fastdisco", daemon=True)
        self._thread.start()
        try:
            self._discovery = made.result()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def watch(
        self,
        name: str,
        config: KubernetesSDConfig | Sequence[KubernetesSDConfig],
        constructor: Callable[[Labels], Any] | None = None,
        *,
        relabel_configs: Sequence[RelabelConfig] | None = None,
        target_defaults: TargetDefaults | None = None,
        dialect: str | None = None,
    ) -> APIWatcherThread:
        """As `Discovery.watch`."""

        def watch() -> APIWatcher:
            return self._discovery.watch(
                name, config, constructor, relabel_configs=relabel_configs, target_defaults=target_defaults, dialect=dialect
            )

        return APIWatcherThread(self, self._do(watch))

    def get_object(
        self, config: KubernetesSDConfig, role: str, namespace: str, name: str, *, dialect: str | None = None
    ) -> Mapping[str, Any] | None:
        """As `Discovery.get_object`."""
        return self._wait(lambda: self._discovery.get_object(config, role, namespace, name, dialect=dialect))

    def status(self) -> dict[str, Any]:
        """As `Discovery.status`."""
        return self._do(self._discovery.status)

    @property
    def jobs(self) -> dict[str, APIWatcherThread]:
        """All jobs by name, as they are now."""
        return {name: APIWatcherThread(self, job) for name, job in self._do(lambda: dict(self._discovery.jobs)).items()}

    def dropped_counts(self) -> dict[str, int]:
        """As `Discovery.dropped_counts`."""
        return self._wait(self._discovery.dropped_counts)

    def close(self) -> None:
        """Stops all jobs and watches, and the thread; called on the thread itself, it does so soon after.

        Calls of other threads that wait for something still get a RuntimeError. Any number of threads may close it.
        """
        with self._lock:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._close_wanted.set)
        if not self._is_here():
            self._thread.join()

    def _run(self, make: Callable[[], Asynchronous], made: Future[Asynchronous]) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._serve(make, made))
        finally:
            with self._lock:  # what other threads have begun until now is known to the loop
                self._closed = True
            self._loop.run_until_complete(_end_tasks())
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
            self._loop.close()

    async def _serve(self, make: Callable[[], Asynchronous], made: Future[Asynchronous]) -> None:
        try:
            discovery = make()
        except BaseException as error:  # noqa: BLE001  it is raised where it was asked for
            made.set_exception(error)
            return
        made.set_result(discovery)
        try:
            await self._close_wanted.wait()
        finally:
            await discovery.close()

    def _is_here(self) -> bool:
        return threading.current_thread() is self._thread

    def _do(self, work: Callable[[], T]) -> T:
        """A plain call on the loop's thread."""
        if self._is_here():
            return work()

        async def call() -> T:
            return work()

        return self._wait(call)

    def _wait(self, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The result of a coroutine on the loop's thread."""
        if self._is_here():
            raise RuntimeError("this would wait for its own thread; only plain methods, stop and resync may be called there")
        future = self._submit(work)
        try:
            return future.result()
        except CancelledError:
            raise _ClosedError from None
        except BaseException:
            future.cancel()  # the caller was interrupted: nobody waits any more
            raise

    def _begin(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """As `_wait`, but nothing where all has ended; on the loop's own thread it is only begun."""
        if self._is_here():
            self._loop.create_task(work())
            return
        with suppress(_ClosedError):
            self._wait(work)

    def _submit(self, work: Callable[[], Coroutine[Any, Any, T]]) -> Future[T]:
        with self._lock:
            if self._closed:
                raise _ClosedError
            return asyncio.run_coroutine_threadsafe(work(), self._loop)


async def _end_tasks() -> None:
    """Cancels all other tasks of the loop, and waits for them to end."""
    while tasks := asyncio.all_tasks() - {asyncio.current_task()}:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


class APIWatcherThread:
    """One job of a `DiscoveryThread`, for any thread to use."""

    def __init__(self, thread: DiscoveryThread, watcher: APIWatcher) -> None:
        self._thread = thread
        self._watcher = watcher

    @property
    def name(self) -> str:
        """The job's name."""
        return self._watcher.name

    @property
    def version(self) -> int:
        """Rises with each visible change."""
        return self._watcher.version

    def synced(self, timeout: float | None = None) -> tuple[str, ...]:
        """As `APIWatcher.synced`."""
        return self._thread._wait(lambda: self._watcher.synced(timeout))

    def scrape_works(self) -> tuple[Any, ...]:
        """As `APIWatcher.scrape_works`: a snapshot that does not change."""
        return self._thread._do(self._watcher.scrape_works)

    def changes(self) -> Iterator[Change]:
        """As `APIWatcher.changes`; an iterator that blocks, and ends when the job stops or the discovery is closed."""

        async def following() -> Change | None:
            return await anext(reader, None)

        with suppress(_ClosedError):
            reader: Reader = self._thread._do(self._watcher.changes)
            try:
                while (change := self._thread._wait(following)) is not None:
                    yield change
            finally:
                self._thread._submit(reader.aclose)  # not waited for: it may be a garbage collection that ends this, on any thread

    def reconfigure(self, **changed: Any) -> None:
        """As `APIWatcher.reconfigure`."""
        self._thread._do(lambda: self._watcher.reconfigure(**changed))

    def explain(self, namespace: str, name: str) -> tuple[Explanation, ...]:
        """As `APIWatcher.explain`."""
        return self._thread._wait(lambda: self._watcher.explain(namespace, name))

    def status(self) -> dict[str, Any]:
        """As `APIWatcher.status`."""
        return self._thread._do(self._watcher.status)

    def resync(self) -> None:
        """As `APIWatcher.resync`; nothing once the discovery is closed."""
        self._thread._begin(self._watcher.resync)

    def stop(self) -> None:
        """As `APIWatcher.stop`; in a constructor, and so on the loop's thread, it is begun and not waited for.

        Nothing once the discovery is closed.
        """
        self._thread._begin(self._watcher.stop)
