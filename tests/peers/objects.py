"""A seeded cluster of many objects of each kind that refer to one another, for real programs to discover."""

import random
import re
from collections.abc import Callable
from typing import Any

Object = dict[str, Any]
Objects = dict[str, list[Object]]
Maker = Callable[[random.Random, int], Object]

NAMESPACES = [f"ns-{number}" for number in range(8)]
PORTS = [80, 443, 8080, 9090, 9100]
# Sets of keys that become equal when cleaned are what the greatest-key rule is about.
PAIRS: dict[str, tuple[str, ...]] = {
    "app": ("web", "db", "node-exporter"),
    "app.kubernetes.io/name": ("x", "kube-state-metrics", "coredns"),
    "app_kubernetes_io/name": ("y",),
    "app-kubernetes.io/name": ("z",),
    "app.kubernetes.io/component": ("metrics", ""),
    "k8s-app": ("kube-dns", "kubelet"),
    "job": ("batch", ""),
    "empty": ("",),
    "é": ('日本 "\\<&>',),
    "prometheus.io/scrape": ("true", "true", "false"),
    "prometheus.io/scrape_slow": ("true", "false"),
    "prometheus.io/port": ("9102", "8080", "none", ""),
    "prometheus.io/path": ("/stats", "metrics", ""),
    "prometheus.io/scheme": ("https", "http", "ftp"),
    "prometheus.io/param_module": ("http_2xx",),
    "prometheus.io/interval": ("30s", "1h", "soon"),
    "prometheus.io/probe": ("true", "false"),
}


def cluster(seed: int, count: int) -> Objects:
    """`count` objects of each kind; the same for the same arguments. Addresses are of loopback and the documentation ranges."""
    choose = random.Random(seed)
    return {plural: [make(choose, number) for number in range(count)] for plural, make in MAKERS.items()}


def namespace_of(number: int) -> str:
    return NAMESPACES[number % len(NAMESPACES)]


def metadata(choose: random.Random, name: str, namespace: str = "") -> Object:
    def pairs() -> dict[str, str]:
        return {key: choose.choice(PAIRS[key]) for key in choose.sample(sorted(PAIRS), choose.randrange(8))}

    inside = {"namespace": namespace} if namespace else {}
    return {"name": name, **inside, "uid": f"uid-{name}-{namespace}", "labels": pairs(), "annotations": pairs()}


def address(choose: random.Random, number: int) -> str:
    high, low = divmod(number, 250)
    return f"2001:db8::{number:x}" if choose.random() < 0.1 else f"127.{choose.randrange(1, 4)}.{high}.{low + 1}"


def node(choose: random.Random, number: int) -> Object:
    kinds = choose.sample(["InternalIP", "ExternalIP", "Hostname", "InternalDNS"], choose.randrange(1, 4))
    return {
        "metadata": metadata(choose, f"node-{number}"),
        "spec": {"providerID": f"synthetic://{number}"} if choose.random() < 0.8 else {},
        "status": {
            "addresses": [{"type": kind, "address": address(choose, number)} for kind in kinds],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
            "conditions": [{"type": kind, "status": choose.choice(["True", "False", "Unknown"])} for kind in ("Ready", "My-Own.One")],
        },
    }


