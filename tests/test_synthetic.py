"""The synthetic cluster and its API server: shapes, references, lists, watches, writes, faults, books."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote, urlsplit

import aiohttp
import pytest

from fastdisco.synthetic import Cluster, Sizes, SyntheticProcess, SyntheticServer
from fastdisco.synthetic.digests import digest
from fastdisco.synthetic.resources import RESOURCES
from fastdisco.synthetic.selectors import parse_labels
from fastdisco.synthetic.status import StatusError

PODS = "/api/v1/pods"
SLICES = "/apis/discovery.k8s.io/v1/endpointslices"


def pod(name: str, namespace: str = "default", phase: str = "Running", **labels: str) -> dict[str, Any]:
    """A small pod."""
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"metadata": metadata, "spec": {"nodeName": "n1", "containers": []}, "status": {"phase": phase}}


class Client:
    """A bare HTTP/1.1 client on one socket, which shows the bytes as they are."""

    sockets: ClassVar[list[asyncio.StreamWriter]] = []

    def __init__(self, url: str) -> None:
        self.port = urlsplit(url).port
        self.code = 0
        self.headers: dict[str, str] = {}
        self.rest = b""

    async def open(self, target: str, method: str = "GET", body: Any = None, **headers: str) -> None:
        """Send a request and read the head of the answer."""
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.sockets.append(self.writer)
        data = json.dumps(body).encode() if body is not None else b""
        lines = [f"{method} {target} HTTP/1.1", "Host: x", f"Content-Length: {len(data)}", *(f"{k}: {v}" for k, v in headers.items())]
        self.writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        self.code = int(head[0].split()[1])
        self.headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in head[1:] if line)}

    async def chunk(self) -> bytes:
        """The next chunk; empty at the end."""
        size = int(await self.reader.readuntil(b"\r\n"), 16)
        return (await self.reader.readexactly(size + 2))[:-2]

    async def body(self) -> bytes:
        """The whole body."""
        if "content-length" in self.headers:
            return await self.reader.readexactly(int(self.headers["content-length"]))
        parts = []
        while part := await self.chunk():
            parts.append(part)
        return b"".join(parts)

    async def event(self) -> dict[str, Any]:
        """The next line of a watch; an empty dictionary at its clean end."""
        line = self.rest
        while b"\n" not in line:
            part = await asyncio.wait_for(self.chunk(), 5)
            if not part:
                assert not line
                return {}
            line += part
        line, _, self.rest = line.partition(b"\n")
        return json.loads(line)  # type: ignore[no-any-return]

    def close(self) -> None:
        """Close the socket."""
        self.writer.close()


async def ask(server: SyntheticServer, target: str, method: str = "GET", body: Any = None, **headers: str) -> tuple[int, Any]:
    """One request: the status code and the decoded body."""
    client = Client(server.url)
    await client.open(target, method, body, **headers)
    answer = await client.body()
    client.close()
    return client.code, json.loads(answer)


async def watch(server: SyntheticServer, target: str) -> Client:
    """An open watch."""
    client = Client(server.url)
    await client.open(target)
    assert client.code == 200
    assert client.headers["transfer-encoding"] == "chunked"
    return client


def names(listing: dict[str, Any]) -> list[str]:
    """The names in a list."""
    return [item["metadata"]["name"] for item in listing["items"]]


def seen(event: dict[str, Any]) -> tuple[str, str]:
    """What happened to which object."""
    return event["type"], event["object"]["metadata"].get("name", "")


@pytest.fixture(autouse=True)
async def no_sockets_left() -> AsyncIterator[None]:
    """Close what a test left open."""
    yield
    for writer in Client.sockets:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    Client.sockets.clear()


@pytest.fixture(scope="module")
def made() -> Cluster:
    """A made cluster that no test changes."""
    return Cluster.make(Sizes(pods=1500, apps=60, services=70), seed=7)


@pytest.fixture
async def server() -> AsyncIterator[SyntheticServer]:
    """A server of three small pods in two namespaces, which begins at version 4."""
    cluster = Cluster.of({"pods": [pod("b", app="web"), pod("a", app="web"), pod("c", "other", app="db")], "secrets": [{}]}, history=100)
    async with SyntheticServer(cluster) as running:
        yield running


def objects(cluster: Cluster, plural: str) -> list[dict[str, Any]]:
    """The decoded objects of a resource."""
    return [json.loads(entry.body[1:]) for entry in cluster.store.tables[plural].ordered()[1]]


def test_same_seed_same_bytes() -> None:
    """The same sizes and seed give the same bytes; another seed others."""

    def content(seed: int) -> list[bytes]:
        store = Cluster.make(Sizes(pods=300), seed=seed).store
        return [entry.body for table in store.tables.values() for entry in table.entries.values()]

    assert content(1) == content(1)
    assert content(1) != content(2)


def test_sizes(made: Cluster) -> None:
    """There is as much of everything as was asked for, and pods are as large as real ones."""
    counts = {plural: len(table.entries) for plural, table in made.store.tables.items()}
    assert counts["pods"] == 1500
    assert counts["services"] == counts["endpoints"] == 70
    assert counts["endpointslices"] >= 70
    assert min(counts.values()) > 0
    sizes = [len(entry.body) for entry in made.store.tables["pods"].entries.values()]
    assert 7000 <= sum(sizes) / len(sizes) <= 8200


def test_many_of_each_kind() -> None:
    """Every number can be set by itself."""
    sizes = Sizes(pods=50, nodes=51, namespaces=52, apps=10, services=53, ingresses=54)
    counts = {plural: len(table.entries) for plural, table in Cluster.make(sizes).store.tables.items()}
    assert [counts[plural] for plural in ("pods", "nodes", "namespaces", "services", "endpoints", "ingresses")] == [50, 51, 52, 53, 53, 54]


def test_pods_without_oddities_have_three_ports() -> None:
    """With oddities 0 every pod runs, is ready, and has three ports in two containers."""
    for item in objects(Cluster.make(Sizes(pods=400, oddities=0.0)), "pods"):
        containers = item["spec"]["containers"]
        assert [len(container["ports"]) for container in containers] == [2, 1]
        assert "initContainers" not in item["spec"]
        assert item["status"]["phase"] == "Running"
        assert {"type": "Ready", "status": "True"}.items() <= next(c for c in item["status"]["conditions"] if c["type"] == "Ready").items()


def test_oddities(made: Cluster) -> None:
    """There are pending and unready pods, sidecars, several kinds of owners, IPv6, and escapes as Go writes them."""
    items = objects(made, "pods")
    assert {"Running", "Pending"} <= {item["status"]["phase"] for item in items}
    assert {"ReplicaSet", "StatefulSet", "DaemonSet", "Job"} == {item["metadata"]["ownerReferences"][0]["kind"] for item in items}
    assert any(c.get("restartPolicy") == "Always" for item in items for c in item["spec"].get("initContainers", ()))
    assert any(":" in item["status"].get("podIP", "") for item in items)
    assert {"IPv4", "IPv6"} == {item["addressType"] for item in objects(made, "endpointslices")}
    body = next(iter(made.store.tables["pods"].entries.values())).body
    assert b"\\u003c" in body
    assert b"\\u0026" in body
    assert b"\\u2028" in body
    assert not set(b"<>&") & set(body)


def _check_references(cluster: Cluster) -> None:
    pods = {(p["metadata"]["namespace"], p["metadata"]["name"]): p for p in objects(cluster, "pods")}
    nodes = {n["metadata"]["name"] for n in objects(cluster, "nodes")}
    services = {(s["metadata"]["namespace"], s["metadata"]["name"]) for s in objects(cluster, "services")}
    namespaces = {n["metadata"]["name"] for n in objects(cluster, "namespaces")}
    assert {namespace for namespace, _ in pods} <= namespaces
    assert {item["spec"]["nodeName"] for item in pods.values() if "nodeName" in item["spec"]} <= nodes

    def check(namespace: str, address: dict[str, Any], ip: str, ports: list[dict[str, Any]], *, ready: bool) -> tuple[str, str]:
        target = address["targetRef"]
        item = pods[target["namespace"], target["name"]]
        assert target["namespace"] == namespace
        assert item["metadata"]["uid"] == target["uid"]
        assert item["status"]["podIP"] == ip
        assert item["spec"]["nodeName"] == address["nodeName"]
        assert (next(c["status"] for c in item["status"]["conditions"] if c["type"] == "Ready") == "True") is ready
        numbers = {port["containerPort"] for container in item["spec"]["containers"] for port in container["ports"]}
        assert {port["port"] for port in ports} <= numbers
        return target["namespace"], target["name"]

    in_endpoints, in_slices = set(), set()
    for item in objects(cluster, "endpoints"):
        namespace = item["metadata"]["namespace"]
        assert (namespace, item["metadata"]["name"]) in services
        for subset in item.get("subsets", ()):
            for key in ("addresses", "notReadyAddresses"):
                for address in subset.get(key, ()):
                    in_endpoints.add(check(namespace, address, address["ip"], subset["ports"], ready=key == "addresses"))
    for item in objects(cluster, "endpointslices"):
        namespace = item["metadata"]["namespace"]
        assert (namespace, item["metadata"]["labels"]["kubernetes.io/service-name"]) in services
        assert 0 < len(item["endpoints"]) <= 100
        for endpoint in item["endpoints"]:
            assert endpoint["conditions"]["ready"] is endpoint["conditions"]["serving"]
            in_slices.add(check(namespace, endpoint, endpoint["addresses"][0], item["ports"], ready=endpoint["conditions"]["ready"]))
    running = {key for key, item in pods.items() if item["status"].get("podIP") and item["status"]["phase"] == "Running"}
    assert in_slices == in_endpoints == running
    for item in objects(cluster, "ingresses"):
        backend = item["spec"]["rules"][0]["http"]["paths"][0]["backend"]["service"]["name"]
        assert (item["metadata"]["namespace"], backend) in services


def test_references_are_consistent(made: Cluster) -> None:
    """Pods name nodes that exist; endpoints and slices name pods with the same address, node, readiness and ports."""
    _check_references(made)


def test_addresses_lead_nowhere(made: Cluster) -> None:
    """All addresses are loopback or reserved for documentation."""
    allowed = [ipaddress.ip_network(net) for net in ("127.0.0.0/8", "192.0.2.0/24", "198.51.100.0/24", "203.0.113.0/24", "2001:db8::/32")]

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            for each in value.values():
                walk(each)
        elif isinstance(value, list):
            for each in value:
                walk(each)
        elif isinstance(value, str):
            with contextlib.suppress(ValueError):
                address = ipaddress.ip_address(value)
                assert any(address.version == net.version and address in net for net in allowed), value

    for plural in RESOURCES:
        for item in objects(made, plural)[:200]:
            walk(item)


def test_pod_addresses_and_names_are_unique(made: Cluster) -> None:
    """No two pods share an address, unless they use that of their host."""
    own = [item["status"]["podIP"] for item in objects(made, "pods") if item["status"].get("podIP") and "hostNetwork" not in item["spec"]]
    assert len(own) == len(set(own))


LABELS = {"app": "web", "tier": "front", "n": "5", "empty": ""}


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("", True),
        ("app", True),
        ("none", False),
        ("!none", True),
        ("!app", False),
        ("app=web", True),
        ("app==web", True),
        ("app!=web", False),
        ("none!=web", True),
        (" app = web , tier = front ", True),
        ("app=web,tier=back", False),
        ("app in (db, web)", True),
        ("app in (db)", False),
        ("app notin (db)", True),
        ("none notin (db)", True),
        ("none in (db)", False),
        ("app notin (db,web),tier", False),
        ("empty=", True),
        ("empty=,app", True),
        ("empty in ()", True),
        ("n>4", True),
        ("n<5", False),
        ("example.com/x!=1", True),
    ],
)
def test_label_selectors(selector: str, *, matches: bool) -> None:
    """The whole grammar of label selectors."""
    requirement = parse_labels(selector)
    assert (requirement is None or requirement(LABELS)) is matches


@pytest.mark.parametrize(
    "selector", ["app=a=b", "app===x", ",", "app,", "=x", "!", "app in", "app in (a", "app in a", "a b", "app=a/b", "n>x"]
)
def test_malformed_label_selectors(selector: str) -> None:
    """What is no selector is a 400."""
    with pytest.raises(StatusError) as refused:
        parse_labels(selector)
    assert refused.value.code == 400


async def test_list(server: SyntheticServer) -> None:
    """A list has its kind and version; its items are sorted by key and carry neither kind nor apiVersion."""
    code, listing = await ask(server, PODS)
    assert code == 200
    assert (listing["kind"], listing["apiVersion"], listing["metadata"]) == ("PodList", "v1", {"resourceVersion": "4"})
    assert names(listing) == ["a", "b", "c"]
    assert "kind" not in listing["items"][0]
    assert names((await ask(server, "/api/v1/namespaces/other/pods"))[1]) == ["c"]
    assert (await ask(server, "/api/v1/namespaces/none/pods"))[1]["items"] == []


async def test_all_resources(made: Cluster) -> None:
    """Every resource can be listed, whole and by namespace, and each object fetched."""
    async with SyntheticServer(made) as running:
        for plural, resource in RESOURCES.items():
            code, listing = await ask(running, resource.collection())
            assert code == 200
            assert listing["kind"] == f"{resource.kind}List"
            assert len(listing["items"]) == len(made.store.tables[plural].entries)
            metadata = listing["items"][0]["metadata"]
            path = f"{resource.collection(metadata.get('namespace', ''))}/{metadata['name']}"
            code, item = await ask(running, path)
            assert (code, item["kind"], item["metadata"]) == (200, resource.kind, metadata)


async def test_selectors_of_lists(server: SyntheticServer) -> None:
    """Label and field selectors narrow a list; what is not supported is a 400."""
    assert names((await ask(server, f"{PODS}?labelSelector={quote('app in (web)')}"))[1]) == ["a", "b"]
    fields = quote("metadata.name!=a,spec.nodeName=n1,status.phase=Running")
    assert names((await ask(server, f"{PODS}?fieldSelector={fields}"))[1]) == ["b", "c"]
    assert names((await ask(server, f"{PODS}?fieldSelector=metadata.namespace%3Dother"))[1]) == ["c"]
    code, status = await ask(server, f"{PODS}?fieldSelector=spec.foo%3D1")
    assert (code, status["message"], status["reason"]) == (400, "field label not supported: spec.foo", "BadRequest")
    assert (await ask(server, f"{SLICES}?fieldSelector=spec.nodeName%3Dx"))[0] == 400


async def test_pages(server: SyntheticServer) -> None:
    """Pages show the state of the first one, though objects change meanwhile; limit is ignored at version 0."""
    code, page = await ask(server, f"{PODS}?limit=2")
    assert (code, names(page), page["metadata"]["remainingItemCount"]) == (200, ["a", "b"], 1)
    server.control.apply([{"delete": "pods", "key": "other/c"}, {"put": "pods", "object": pod("d", "other")}])
    rest = f"{PODS}?limit=2&continue={page['metadata']['continue']}"
    code, last = await ask(server, rest)
    assert (code, names(last), last["metadata"]) == (200, ["c"], {"resourceVersion": "4"})
    assert names((await ask(server, f"{PODS}?limit=1&resourceVersion=0"))[1]) == ["a", "b", "d"]
    server.control.compact()
    code, status = await ask(server, rest)
    assert (code, status["reason"]) == (410, "Expired")
    code, inconsistent = await ask(server, f"{PODS}?limit=2&continue={status['metadata']['continue']}")
    assert (code, names(inconsistent), inconsistent["metadata"]["resourceVersion"]) == (200, ["d"], "6")
    assert (await ask(server, f"{PODS}?continue=nonsense"))[0] == 400


async def test_versions_of_lists(server: SyntheticServer) -> None:
    """Exact gives the old state, NotOlderThan the present one, a future version 504, a forgotten one 410."""
    server.control.apply([{"delete": "pods", "key": "default/a"}])
    assert names((await ask(server, f"{PODS}?resourceVersion=4&resourceVersionMatch=Exact"))[1]) == ["a", "b", "c"]
    for query in ("", "?resourceVersion=0", "?resourceVersion=4", "?resourceVersion=4&resourceVersionMatch=NotOlderThan"):
        code, listing = await ask(server, PODS + query)
        assert (code, names(listing), listing["metadata"]["resourceVersion"]) == (200, ["b", "c"], "5")
    client = Client(server.url)
    await client.open(f"{PODS}?resourceVersion=99")
    status = json.loads(await client.body())
    assert (client.code, client.headers["retry-after"]) == (504, "1")
    assert status["details"]["causes"][0]["reason"] == "ResourceVersionTooLarge"
    server.control.compact()
    assert (await ask(server, f"{PODS}?resourceVersion=4&resourceVersionMatch=Exact"))[0] == 410
    assert (await ask(server, f"{PODS}?resourceVersionMatch=Exact"))[0] == 422
    assert (await ask(server, f"{PODS}?resourceVersion=abc"))[0] == 500


async def test_watch_follows_a_list(server: SyntheticServer) -> None:
    """A watch from the list's version brings each later change once, in order, with rising versions."""
    server.control.apply([{"put": "pods", "object": pod("e")}])
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=4")
    assert seen(await client.event()) == ("ADDED", "e")
    assert (await ask(server, "/api/v1/namespaces/default/pods/e", "PUT", pod("e", app="new")))[0] == 200
    assert (await ask(server, "/api/v1/namespaces/default/pods/e", "DELETE"))[0] == 200
    modified, deleted = await client.event(), await client.event()
    assert (modified["type"], modified["object"]["kind"], modified["object"]["apiVersion"]) == ("MODIFIED", "Pod", "v1")
    assert [event["object"]["metadata"]["resourceVersion"] for event in (modified, deleted)] == ["6", "7"]
    assert seen(deleted) == ("DELETED", "e")
    assert deleted["object"]["metadata"]["labels"] == {"app": "new"}
    client.close()


