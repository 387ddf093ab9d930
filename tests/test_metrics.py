"""What a scrape shows of the engine's integers."""

from __future__ import annotations

from dataclasses import dataclass

import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from fastdisco.metrics import Metrics
from fastdisco.totals import RESTART_REASONS, Live


@dataclass
class Group:
    """A source with one role."""

    role: str = "pod"
    objects: int = 3
    added: int = 5
    contact: float = 1000.0

    def measure(self, live: Live) -> None:
        live.group_watchers += 1
        numbers = live.role(self.role)
        numbers.url_watchers += 2
        numbers.objects += self.objects
        numbers.pending += 1
        numbers.working += 4
        numbers.scrape_works += 7
        numbers.added += self.added
        numbers.updated += 2
        numbers.removed += 1
        numbers.rendered += 9
        numbers.contact(self.contact)


def value(registry: CollectorRegistry, name: str, namespace: str = "fastdisco", **labels: str) -> float | None:
    return registry.get_sample_value(f"{namespace}_discovery_kubernetes_{name}", labels)


def test_everything_is_shown() -> None:
    """Each metric by its name, from what sources tell and from what was bumped."""
    metrics = Metrics()
    metrics.add_source(Group())
    pod = metrics.role("pod")
    pod.stale_resource_versions += 1
    pod.direct_loads += 5
    pod.direct_load_errors += 2
    pod.direct_load_misses += 3
    pod.decode_errors += 4
    pod.bytes_received += 1000
    pod.restarts["gone"] += 6
    pod.listed(0.3)
    pod.listed(1000.0)
    metrics.count_request("200")
    metrics.count_request("error")
    expected = {
        "url_watchers": 2, "objects": 3, "objects_added_total": 5, "objects_updated_total": 2, "objects_removed_total": 1,
        "objects_rendered_total": 9, "stale_resource_versions_total": 1, "scrape_works": 7, "direct_object_loads_total": 5,
        "direct_object_load_errors_total": 2, "direct_object_load_misses_total": 3, "decode_errors_total": 4, "bytes_received_total": 1000,
        "last_contact_timestamp_seconds": 1000.0, "list_duration_seconds_count": 2, "list_duration_seconds_sum": 1000.3,
    }  # fmt: skip
    assert {name: value(metrics.registry, name, role="pod") for name in expected} == expected
    assert value(metrics.registry, "group_watchers") == 1
    assert value(metrics.registry, "subscribers", role="pod", status="pending") == 1
    assert value(metrics.registry, "subscribers", role="pod", status="working") == 4
    assert value(metrics.registry, "list_duration_seconds_bucket", role="pod", le="0.25") == 0
    assert value(metrics.registry, "list_duration_seconds_bucket", role="pod", le="0.5") == 1
    assert value(metrics.registry, "list_duration_seconds_bucket", role="pod", le="+Inf") == 2
    assert {reason: value(metrics.registry, "watch_restarts_total", role="pod", reason=reason) for reason in RESTART_REASONS} == (
        dict.fromkeys(RESTART_REASONS, 0) | {"gone": 6}
    )
    assert value(metrics.registry, "requests_total", code="200") == value(metrics.registry, "requests_total", code="error") == 1


ORIGINAL = {
    "vm_promscrape_discovery_kubernetes_" + name
    for name in (
        "group_watchers", "url_watchers", "subscribers", "objects", "objects_added_total", "objects_removed_total", "objects_updated_total",
        "stale_resource_versions_total", "scrape_works", "direct_object_loads_total", "direct_object_load_errors_total",
        "direct_object_load_misses_total",
    )
}  # fmt: skip


def test_the_names_of_the_original() -> None:
    """Dashboards made for it go on to work; no series of ours tells when a counter was created."""
    metrics = Metrics("vm_promscrape")
    metrics.add_source(Group())
    names = {sample.name for family in metrics.registry.collect() for sample in family.samples}
    assert names >= ORIGINAL
    assert not [name for name in names if name.endswith("_created")]
    assert b"_created" not in generate_latest(metrics.registry)


