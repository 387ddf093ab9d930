"""The public entry: owns groups and jobs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from ._core import Symbols
from ._json import decode_object
from .api import ApiClient
from .api_watcher import APIWatcher
from .auth import Connection, own_namespace, resolve
from .config import DIALECTS, KINDS, KubernetesSDConfig
from .errors import ApiError, ConfigError, DecodeError, NetworkError
from .group_watcher import GroupKey, GroupWatcher, Pace
from .metrics import Metrics
from .relabel_config import RelabelConfig
from .roles import RESOURCES, SELECTORS, kinds_of, profile_of
from .rule_table import RuleTable
from .target_labels import TargetDefaults, default_labels
from .url_watcher import Timings

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry

    from ._labels import Labels
    from ._relabel import Relabeling
    from .thread import DiscoveryThread

logger = logging.getLogger("fastdisco")


class Discovery:
    """Discovers targets for any number of jobs; an asynchronous context manager, used on one running loop.

    Jobs whose requests are the same share their watches, and all share one table of strings. `dialect` names whose labels are made.
    """

    def __init__(
        self,
        *,
        registry: CollectorRegistry | None = None,
        metrics_namespace: str = "fastdisco",
        dialect: str = "victoriametrics",
        timings: Timings | None = None,
        pace: Pace | None = None,
    ) -> None:
        check_dialect(dialect)
        self.metrics = Metrics(metrics_namespace, registry)
        self._timings = timings or Timings()
        self._pace = pace or Pace()
        self._symbols = Symbols()
        self._dialect = dialect
        self._rules = {dialect: RuleTable(self._symbols, dialect) for dialect in DIALECTS}
        self._clients: dict[Connection, ApiClient] = {}
        self._groups: dict[GroupKey, GroupWatcher] = {}
        self._jobs: dict[str, APIWatcher] = {}
        self._ending: set[GroupWatcher] = set()  # no longer handed out, and still at their clients
        self._stopping: set[asyncio.Task[None]] = set()
        self._closed = False
        self._closing: asyncio.Task[None] | None = None

    @classmethod
    def run_in_thread(cls, **options: Any) -> DiscoveryThread:
        """The same for synchronous programs: a discovery, made with these options, whose loop runs in a thread of its own."""
        from .thread import DiscoveryThread  # it brings in uvloop

        return DiscoveryThread(lambda: cls(**options))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stops all jobs, then all watches. Any number of tasks may call it; once begun it goes on, also if one of them is cancelled."""
        self._closed = True
        if self._closing is None or self._closing.done():  # a second one ends what the end of a loop has cut short
            self._closing = asyncio.get_running_loop().create_task(self._close(), name="fastdisco close")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        await asyncio.gather(*(job.stop() for job in list(self._jobs.values())))
        await asyncio.gather(*self._stopping, *(group.stop() for group in self._groups.values()))
        self._groups.clear()
        await asyncio.gather(*(client.close() for client in self._clients.values()))
        self._clients.clear()
        self.metrics.close()

    def watch(
        self,
        name: str,
        config: KubernetesSDConfig | Sequence[KubernetesSDConfig],
        constructor: Callable[[Labels], Any] | None = None,
        *,
        relabel_configs: Sequence[RelabelConfig] | None = None,
        target_defaults: TargetDefaults | None = None,
        dialect: str | None = None,
    ) -> APIWatcher:
        """A new job. `constructor` makes a scrape work of a target's labels, or None for no target; without one the labels are it.

        With rules, also with none of them, the labels of `target_defaults` and `job` are added to the discovered ones before the first
        rule, and `__meta_*`, `__tmp*` and empty labels go after the last; targets without an address are dropped, and equal ones
        share one work. Where `relabel_configs` is None, the constructor gets the discovered labels unchanged.

        `dialect` is the discovery's, if it is not given: whose labels and rules the job has.

        ValueError if the name is in use; ConfigError if the configuration or a rule cannot be used here.
        """
        dialect = self._dialect if dialect is None else dialect
        check_dialect(dialect)
        if self._closed:
            raise RuntimeError("the discovery is closed")
        if name in self._jobs:
            raise ValueError(f"a job is called {name!r} already")
        configs = (config,) if isinstance(config, KubernetesSDConfig) else tuple(config)
        if not configs:
            raise ConfigError("kubernetes_sd_configs: a job needs one or more")
        for one in configs:
            if not isinstance(one, KubernetesSDConfig):
                raise ConfigError("config must be a KubernetesSDConfig or several; KubernetesSDConfig.from_dict makes one of a mapping")
        keys = [group_key(one, dialect) for one in configs]
        if not isinstance(name, str):
            raise ConfigError(f"the name of a job must be a string, not {name!r}")
        if not isinstance(target_defaults, TargetDefaults | None):
            raise ConfigError(f"target_defaults: must be TargetDefaults, not {type(target_defaults).__name__}")
        if target_defaults is not None and relabel_configs is None:
            raise ConfigError("target_defaults: mean nothing without relabel_configs, which may be ()")
        rules: Any = relabel_configs
        if not isinstance(rules, Iterable | None) or isinstance(rules, str):
            raise ConfigError(f"relabel_configs: must be a sequence of RelabelConfig, not {type(relabel_configs).__name__}")
        defaults = target_defaults or TargetDefaults()
        relabel_configs = None if relabel_configs is None else tuple(relabel_configs)

        def compiled(rules: Sequence[RelabelConfig] | None) -> Relabeling | None:
            return None if rules is None else self._rules[dialect].relabeling(rules, default_labels(name, defaults, dialect))

        checked = compiled(relabel_configs)  # a mistake must leave nothing behind
        places = []
        for key, one in zip(keys, configs, strict=True):
            profile = profile_of(one.role, one.attach_metadata, dialect)
            places.append((self._group(key), one.role, profile, kinds_of(one.role, profile)))
        job = APIWatcher(name, constructor, places, relabel_configs, compiled, self._forget)
        self._jobs[name] = job
        del checked  # it kept its rules in the table meanwhile
        return job

    @property
    def symbols(self) -> Symbols:
        """All its strings, each once."""
        return self._symbols

    @property
    def jobs(self) -> Mapping[str, APIWatcher]:
        """All jobs by name."""
        return MappingProxyType(self._jobs)

    async def get_object(
        self, config: KubernetesSDConfig, role: str, namespace: str, name: str, *, dialect: str | None = None
    ) -> Mapping[str, Any] | None:
        """The fields of an object that labels need, nested as in the API: from the cache, else by a GET; None if there is none.

        The cache is that of jobs with this configuration and dialect, of the discovery's if none is given.

        ApiError if the server refuses, NetworkError if it cannot be asked, DecodeError if its answer is no such object; and before
        anything is asked, ConfigError or ValueError for a mistake in the arguments, RuntimeError if the discovery is closed.
        """
        if role not in KINDS:
            raise ValueError(f"no kind of object is called {role!r}")
        dialect = self._dialect if dialect is None else dialect
        check_dialect(dialect)
        key = group_key(config, dialect)
        if not _is_text(namespace + name):
            return None
        group = self._groups.get(key)
        found = group.store.get(role, namespace, name) if group is not None else None
        if found is None:
            found = await self._load(key.connection, role, namespace, name)
        return None if found is None else MappingProxyType(found)

    async def _load(self, connection: Connection, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        totals = self.metrics.role(kind)
        client = self._client(connection)
        totals.direct_loads += 1
        for path in RESOURCES[kind].object_paths(namespace, name):
            try:
                return decode_object(kind, await client.get(path, total_timeout=self._timings.read_timeout))
            except ApiError as error:
                if error.code != 404:
                    totals.direct_load_errors += 1
                    raise
            except (NetworkError, DecodeError):
                totals.direct_load_errors += 1
                raise
            except RuntimeError as error:  # the session was closed: between two requests, or while the credentials were read
                totals.direct_load_errors += 1
                raise NetworkError("reset", "the connection was closed meanwhile") from error
        totals.direct_load_misses += 1
        return None

    def status(self) -> dict[str, Any]:
        """State of each watcher and of each job, for people and for JSON."""
        return {
            "groups": [
                {"api_server": key.connection.api_server, "namespaces": list(key.namespaces), "watchers": group.status()}
                for key, group in self._groups.items()
            ],
            "jobs": {name: job.status() for name, job in self._jobs.items()},
            "strings": len(self._symbols),
        }

    async def dropped_counts(self) -> dict[str, int]:
        """How many targets the rules of each job drop now. For that all objects are rendered once more, in slices: not for every second."""
        discovered: dict[tuple[GroupWatcher, str, int], int] = {}
        return {name: await job.count_dropped(discovered) for name, job in list(self._jobs.items()) if job.relabel_configs is not None}

    def _client(self, connection: Connection) -> ApiClient:
        if self._closed:
            raise RuntimeError("the discovery is closed")
        if connection not in self._clients:
            self._clients[connection] = ApiClient(connection, metrics=self.metrics)
        return self._clients[connection]

    def _group(self, key: GroupKey) -> GroupWatcher:
        if key not in self._groups:
            self._groups[key] = GroupWatcher(
                key,
                self._client(key.connection),
                self._symbols,
                self.metrics,
                timings=_with_timeout(self._timings, key.api_server_timeout),
                pace=self._pace,
                on_idle=self._stop_group,
            )
        return self._groups[key]

    def _stop_group(self, group: GroupWatcher) -> None:
        """A group that has had no job for a while; one that comes now gets a new one."""
        if group.idle and self._groups.get(group.key) is group:
            del self._groups[group.key]
            self._ending.add(group)
            task = asyncio.get_running_loop().create_task(self._end_group(group))
            self._stopping.add(task)
            task.add_done_callback(self._stopping.discard)

    async def _end_group(self, group: GroupWatcher) -> None:
        try:
            await group.stop()
        finally:
            self._ending.discard(group)
        connection = group.key.connection
        in_use = any(other.key.connection == connection for other in (*self._groups.values(), *self._ending))
        if not in_use and connection in self._clients:
            await self._clients.pop(connection).close()

    def _forget(self, job: APIWatcher) -> None:
        if self._jobs.get(job.name) is job:
            del self._jobs[job.name]


def check_dialect(dialect: str) -> None:
    """ConfigError for a dialect whose labels are not made here."""
    if dialect not in DIALECTS:
        raise ConfigError(f"dialect: must be {' or '.join(DIALECTS)}, not {dialect!r}")


def group_key(config: KubernetesSDConfig, dialect: str = "victoriametrics") -> GroupKey:
    """What of a configuration decides which group its job joins; ConfigError if it cannot be resolved here.

    In Prometheus' dialect the own namespace is added to those that are named, and a role allows few selectors.
    """
    namespaces = config.namespaces.names
    if config.namespaces.own_namespace and (dialect == "prometheus" or not namespaces):
        namespaces = (*namespaces, own_namespace())
    if dialect == "prometheus":
        _check_selectors(config)
    joined: dict[str, tuple[list[str], list[str]]] = {}
    for selector in config.selectors:
        labels, fields = joined.setdefault(selector.role, ([], []))
        if selector.label:
            labels.append(selector.label)
        if selector.field:
            fields.append(selector.field)
    return GroupKey(
        resolve(config),
        tuple(sorted(set(namespaces))),
        tuple(sorted((kind, ",".join(labels), ",".join(fields)) for kind, (labels, fields) in joined.items())),
        config.api_server_timeout,
        config.list_limit,
        config.relist_interval,
    )


def _check_selectors(config: KubernetesSDConfig) -> None:
    allowed = SELECTORS[config.role]
    seen: set[str] = set()
    for index, selector in enumerate(config.selectors):
        if selector.role not in allowed:
            raise ConfigError(f"selectors[{index}].role: in this dialect role {config.role} has selectors for {', '.join(allowed)} only")
        if selector.role in seen:
            raise ConfigError(f"selectors[{index}].role: a second selector for {selector.role}; in this dialect there is one of a role")
        seen.add(selector.role)


def _is_text(name: str) -> bool:
    """Whether it can be written in UTF-8, as all names of objects can: lone surrogates cannot."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _with_timeout(timings: Timings, api_server_timeout: float) -> Timings:
    default = KubernetesSDConfig.__dataclass_fields__["api_server_timeout"].default
    return timings if api_server_timeout == default else timings._replace(api_server_timeout=api_server_timeout)