async def test_watch_in_a_namespace(server: SyntheticServer) -> None:
    """A watch of one namespace sees nothing else."""
    client = await watch(server, "/api/v1/namespaces/other/pods?watch=true&resourceVersion=4")
    server.control.apply([{"put": "pods", "object": pod("x")}, {"put": "pods", "object": pod("y", "other")}])
    assert seen(await client.event()) == ("ADDED", "y")
    client.close()


async def test_watch_with_a_selector(server: SyntheticServer) -> None:
    """Who enters the selector is ADDED, who leaves it is DELETED with the old state at the version of the change."""
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=4&labelSelector=app%3Dweb")
    server.control.apply([{"put": "pods", "object": pod("c", "other", app="web")}, {"put": "pods", "object": pod("a", app="db")}])
    assert seen(await client.event()) == ("ADDED", "c")
    gone = await client.event()
    assert seen(gone) == ("DELETED", "a")
    assert gone["object"]["metadata"]["labels"] == {"app": "web"}
    assert gone["object"]["metadata"]["resourceVersion"] == "6"
    client.close()


async def test_watch_at_version_0(server: SyntheticServer) -> None:
    """Version 0 brings everything as ADDED, then the end mark if bookmarks are wanted, then changes."""
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=0&allowWatchBookmarks=1")
    assert [seen(await client.event()) for _ in range(3)] == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c")]
    mark = await client.event()
    assert mark["type"] == "BOOKMARK"
    assert mark["object"]["metadata"]["annotations"] == {"k8s.io/initial-events-end": "true"}
    assert mark["object"]["metadata"]["resourceVersion"] == "4"
    server.control.apply([{"put": "pods", "object": pod("z")}])
    assert seen(await client.event()) == ("ADDED", "z")
    client.close()


