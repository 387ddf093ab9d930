"""fastdisco against a real API server: after each step its targets are those that follow from the server's own lists."""

from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import orjson
import pytest
from prometheus_client import CollectorRegistry

from fastdisco import APIWatcher, Discovery, KubernetesSDConfig
from fastdisco.api import ApiClient
from fastdisco.auth import resolve
from fastdisco.config import DIALECTS
from tests import reference
from tests.peers.kubernetes import TOKEN, ApiServer, Object
from tests.peers.programs import until

ROLES = ("node", "pod", "service", "endpoints", "endpointslice", "ingress")
PLURALS = ("namespaces", "nodes", "pods", "services", "endpoints", "endpointslices", "ingresses", "replicasets", "jobs")
ATTACHED = ("node", "namespace", "deployment", "job", "cronjob")

OWN = {"endpoints", "endpointslice"}  # where the server lists itself

LabelSets = Counter[tuple[tuple[str, str], ...]]
Watchers = Mapping[tuple[str, str], APIWatcher]  # by role and dialect


def label_sets(targets: Iterable[Mapping[str, str]]) -> LabelSets:
    return Counter(tuple(sorted(labels.items())) for labels in targets)


def job(server: ApiServer, role: str) -> KubernetesSDConfig:
    return KubernetesSDConfig.from_dict(
        {
            "role": role,
            "api_server": server.url,
            "authorization": {"credentials": TOKEN},
            "tls_config": {"insecure_skip_verify": True},
            "attach_metadata": dict.fromkeys(ATTACHED, True),
        }
    )


def watch(discovery: Discovery, server: ApiServer, prefix: str = "") -> Watchers:
    """A job of each role in each dialect."""
    return {
        (role, dialect): discovery.watch(f"{prefix}{role} {dialect}", job(server, role), dict, dialect=dialect)
        for role in ROLES
        for dialect in DIALECTS
    }


async def follow(watchers: Watchers, server: ApiServer) -> dict[tuple[str, str], int]:
    """Waits until the targets are those of the server's lists, says how many there are of each job, and fails with what differs."""
    missing: dict[tuple[str, str], LabelSets] = {}
    extra: dict[tuple[str, str], LabelSets] = {}
    counts: dict[tuple[str, str], int] = {}

    async def equal() -> bool:
        lists = {plural: await server.list(plural) for plural in PLURALS}  # again each time: the server keeps objects of its own
        for (role, dialect), watcher in watchers.items():
            expected = label_sets(reference.targets(role, lists, ATTACHED, dialect))
            found = label_sets(watcher.scrape_works())
            which = role, dialect
            missing[which], extra[which], counts[which] = expected - found, found - expected, found.total()
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
    owner = {"kind": ("ReplicaSet", "Job")[number % 2], "name": "web-1", "controller": True, "apiVersion": "apps/v1", "uid": "u"}
    return {
        "metadata": {**named(f"web-{number}", "web", **labels), "ownerReferences": [owner]},
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


def owned(kind: str, behind: str) -> Object:
    """What owns pods, with its own controller."""
    owner = {"kind": kind, "name": behind, "controller": True, "apiVersion": "apps/v1", "uid": "u"}
    spec = {"restartPolicy": "Never" if kind == "CronJob" else "Always", "containers": [{"name": "web", "image": "web:1"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": spec}
    selector = {} if kind == "CronJob" else {"selector": {"matchLabels": {"app": "web"}}}
    return {"metadata": {**named("web-1", "web"), "ownerReferences": [owner]}, "spec": {"template": template, **selector}}


SERVICE: Object = {
    "metadata": named("web", "web", app="web"),
    "spec": {"ports": [{"port": 80, "name": "http", "targetPort": 8080}, {"port": 81, "name": "other"}]},
}
NAMESPACE: Object = {"metadata": named("web", team="one")}


async def fill(server: ApiServer) -> None:
    """Objects of all kinds; those that refer before those that they refer to."""
    await server.create("namespaces", NAMESPACE)
    await server.create("ingresses", ingress("a.example.com", "example.org"))
    await server.create("endpointslices", endpointslice(0, 1, 2))
    await server.create("endpoints", endpoints(0, 1, 2))
    await server.create("services", SERVICE)
    for number in range(4):
        await server.create("pods", pod(number))
    for number in range(3):
        await server.create("nodes", node(number))
    await server.create("replicasets", owned("Deployment", "web"))
    await server.create("jobs", owned("CronJob", "nightly"))


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
    await server.replace("replicasets", owned("Deployment", "shop"))


async def delete_some(server: ApiServer) -> None:
    """One object of each kind; others go on referring to them."""
    await server.delete("services", SERVICE)
    await server.delete("pods", pod(2))
    await server.delete("nodes", node(0))
    await server.delete("endpointslices", endpointslice())
    await server.delete("endpoints", endpoints())
    await server.delete("ingresses", ingress())
    await server.delete("jobs", owned("CronJob", "nightly"))


@pytest.mark.slow
@pytest.mark.peers("etcd", "kube-apiserver", "openssl")
async def test_targets_follow_a_real_api_server_through_changes_restarts_and_compaction(tmp_path: Path) -> None:
    """Created, changed and deleted objects of all kinds, a server that stops and comes back, versions that etcd has forgotten."""
    async with ApiServer(tmp_path) as server, Discovery() as discovery:
        watchers = watch(discovery, server)
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

        late = watch(discovery, server, "late ")
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
        watchers = watch(discovery, server)
        for watcher in watchers.values():
            await watcher.synced(timeout=60)
        await follow(watchers, server)
        before = {which: label_sets(watcher.scrape_works()) for which, watcher in watchers.items()}
        async with server.out_of_sight():
            await change(server)
            await delete_some(server)
            await server.compact()
            # Nothing is lost with the server; only its own address may be gone, which it takes back when it stops.
            for which, watcher in watchers.items():
                assert (before[which] - label_sets(watcher.scrape_works())).total() <= (which[0] in OWN)
        await follow(watchers, server)
    for role in ROLES:
        assert registry.get_sample_value("fastdisco_discovery_kubernetes_stale_resource_versions_total", {"role": role})


@pytest.mark.slow
@pytest.mark.peers("etcd", "kube-apiserver", "openssl")
async def test_a_real_api_server_sends_no_more_of_owners_than_their_metadata(tmp_path: Path) -> None:
    """In lists and in watches."""
    async with ApiServer(tmp_path) as server:
        await server.create("namespaces", NAMESPACE)
        await server.create("replicasets", owned("Deployment", "web"))
        client = ApiClient(resolve(job(server, "pod"))).metadata_only()
        try:
            found = orjson.loads(await client.get("/apis/apps/v1/replicasets", {"resourceVersion": "0"}))
            assert found["kind"] == "PartialObjectMetadataList"
            assert [set(item) - {"kind", "apiVersion"} for item in found["items"]] == [{"metadata"}]
            async with client.stream("/apis/apps/v1/replicasets", {"watch": "1", "timeoutSeconds": "10"}, read_timeout=20) as lines:
                event = orjson.loads(await anext(lines))
            assert (event["type"], event["object"]["kind"], set(event["object"])) == (
                "ADDED", "PartialObjectMetadata", {"kind", "apiVersion", "metadata"},
            )  # fmt: skip
        finally:
            await client.close()
