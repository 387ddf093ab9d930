"""fastdisco against a real API server: after each step its targets are those that follow from the server's own lists."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from fastdisco import APIWatcher, Discovery, KubernetesSDConfig
from tests import reference
from tests.peers.kubernetes import TOKEN, ApiServer, Object
from tests.peers.programs import until

ROLES = ("node", "pod", "service", "endpoints", "endpointslice", "ingress")
PLURALS = ("namespaces", "nodes", "pods", "services", "endpoints", "endpointslices", "ingresses")

OWN = {"endpoints", "endpointslice"}  # where the server lists itself

LabelSets = Counter[tuple[tuple[str, str], ...]]
Watchers = Mapping[str, APIWatcher]


def label_sets(targets: Iterable[Mapping[str, str]]) -> LabelSets:
    return Counter(tuple(sorted(labels.items())) for labels in targets)


def job(server: ApiServer, role: str) -> KubernetesSDConfig:
    return KubernetesSDConfig.from_dict(
        {
            "role": role,
            "api_server": server.url,
            "authorization": {"credentials": TOKEN},
            "tls_config": {"insecure_skip_verify": True},
            "attach_metadata": {"node": True, "namespace": True},
        }
    )


async def follow(watchers: Watchers, server: ApiServer) -> dict[str, int]:
    """Waits until the targets are those of the server's lists, says how many there are of each role, and fails with what differs."""
    missing: dict[str, LabelSets] = {}
    extra: dict[str, LabelSets] = {}
    counts: dict[str, int] = {}

    async def equal() -> bool:
        lists = {plural: await server.list(plural) for plural in PLURALS}  # again each time: the server keeps objects of its own
        for role, watcher in watchers.items():
            expected = label_sets(reference.targets(role, lists, ["node", "namespace"]))
            found = label_sets(watcher.scrape_works())
            missing[role], extra[role], counts[role] = expected - found, found - expected, found.total()
        return not any(missing.values()) and not any(extra.values())

    try:
        await until(equal, timeout=60, what="the targets of the server's lists")
    except TimeoutError:
        pytest.fail(f"missing: {missing}\ntoo many: {extra}", pytrace=False)
    return counts


def named(name: str, namespace: str = "", **labels: str) -> Object:
    inside = {"namespace": namespace} if namespace else {}
    return {"name": name, **inside, "labels": labels, "annotations": {"note": f"about {name}", "a.b": "1", "a_b": "2"}}


def pod(number: int, **labels: str) -> Object:
    """A running pod with a sidecar, a finished init container and a port that no service covers."""
    ran = {"image": "i", "imageID": "i", "ready": True, "restartCount": 0}
    web, init, sidecar = ({"name": name, "containerID": f"containerd://{name}{number}", **ran} for name in ("web", "init", "sidecar"))
    port = {"containerPort": 8080, "name": "http"}
    return {
        "metadata": named(f"web-{number}", "web", **labels),
        "spec": {
            "nodeName": f"node-{number % 3}",
            "containers": [{"name": "web", "image": "web:1", "ports": [port, {"containerPort": 9090, "name": "metrics"}]}],
            "initContainers": [
                {"name": "init", "image": "init:1", "ports": [{"containerPort": 1000}]},
                {"name": "sidecar", "image": "sidecar:1", "restartPolicy": "Always", "ports": [{"containerPort": 15, "protocol": "UDP"}]},
            ],
        },
        "status": {
            "phase": "Running",
            "podIP": f"127.1.0.{number + 1}",
            "podIPs": [{"ip": f"127.1.0.{number + 1}"}],
            "hostIP": "127.0.0.9",
            "hostIPs": [{"ip": "127.0.0.9"}],
            "conditions": [{"type": "Ready", "status": "True"}],
            "containerStatuses": [{**web, "state": {"running": {}}}],
            "initContainerStatuses": [{**init, "state": {"terminated": {"exitCode": 0}}}, {**sidecar, "state": {"running": {}}}],
        },
    }