async def test_initial_events(server: SyntheticServer) -> None:
    """Initial events need a match and the feature; without it version 0 still brings everything, but no end mark."""
    code, status = await ask(server, f"{PODS}?watch=1&sendInitialEvents=true")
    assert (code, status["reason"]) == (422, "Invalid")
    server.control.settings(watch_list=False)
    code, status = await ask(server, f"{PODS}?watch=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan")
    assert (code, status["details"]["causes"][0]["field"]) == (422, "sendInitialEvents")
    client = await watch(server, f"{PODS}?watch=1&allowWatchBookmarks=1")
    assert [seen(await client.event())[0] for _ in range(3)] == ["ADDED"] * 3
    server.control.watches(ending="end")
    assert await client.event() == {}
    client.close()


async def test_bookmarks_and_the_end(server: SyntheticServer) -> None:
    """Bookmarks come at the interval and before the end; the end at timeoutSeconds is clean."""
    server.control.settings(bookmark_interval=0.3)
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=4&allowWatchBookmarks=true&timeoutSeconds=1")
    server.control.apply([{"put": "services", "object": pod("s")}])  # any change moves the version on
    events = []
    while event := await client.event():
        events.append(event)
    assert {event["type"] for event in events} == {"BOOKMARK"}
    assert len(events) >= 3
    assert events[-1]["object"]["metadata"] == {"resourceVersion": "5", "creationTimestamp": None}
    client.close()