def test_nothing_is_shown_twice_and_everything_from_the_start() -> None:
    """An empty discovery has its families."""
    metrics = Metrics()
    families = [family.name for family in metrics.registry.collect()]
    assert len(families) == len(set(families)) == 19
    assert value(metrics.registry, "group_watchers") == 0


def test_gauges_fall_and_counters_stay_when_a_source_goes() -> None:
    """A group that stops takes its objects along, and not what it has counted."""
    metrics = Metrics()
    group, other = Group(), Group(contact=500.0)
    metrics.add_source(group)
    metrics.add_source(other)
    assert value(metrics.registry, "last_contact_timestamp_seconds", role="pod") == 500.0
    group.added = 50
    metrics.remove_source(group)
    metrics.remove_source(group)
    assert value(metrics.registry, "objects_added_total", role="pod") == 55
    assert value(metrics.registry, "objects", role="pod") == 3
    metrics.remove_source(other)
    assert value(metrics.registry, "objects_added_total", role="pod") == 55
    for gauge in ("objects", "scrape_works", "url_watchers"):
        assert value(metrics.registry, gauge, role="pod") == 0
    assert value(metrics.registry, "subscribers", role="pod", status="working") == 0
    assert value(metrics.registry, "last_contact_timestamp_seconds", role="pod") is None


def test_a_registry_of_its_own_tells_of_all_that_was_whenever_it_is_first_asked_for() -> None:
    """Also when all is over: counters stay, gauges have fallen."""
    metrics = Metrics()
    metrics.add_source(Group())
    metrics.count_request("200")
    metrics.close()
    assert value(metrics.registry, "objects_added_total", role="pod") == 5
    assert value(metrics.registry, "requests_total", code="200") == 1
    assert value(metrics.registry, "objects", role="pod") == value(metrics.registry, "group_watchers") == 0


def test_several_discoveries_share_a_registry() -> None:
    """Their numbers add up, and stay when one of them is closed."""
    registry = CollectorRegistry()
    one, two = Metrics(registry=registry), Metrics(registry=registry)
    one.add_source(Group(contact=7.0))
    two.add_source(Group(role="node"))
    two.add_source(Group())
    one.role("pod").bytes_received += 10
    two.role("pod").bytes_received += 5
    one.count_request("200")
    two.count_request("200")

    def shown() -> list[float | None]:
        return [
            value(registry, "group_watchers"), value(registry, "objects", role="pod"), value(registry, "objects", role="node"),
            value(registry, "last_contact_timestamp_seconds", role="pod"), value(registry, "objects_added_total", role="pod"),
            value(registry, "bytes_received_total", role="pod"), value(registry, "requests_total", code="200"),
        ]  # fmt: skip

    assert shown() == [3, 6, 3, 7.0, 10, 15, 2]
    one.close()
    one.close()
    assert shown() == [2, 3, 3, 1000.0, 10, 15, 2]
    two.close()
    assert shown() == [0, 0, 0, None, 10, 15, 2]
    Metrics(registry=registry).count_request("200")
    assert shown()[-1] == 3


def test_namespaces_are_apart() -> None:
    """Two in one registry do not disturb each other."""
    registry = CollectorRegistry()
    Metrics("a", registry).count_request("200")
    Metrics("b", registry)
    assert value(registry, "requests_total", "a", code="200") == 1
    assert value(registry, "requests_total", "b", code="200") is None


def test_a_name_in_use_is_noticed() -> None:
    """The registry refuses a second metric of the same name."""
    registry = CollectorRegistry()
    Metrics(registry=registry)
    with pytest.raises(ValueError, match="Duplicated"):
        Gauge("fastdisco_discovery_kubernetes_objects", "taken", registry=registry)