def node(number: int, **labels: str) -> Object:
    return {
        "metadata": named(f"node-{number}", **labels),
        "spec": {"providerID": f"test://node-{number}"},
        "status": {
            "addresses": [{"type": "Hostname", "address": f"node-{number}"}, {"type": "InternalIP", "address": f"127.2.0.{number + 1}"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        },
    }


def reference_to(number: int) -> dict[str, Any]:
    return {"nodeName": f"node-{number % 3}", "targetRef": {"kind": "Pod", "namespace": "web", "name": f"web-{number}"}}


def endpoints(*numbers: int) -> Object:
    """Those pods, every second one not ready, and an address without a pod. (The server takes no loopback addresses here.)"""
    addresses = [{"ip": f"192.0.2.{number + 1}", **reference_to(number)} for number in numbers]
    subset = {"addresses": [*addresses[::2], {"ip": "192.0.2.200", "hostname": "outside"}], "ports": [{"port": 8080, "name": "http"}]}
    return {"metadata": named("web", "web"), "subsets": [subset | ({"notReadyAddresses": addresses[1::2]} if addresses[1::2] else {})]}


def endpointslice(*numbers: int) -> Object:
    entries = [
        {"addresses": [f"192.0.2.{number + 1}"], "conditions": {"ready": number % 2 == 0}, **reference_to(number)} for number in numbers
    ]
    meta = named("web-1", "web", **{"kubernetes.io/service-name": "web"})
    return {"metadata": meta, "addressType": "IPv4", "ports": [{"port": 8080, "name": "http", "appProtocol": "http"}], "endpoints": entries}


def ingress(*hosts: str) -> Object:
    backend = {"service": {"name": "web", "port": {"number": 80}}}
    rules = [{"host": host, "http": {"paths": [{"path": "/x", "pathType": "Prefix", "backend": backend}]}} for host in hosts]
    spec = {"rules": rules, "tls": [{"hosts": ["*.example.com"]}], "defaultBackend": backend}
    return {"metadata": named("web", "web"), "spec": spec}


SERVICE: Object = {
    "metadata": named("web", "web", app="web"),
    "spec": {"ports": [{"port": 80, "name": "http", "targetPort": 8080}, {"port": 81, "name": "other"}]},
}
NAMESPACE: Object = {"metadata": named("web", team="one")}


async def fill(server: ApiServer) -> None:
    """Objects of all seven kinds; those that refer before those that they refer to."""
    await server.create("namespaces", NAMESPACE)
    await server.create("ingresses", ingress("a.example.com", "example.org"))
    await server.create("endpointslices", endpointslice(0, 1, 2))
    await server.create("endpoints", endpoints(0, 1, 2))
    await server.create("services", SERVICE)
    for number in range(4):
        await server.create("pods", pod(number))
    for number in range(3):
        await server.create("nodes", node(number))


async def change(server: ApiServer) -> None:
    """One object of each kind, in a field that its own labels or those of others take up."""
    await server.replace("namespaces", {"metadata": named("web", team="two")})
    await server.replace("nodes", node(1, zone="b"))
    await server.replace("pods", pod(1, version="2"))
    service = next(item for item in await server.list("services") if item["metadata"]["name"] == "web")
    await server.replace("services", {**service, "metadata": {**service["metadata"], "labels": {"app": "other"}}})
    await server.replace("endpoints", endpoints(1, 2, 3))
    await server.replace("endpointslices", endpointslice(3, 2))
    await server.replace("ingresses", ingress("a.b.example.com"))


async def delete_some(server: ApiServer) -> None:
    """One object of each kind; others go on referring to them."""
    await server.delete("services", SERVICE)
    await server.delete("pods", pod(2))
    await server.delete("nodes", node(0))
    await server.delete("endpointslices", endpointslice())
    await server.delete("endpoints", endpoints())
    await server.delete("ingresses", ingress())


@pytest.mark.slow
@pytest.mark.peers("etcd", "kube-apiserver", "openssl")
async def test_targets_follow_a_real_api_server_through_changes_restarts_and_compaction(tmp_path: Path) -> None:
    """Created, changed and deleted objects of all kinds, a server that stops and comes back, versions that etcd has forgotten."""
    async with ApiServer(tmp_path) as server, Discovery() as discovery:
        watchers = {role: discovery.watch(role, job(server, role), dict) for role in ROLES}
        for watcher in watchers.values():
            await watcher.synced(timeout=60)
        await follow(watchers, server)

        await fill(server)
        assert all((await follow(watchers, server)).values())
        await change(server)
        await follow(watchers, server)

        await server.stop_api()
        await server.start_api()
        await follow(watchers, server)
        await server.replace("pods", pod(3, version="3"))
        await follow(watchers, server)

        await server.compact()
        await server.create("pods", pod(4))
        await follow(watchers, server)
        await delete_some(server)
        await follow(watchers, server)

        late = {role: discovery.watch(f"late-{role}", job(server, role), dict) for role in ROLES}
        for watcher in late.values():
            await watcher.synced(timeout=60)
        assert await follow(late, server) == await follow(watchers, server)


@pytest.mark.slow
@pytest.mark.peers("etcd", "kube-apiserver", "openssl")
async def test_what_happens_while_the_server_is_out_of_reach_is_caught_up(tmp_path: Path) -> None:
    """A watch that cannot be resumed, for etcd forgot its version and the server restarted, becomes a list."""
    registry = CollectorRegistry()
    async with ApiServer(tmp_path) as server, Discovery(registry=registry) as discovery:
        await fill(server)
        watchers = {role: discovery.watch(role, job(server, role), dict) for role in ROLES}
        for watcher in watchers.values():
            await watcher.synced(timeout=60)
        await follow(watchers, server)
        before = {role: label_sets(watcher.scrape_works()) for role, watcher in watchers.items()}
        async with server.out_of_sight():
            await change(server)
            await delete_some(server)
            await server.compact()
            # Nothing is lost with the server; only its own address may be gone, which it takes back when it stops.
            assert all((before[role] - label_sets(watcher.scrape_works())).total() <= (role in OWN) for role, watcher in watchers.items())
        await follow(watchers, server)
    for role in ROLES:
        assert registry.get_sample_value("fastdisco_discovery_kubernetes_stale_resource_versions_total", {"role": role})