async def test_no_unasked_bookmarks(server: SyntheticServer) -> None:
    """Who does not ask for bookmarks gets none."""
    server.control.settings(bookmark_interval=0.05)
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=4&timeoutSeconds=1")
    assert await client.event() == {}
    client.close()


async def test_too_old_a_watch(server: SyntheticServer) -> None:
    """A watch from before the history window is a 200 with one ERROR event of code 410, then the end."""
    for number in range(101):
        server.control.apply([{"put": "pods", "object": pod("a", n=str(number))}])
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=4")
    error = await client.event()
    assert error["type"] == "ERROR"
    assert (error["object"]["code"], error["object"]["reason"]) == (410, "Expired")
    assert error["object"]["message"] == "too old resource version: 4 (5)"
    assert await client.event() == {}
    client.close()
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=5")
    assert (await client.event())["object"]["metadata"]["resourceVersion"] == "6"
    client.close()


async def test_compaction_spares_open_watches(server: SyntheticServer) -> None:
    """A compaction ends no open watch, but nobody can come back from before it."""
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=4")
    server.control.apply([{"put": "pods", "object": pod("x")}])
    server.control.compact()
    assert seen(await client.event()) == ("ADDED", "x")
    client.close()
    late = await watch(server, f"{PODS}?watch=1&resourceVersion=4")
    assert (await late.event())["object"]["code"] == 410
    late.close()


