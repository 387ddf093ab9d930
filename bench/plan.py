"""What a whole run measures: sizes, rivals, the seed, and who is told how far it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from fastdisco.synthetic import SyntheticProcess

from .peers import Peer

MANY_APPS = 100


@dataclass(frozen=True, slots=True)
class Sizes:
    """Numbers of pods by stage, of jobs, services and events; rates in 1/s. The floors are for these defaults."""

    sync: int = 100_000
    events: int = 10_000
    delay: int = 100_000
    jobs: int = 100
    pods_of_jobs: int = 10_000
    pods_of_jobs_alone: int = 100_000
    """With which the peers would need an hour."""
    services: int = 100
    endpoints: int = 100_000
    decode: int = 10_000
    clients: int = 10_000
    growth: int = 25_000
    """The first of four, each twice the one before."""
    roles: int = 10_000
    turnovers: int = 10_000
    burst: int = 100_000
    burst_of_jobs: int = 20_000
    rate: int = 1_000
    endpoints_rate: int = 50
    seconds: float = 10.0
    marks: int = 8
    """Changes at which the delay of a peer is looked at, one by one."""
    repeats: int = 3
    """Runs of the engine, of which the one with the median wall time counts; peers run once."""

    @classmethod
    def quick(cls) -> Sizes:
        """Everything within a minute on two cores without peers, in about four with both."""
        return cls(
            sync=5_000, events=2_000, delay=5_000, jobs=20, pods_of_jobs=1_000, pods_of_jobs_alone=5_000, services=20, endpoints=5_000,
            decode=1_000, clients=500, growth=2_500, roles=1_000, turnovers=1_000, burst=10_000, burst_of_jobs=2_000, seconds=2.0,
            marks=3, repeats=1,
        )  # fmt: skip

    @classmethod
    def of_pods(cls, pods: int) -> Sizes:
        """The same number of pods in each stage, in `growth` a quarter of it to twice as many; none for the larger case of `jobs`."""
        return cls(
            sync=pods, events=pods, delay=pods, pods_of_jobs=pods, pods_of_jobs_alone=0, endpoints=pods, decode=pods, clients=pods,
            growth=max(1, pods // 4), roles=pods, turnovers=pods,
        )  # fmt: skip


STATED = Sizes()


@dataclass(slots=True)
class Plan:
    """Handed to every stage."""

    sizes: Sizes = STATED
    peers: Sequence[Peer] = ()
    seed: int = 0
    timeout: float = 1800.0
    """Seconds that one run may take, or a peer until it shows what is waited for."""
    say: Callable[[str], None] = field(default=lambda _: None)
    """Is told what is done now."""
    _failed: set[tuple[str, str]] = field(default_factory=set)

    def stated(self, *names: str) -> bool:
        """Whether these sizes are those that the floors are for."""
        return all(getattr(self.sizes, name) == getattr(STATED, name) for name in names)

    def left_out(self, stage: str, peer: str) -> bool:
        """Whether that peer has failed in that stage."""
        return (stage, peer) in self._failed

    def leave_out(self, stage: str, peer: str) -> None:
        """It has failed, and would do so again in each case that the stage still has."""
        self._failed.add((stage, peer))

    @contextmanager
    def server(self, pods: int, **options: Any) -> Iterator[SyntheticProcess]:
        """A synthetic API server in its own process; each pod runs and gives three targets."""
        self.say(f"starting a cluster of {pods:,} pods")
        with SyntheticProcess(pods=pods, seed=self.seed, oddities=0.0, **options) as server:
            yield server


def app_near(server: SyntheticProcess, pods: int) -> str:
    """The application whose number of pods is nearest to this."""
    apps: dict[str, int] = server.control("apps")
    return min(apps, key=lambda name: (abs(apps[name] - pods), name))