def namespace(choose: random.Random, number: int) -> Object:
    return {"metadata": metadata(choose, f"ns-{number}"), "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}


def container(choose: random.Random, name: str, **more: Any) -> Object:
    ports = [
        {"containerPort": port, **choose.choice([{}, {"name": f"p{port}"}]), "protocol": choose.choice(["TCP", "TCP", "UDP"])}
        for port in choose.sample(PORTS, choose.randrange(3))
    ]
    return {"name": name, "image": f"registry.example/{name}:1", **({"ports": ports} if ports else {}), **more}


def status(choose: random.Random, name: str) -> Object:
    state: Object = {"terminated": {"exitCode": 0}} if choose.random() < 0.2 else {"running": {}}
    return {"name": name, "containerID": choose.choice(["", f"containerd://{name}"]), "state": state}


def pod(choose: random.Random, number: int) -> Object:
    names = [f"c{index}" for index in range(choose.randrange(1, 4))]
    init = [container(choose, "i0"), container(choose, "i1", restartPolicy="Always")][: choose.randrange(3)]
    owner = {
        "kind": choose.choice(["ReplicaSet", "ReplicaSet", "Job"]),
        "name": f"owner-{8 * choose.randrange(40) + number % 8}",  # of the same namespace
        "controller": choose.random() < 0.8,
        "apiVersion": "apps/v1",
        "uid": "u",
    }
    return {
        "metadata": {**metadata(choose, f"pod-{number}", namespace_of(number)), "ownerReferences": [owner]},
        "spec": {
            "nodeName": choose.choice(["", f"node-{choose.randrange(520)}", f"node-{choose.randrange(520)}"]),
            "containers": [container(choose, name) for name in names],
            **({"initContainers": init} if init else {}),
        },
        "status": {
            "phase": choose.choice(["Running", "Running", "Running", "Pending", "Succeeded", "Failed"]),
            "podIP": address(choose, number) if choose.random() < 0.95 else "",
            "hostIP": "127.0.0.9",
            "conditions": choose.choice([[], [{"type": "Ready", "status": "True"}], [{"type": "Ready", "status": "False"}]]),
            "containerStatuses": [status(choose, name) for name in names],
            "initContainerStatuses": [status(choose, entry["name"]) for entry in init],
        },
    }


def ports(choose: random.Random) -> list[Object]:
    numbers = choose.sample(PORTS, choose.randrange(3))
    return [{**choose.choice([{}, {"name": f"p{number}"}]), "port": number, "protocol": "TCP"} for number in numbers]


def service(choose: random.Random, number: int) -> Object:
    kind = choose.choice(["ClusterIP", "ClusterIP", "NodePort", "LoadBalancer", "ExternalName"])
    where = {"externalName": "service.example"} if kind == "ExternalName" else {"clusterIP": choose.choice(["None", "192.0.2.77"])}
    stack = choose.choice([{}, {}, {"ipFamilyPolicy": "RequireDualStack", "ipFamilies": choose.sample(["IPv4", "IPv6"], 2)}])
    balancer = choose.choice([{}, {"ingress": [{"ip": address(choose, number)}, {"hostname": "balancer.example"}, {"ip": "192.0.2.9"}]}])
    return {
        "metadata": metadata(choose, f"svc-{number}", namespace_of(number)),
        "spec": {"type": kind, **where, "ports": ports(choose), **stack, **choose.choice([{}, {"loadBalancerIP": "192.0.2.8"}])},
        "status": {"loadBalancer": balancer},
    }


def target_ref(choose: random.Random) -> Object:
    """A pod, now and then one that is not there, one of another namespace, or a node."""
    number = choose.randrange(520)
    odd = choose.random()
    if odd < 0.1:
        return {"targetRef": {"kind": "Node", "name": f"node-{number}"}}
    return {} if odd < 0.2 else {"targetRef": {"kind": "Pod", "name": f"pod-{number}", "namespace": namespace_of(number + (odd < 0.25))}}


def entry(choose: random.Random) -> Object:
    more: Object = target_ref(choose)
    if choose.random() < 0.5:
        more["nodeName"] = f"node-{choose.randrange(520)}"
    if choose.random() < 0.3:
        more["hostname"] = "host"
    return more


def endpoints(choose: random.Random, number: int) -> Object:
    def addresses() -> list[Object]:
        return [{"ip": address(choose, choose.randrange(500)), **entry(choose)} for _ in range(choose.randrange(4))]

    subsets = [{"addresses": addresses(), "notReadyAddresses": addresses(), "ports": ports(choose)} for _ in range(choose.randrange(1, 3))]
    return {"metadata": metadata(choose, f"svc-{number}", namespace_of(number)), "subsets": subsets}


def endpointslice(choose: random.Random, number: int) -> Object:
    of = choose.randrange(520)
    meta = metadata(choose, f"svc-{of}-{number}", namespace_of(of))
    meta["labels"]["kubernetes.io/service-name"] = f"svc-{of}"
    conditions = [{}, {"ready": True, "serving": True, "terminating": False}, {"ready": False, "serving": None}]
    return {
        "metadata": meta,
        "addressType": choose.choice(["IPv4", "IPv6", "FQDN"]),
        "ports": [{**port, **choose.choice([{}, {"appProtocol": "h2c"}])} for port in ports(choose)],
        "endpoints": [
            {
                "addresses": [address(choose, choose.randrange(500))],
                "conditions": choose.choice(conditions),
                **entry(choose),
                **zone(choose),
            }
            for _ in range(choose.randrange(5))
        ],
    }


def zone(choose: random.Random) -> Object:
    return choose.choice([{}, {"zone": "z1"}, {"zone": "", "deprecatedTopology": {"kubernetes.io/hostname": "h", "rack-1": "r"}}])


def owned(kind: str, behind: str) -> Maker:
    """Of what owns pods: ReplicaSets, or Jobs."""

    def make(choose: random.Random, number: int) -> Object:
        made = metadata(choose, f"owner-{number}", namespace_of(number))
        owner = {"kind": choose.choice([behind, behind, "Other"]), "name": f"{kind}-{number}", "controller": choose.random() < 0.8}
        return {"metadata": {**made, "ownerReferences": [{**owner, "apiVersion": "apps/v1", "uid": "u"}]}}

    return make


def unambiguous(objects: Objects) -> Objects:
    """Of keys that become equal when cleaned only the greatest, for whom chooses one of them at random."""
    for item in (item for items in objects.values() for item in items):
        for family in ("labels", "annotations"):
            pairs = item["metadata"].get(family, {})
            greatest = {re.sub("[^a-zA-Z0-9_]", "_", key): key for key in sorted(pairs)}
            item["metadata"][family] = {key: pairs[key] for key in greatest.values()}
    return objects


def ingress(choose: random.Random, number: int) -> Object:
    hosts = [f"a{number}.example.com", f"b.a{number}.example.com", "*.example.com"]
    rules = [
        {"host": host, **choose.choice([{}, {"http": {"paths": [{"path": "/x"}, {"path": ""}]}}])}
        for host in choose.sample(hosts, choose.randrange(1, 4))
    ]
    tls = choose.choice([[], [{"hosts": ["*.example.com"]}], [{"hosts": [hosts[1]]}]])
    of_class = choose.choice([{}, {"ingressClassName": "nginx"}])
    return {"metadata": metadata(choose, f"ing-{number}", namespace_of(number)), "spec": {**of_class, "rules": rules, "tls": tls}}


MAKERS: dict[str, Maker] = {
    "nodes": node,
    "namespaces": namespace,
    "pods": pod,
    "services": service,
    "endpoints": endpoints,
    "endpointslices": endpointslice,
    "ingresses": ingress,
    "replicasets": owned("set", "Deployment"),
    "jobs": owned("job", "CronJob"),
}