async def test_rewind(server: SyntheticServer) -> None:
    """After the version was set back, lists have lower versions and a watch from the future is silent until the server is there."""
    server.control.apply([{"put": "pods", "object": pod("x")}, {"put": "pods", "object": pod("y")}])
    open_watch = await watch(server, f"{PODS}?watch=1&resourceVersion=6")
    server.control.rewind(3)
    assert await open_watch.event() == {}
    listing = (await ask(server, PODS))[1]
    assert listing["metadata"]["resourceVersion"] == "3"
    assert max(int(item["metadata"]["resourceVersion"]) for item in listing["items"]) <= 3
    assert (await ask(server, f"{PODS}?resourceVersion=6"))[0] == 504
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=6")
    for number in range(4):
        server.control.apply([{"put": "pods", "object": pod("x", n=str(number))}])
    event = await client.event()
    assert (event["object"]["metadata"]["resourceVersion"], event["object"]["metadata"]["labels"]) == ("7", {"n": "3"})
    client.close()
    open_watch.close()


async def test_writes(server: SyntheticServer) -> None:
    """POST, PUT and DELETE count the version up, keep the uid, and are refused as a real server refuses them."""
    item = {"kind": "Pod", "metadata": {"name": "n"}, "spec": {"x": "<&>"}}
    code, created = await ask(server, "/api/v1/namespaces/default/pods", "POST", item)
    assert (code, created["kind"], created["metadata"]["resourceVersion"]) == (201, "Pod", "5")
    assert (await ask(server, "/api/v1/namespaces/default/pods", "POST", {"metadata": {"name": "n"}}))[1]["reason"] == "AlreadyExists"
    code, replaced = await ask(server, "/api/v1/namespaces/default/pods/n", "PUT", {"metadata": {"name": "n"}, "spec": {}})
    assert (code, replaced["metadata"]["uid"]) == (200, created["metadata"]["uid"])
    code, deleted = await ask(server, "/api/v1/namespaces/default/pods/n", "DELETE")
    assert (code, deleted["metadata"]["resourceVersion"]) == (200, "7")
    code, status = await ask(server, "/api/v1/namespaces/default/pods/n", "DELETE")
    assert (code, status["message"], status["details"]) == (404, 'pods "n" not found', {"name": "n", "kind": "pods"})
    assert (await ask(server, "/api/v1/namespaces/default/pods/n", "PUT", {"metadata": {"name": "n"}}))[0] == 404
    assert (await ask(server, "/api/v1/namespaces/default/pods/a", "PATCH", {}))[0] == 405


async def test_api_versions(server: SyntheticServer) -> None:
    """v1 and v1beta1 of the grouped resources are served as it is set; the rest is a 404."""
    beta = SLICES.replace("v1", "v1beta1")
    assert (await ask(server, SLICES))[1]["apiVersion"] == "discovery.k8s.io/v1"
    assert (await ask(server, beta))[0] == (await ask(server, "/apis/discovery.k8s.io/v1beta1"))[0] == 404
    server.control.settings(v1=False, v1beta1=True)
    assert (await ask(server, SLICES))[0] == (await ask(server, "/apis/discovery.k8s.io/v1"))[0] == 404
    assert (await ask(server, beta))[1]["apiVersion"] == "discovery.k8s.io/v1beta1"
    assert (await ask(server, "/apis/discovery.k8s.io/v1beta1"))[0] == 200
    code, status = await ask(server, "/api/v1/secrets")
    assert (code, status["message"]) == (404, "the server could not find the requested resource")
    assert (await ask(server, "/version"))[1]["major"] == "1"


async def test_token_and_books(server: SyntheticServer) -> None:
    """A required token refuses others with 401; the books keep each request, its token and what was in flight at most."""
    server.control.settings(token="secret")
    assert (await ask(server, f"{PODS}?limit=1"))[0] == 401
    assert (await ask(server, PODS, Authorization="Bearer secret"))[0] == 200
    client = Client(server.url)
    await client.open(f"{PODS}?watch=1&resourceVersion=4", Authorization="Bearer secret")
    report = (await ask(server, "/control/requests"))[1]
    refused, listed, watched = report["requests"]
    assert (refused["status"], refused["path"], refused["query"]) == (401, PODS, {"limit": "1"})
    assert (listed["status"], listed["verb"], listed["headers"]["authorization"]) == (200, "list", "Bearer secret")
    assert (watched["verb"], watched["ended"], report["in_flight"]["watch"], report["max_in_flight"]["list"]) == ("watch", None, 1, 1)
    assert report["open_sockets"] == 1
    client.close()
    await ask(server, "/control/requests", "POST")
    assert (await ask(server, "/control/requests"))[1]["requests"] == []


@pytest.mark.parametrize(
    ("rule", "kind", "text"),
    [
        ({"status": 429, "retry_after": 7, "body": "text", "message": "Too many requests."}, "text/plain", "Too many"),
        ({"status": 403, "message": "no"}, "application/json", '"reason":"Forbidden"'),
        ({"status": 403, "body": "pretty"}, "application/json", '\n  "code": 403\n'),
        ({"status": 504, "cause": "ResourceVersionTooLarge", "retry_after": 1}, "application/json", '"retryAfterSeconds":1'),
    ],
)
async def test_refusals(server: SyntheticServer, rule: dict[str, Any], kind: str, text: str) -> None:
    """A fault refuses the next n requests under its path, with the body and Retry-After that it says."""
    await ask(server, "/control/faults", "POST", {"path": PODS, "count": 1, **rule})
    client = Client(server.url)
    await client.open(PODS)
    body = (await client.body()).decode()
    assert client.code == rule["status"]
    assert client.headers["content-type"].startswith(kind)
    assert client.headers.get("retry-after") == (str(rule["retry_after"]) if "retry_after" in rule else None)
    assert text in body
    assert (await ask(server, PODS))[0] == 200
    client.close()


async def test_spoiled_lists(server: SyntheticServer) -> None:
    """A list's items can be null, and its body cut short: with a clean end, a lost one, or a reset."""
    server.control.faults(
        [{"null_items": True, "count": 1}, {"truncate": 300, "count": 1}, {"truncate": 300, "ending": "close", "count": 1}]
    )
    assert (await ask(server, PODS))[1]["items"] is None
    client = Client(server.url)
    await client.open(PODS)
    assert len(await client.body()) == 300
    client.close()
    await client.open(PODS)
    with pytest.raises((asyncio.IncompleteReadError, ValueError)):
        await client.body()
    client.close()


async def test_cut_anywhere(server: SyntheticServer) -> None:
    """With a write size the same body comes in chunks of that size."""
    whole = (await ask(server, PODS))[1]
    server.control.faults(verb="list", write_size=7)
    client = Client(server.url)
    await client.open(PODS)
    assert len(await client.chunk()) == 7
    server.control.faults(clear=True)
    client.close()
    server.control.faults(verb="list", write_size=1)
    assert (await ask(server, PODS))[1] == whole


async def test_endings_of_watches(server: SyntheticServer) -> None:
    """A watch ends after as many lines as a fault says: cleanly, with an ERROR, or by a reset in the middle of a line."""
    server.control.faults(
        [
            {"verb": "watch", "count": 1, "after": 0},
            {"verb": "watch", "count": 1, "after": 1, "ending": "error", "error": {"code": 500, "message": "no leader"}},
            {"verb": "watch", "count": 1, "after": 1, "ending": "reset", "mid_line": True},
        ]
    )
    target = f"{PODS}?watch=1&resourceVersion=4"
    client = await watch(server, target)
    assert await client.event() == {}
    server.control.apply([{"put": "pods", "object": pod("x")}, {"put": "pods", "object": pod("y")}])
    client = await watch(server, target)
    assert seen(await client.event()) == ("ADDED", "x")
    error = await client.event()
    assert (error["type"], error["object"]["code"], error["object"]["reason"]) == ("ERROR", 500, "InternalError")
    client = await watch(server, target)
    assert seen(await client.event()) == ("ADDED", "x")
    assert (await client.chunk()).startswith(b'{"type":"ADDED","object":{"kind":"Pod"')
    with pytest.raises(ConnectionResetError):
        await client.chunk()


async def test_silence_and_open_watches(server: SyntheticServer) -> None:
    """A silent watch sends neither events nor bookmarks; open watches can be given lines and be ended at once."""
    server.control.settings(bookmark_interval=0.05)
    server.control.faults(verb="watch", count=1, silent=True)
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=4&allowWatchBookmarks=1")
    server.control.apply([{"put": "pods", "object": pod("x")}])
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(client.chunk(), 0.3)
    assert server.control.watches(PODS) == {"count": 1}
    server.control.watches(PODS, "end", lines=['{"type":"STRANGE","object":{}}'])
    assert (await client.event())["type"] == "STRANGE"
    assert await client.event() == {}
    client.close()


async def test_unknown_faults_are_refused(server: SyntheticServer) -> None:
    """A mistake in a control request is a 400 that says so."""
    code, answer = await ask(server, "/control/faults", "POST", {"colour": "red"})
    assert (code, answer["error"]) == (400, "ValueError: unknown keys of a fault: colour")
    assert (await ask(server, "/control/nothing"))[0] == 404
    assert (await ask(server, "/control/turnover", "POST"))[0] == 400


async def test_slow_watchers_lose_nothing(server: SyntheticServer) -> None:
    """More events than the history holds reach a watch that was open before them."""
    client = await watch(server, f"{PODS}?watch=1&resourceVersion=4")
    server.control.apply([{"put": "pods", "object": pod("a", n=str(number))} for number in range(1000)])
    versions = [int((await client.event())["object"]["metadata"]["resourceVersion"]) for _ in range(1000)]
    assert versions == list(range(5, 1005))
    client.close()


async def test_turnover_and_churn_keep_references() -> None:
    """After churn and a turnover everything still fits together, and no pod has its old name."""
    cluster = Cluster.make(Sizes(pods=400, apps=8, slice_size=20), seed=3)
    before = set(cluster.store.tables["pods"].entries)
    async with SyntheticServer(cluster) as running:
        client = await watch(running, f"{PODS}?watch=1&resourceVersion={cluster.store.version}")
        kinds, mix = ["pod", "node", "service", "ingress", "namespace"], {"modified": 2, "added": 1, "deleted": 1}
        await ask(running, "/control/churn", "POST", {"rate": 2000, "kinds": kinds, "mix": mix})
        types = {(await client.event())["type"] for _ in range(200)}
        assert (await ask(running, "/control/churn", "DELETE"))[1]["rate"] == 0
        assert types == {"ADDED", "MODIFIED", "DELETED"}
        _check_references(cluster)
        count = len(cluster.store.tables["pods"].entries)
        await ask(running, "/control/turnover", "POST")
        client.close()
    after = set(cluster.store.tables["pods"].entries)
    assert len(after) == count
    assert not before & after
    _check_references(cluster)


async def test_burst() -> None:
    """A burst brings as many events as asked, each changing what labels need."""
    cluster = Cluster.make(Sizes(pods=100), seed=3)
    async with SyntheticServer(cluster) as running:
        client = await watch(running, f"{PODS}?watch=1&resourceVersion={cluster.store.version}")
        before = {entry.key: entry.body for entry in cluster.store.tables["pods"].entries.values()}
        assert (await running.control.burst(500, change="annotation"))["events"] == 500
        for _ in range(500):
            metadata = (await client.event())["object"]["metadata"]
        assert metadata["annotations"]["example.com/revision"] not in ("", "0")
        assert before[f"{metadata['namespace']}/{metadata['name']}"]
        client.close()


async def test_a_held_burst_is_seen_once_it_is_released() -> None:
    """Watches see nothing before, then all of it in order, the marker's new pod at the end; a list shows it at once."""
    cluster = Cluster.make(Sizes(pods=100), seed=3)
    marker = cluster.apps[0]
    async with SyntheticServer(cluster) as running:
        client = await watch(running, f"{PODS}?watch=1&resourceVersion={cluster.store.version}")
        before = cluster.store.version
        made = await running.control.burst(60, turned=0.5, marker=marker.name, hold=True)
        assert made == {"events": 60, "resourceVersion": before + 60}
        assert (await ask(running, PODS))[1]["metadata"]["resourceVersion"] == str(before + 60)
        assert {watch.position for watch in running.watches} == {cluster.store.tables["pods"].end}
        assert running.control.release()["resourceVersion"] == before + 60
        events = [await client.event() for _ in range(60)]
        assert [int(one["object"]["metadata"]["resourceVersion"]) for one in events] == list(range(before + 1, before + 61))
        assert Counter(one["type"] for one in events) == {"MODIFIED": 30, "ADDED": 16, "DELETED": 14}
        turned = [one["object"]["metadata"]["labels"]["app"] for one in events if one["type"] != "MODIFIED"]
        assert turned.count(marker.name) == 1
        assert turned[-1] == marker.name
        await running.control.burst(5, app=marker.name)
        assert {(await client.event())["object"]["metadata"]["labels"]["app"] for _ in range(5)} == {marker.name}
        with pytest.raises(ValueError, match="no app is called nobody"):
            await running.control.burst(1, app="nobody")
        client.close()


async def test_the_digest_of_targets_is_that_of_the_listed_pods() -> None:
    """Each port of each running pod once, whatever the order; a changed pod changes it, and so does the choice of an app."""
    cluster = Cluster.make(Sizes(pods=60, oddities=0.0), seed=5)
    async with SyntheticServer(cluster) as running:

        async def listed(app: str = "") -> dict[str, Any]:
            pods = (await ask(running, PODS))[1]["items"]
            found = [
                (pod["metadata"]["namespace"], pod["metadata"]["name"], address(pod["status"]["podIP"], port), ready(pod))
                for pod in reversed(pods)
                if app in ("", pod["metadata"]["labels"]["app"])
                for container in pod["spec"]["containers"]
                for port in container["ports"]
            ]
            return {"targets": len(found), "digest": digest(found)}

        def address(host: str, port: dict[str, Any]) -> str:
            return f"[{host}]:{port['containerPort']}" if ":" in host else f"{host}:{port['containerPort']}"

        def ready(pod: dict[str, Any]) -> str:
            return next(str(one["status"]).lower() for one in pod["status"]["conditions"] if one["type"] == "Ready")

        first = running.control.targets()
        assert first == await listed()
        assert first["targets"] == 180
        app = cluster.apps[0].name
        assert running.control.targets(app) == await listed(app)
        assert running.control.targets(app)["targets"] == 3 * running.control.apps()[app]
        await running.control.burst(1)
        assert running.control.targets()["digest"] != first["digest"]
        assert running.control.targets(ready=True)["targets"] == 177
        assert running.control.targets() == await listed()


async def test_a_change_can_carry_the_time_of_its_write() -> None:
    """In the annotation that counts changes otherwise: nanoseconds of the monotonic clock that all processes here share."""
    cluster = Cluster.make(Sizes(pods=5, oddities=0.0))
    async with SyntheticServer(cluster) as running:
        before = time.monotonic_ns()
        await running.control.burst(1, change="time")
        written = {pod["metadata"]["annotations"]["example.com/revision"] for pod in (await ask(running, PODS))[1]["items"]} - {"0"}
        assert before <= int(written.pop()) <= time.monotonic_ns()


async def test_aiohttp_reads_it(made: Cluster) -> None:
    """A real HTTP client reads lists over one kept connection, and a watch."""
    async with SyntheticServer(made) as running, aiohttp.ClientSession(running.url) as session:
        for _ in range(3):
            async with session.get(PODS) as response:
                assert len((await response.json())["items"]) == 1500
        assert running.books.max_open_sockets == 1
        async with session.get(f"{PODS}?watch=1&resourceVersion=0&timeoutSeconds=1") as response:
            assert len((await response.content.readline()).splitlines()) == 1


def test_process(tmp_path: Path) -> None:
    """The server in its own process serves given objects, takes writes and control, and ends when told."""
    with SyntheticProcess(objects={"pods": [pod("a")]}, token="t", watch_list=False) as process:
        assert process.request("GET", "/readyz") == (200, b"ok")
        assert process.request("GET", PODS)[0] == 401
        process.put("pod", pod("b"))
        process.delete("pods", "default/a")
        assert process.control("state")["objects"]["pods"] == 1
        assert process.control("requests")["max_in_flight"] == {"get": 1, "list": 1}
        process.control("faults", [{"status": 500}])
        assert process.request("GET", PODS)[0] == 500
        with pytest.raises(ValueError, match="no such control"):
            process.control("nothing")
        pid = process.pid
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    with pytest.raises(RuntimeError):
        SyntheticProcess(objects=tmp_path / "none.json").start()


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--cert-file", "none.pem"), "cannot use the certificate of --cert-file none.pem: [Errno 2] No such file or directory\n"),
        (("--key-file", "none.key"), "error: argument --key-file: needs --cert-file\n"),
        (("--port", "{port}"), "cannot listen on 127.0.0.1:{port}: "),
        (("--objects", "none.json"), "[Errno 2] No such file or directory: 'none.json'\n"),
        (("--objects", "{file}"), "{file}: must be {{plural: [object, ...]}}\n"),
    ],
)
def test_process_tells_what_it_cannot_use(tmp_path: Path, flags: tuple[str, ...], message: str) -> None:
    """In words, with an exit status of 2."""
    file = tmp_path / "objects.json"
    file.write_text('{"pods": [1]}')
    with socket.create_server(("127.0.0.1", 0)) as taken:
        known = {"port": taken.getsockname()[1], "file": file}
        command = [sys.executable, "-m", "fastdisco.synthetic", "--pods", "5", *(flag.format(**known) for flag in flags)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 2
    assert message.format(**known) in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("how", ["stdin", "SIGTERM", "SIGINT"])
def test_process_ends(how: str) -> None:
    """The process ends by itself on SIGTERM, on SIGINT, and when the other end of its standard input is gone."""
    command = [sys.executable, "-m", "fastdisco.synthetic", "--pods", "50"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
        if how == "stdin":
            process.stdin.close()
        else:
            process.send_signal(getattr(signal, how))
        assert process.wait(10) == 0
