"""The label rules of docs/labels.md, section by section, once more and plainly: from API objects as JSON gives them to target labels.

Dn is the number of a difference between the dialects, as docs/dialects.md has them.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]
Labels = dict[str, str]
Objects = Mapping[str, Sequence[Object]]  # plural resource name → the items of its list

META = "__meta_kubernetes_"
NODE_ADDRESS_TYPES = ("InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS", "LegacyHostIP", "Hostname")


def targets(
    role: str, objects: Objects, attach: Collection[str] = (), dialect: str = "victoriametrics", *, apart: bool = False
) -> list[Labels]:
    """The labels of all targets of a role, in no promised order; plurals that are not given have no objects.

    `attach` is of node, namespace, deployment, job and cronjob. `apart`: namespaces were named in the configuration.
    """
    cluster = Cluster(objects, attach, dialect == "prometheus")
    cluster.apart = apart and cluster.prometheus
    plural, make = ROLES[role]
    made = [labels for item in cluster.all[plural].values() for labels in make(cluster, item)]
    # D1: where an empty label is none, it is taken away at the very end, since until then it hides what its name had before
    return [{name: value for name, value in labels.items() if value} for labels in made] if cluster.prometheus else made


class Cluster:
    """All objects by resource and key, which metadata is attached, and the dialect."""

    def __init__(self, objects: Objects, attach: Collection[str], prometheus: bool) -> None:
        plurals = {plural for plural, _ in ROLES.values()} | {"namespaces", "replicasets", "jobs"}
        self.all = {plural: {key(item): item for item in objects.get(plural, ())} for plural in plurals}
        self.attach = attach
        self.prometheus = prometheus
        self.apart = False

    def node_metadata(self, name: str) -> Labels:
        found = self.all["nodes"].get(("", name))
        if "node" not in self.attach or (self.prometheus and found is None):  # D10
            return {}
        return {META + "node_name": name} | families("node", found)

    def namespace_metadata(self, name: str) -> Labels:
        return families("namespace", self.all["namespaces"].get(("", name))) if "namespace" in self.attach else {}

    def workload(self, namespace: str, owner: Object | None) -> Labels:
        """D11: what is behind the owner of a pod."""
        labels: Labels = {}
        for kind, wanted in (("ReplicaSet", "Deployment"), ("Job", "CronJob")):
            owned = self.all[f"{kind.lower()}s"].get((namespace, text(owner, "name"))) if text(owner, "kind") == kind else None
            behind = controller(owned)
            if wanted.lower() in self.attach and text(behind, "kind") == wanted:
                labels |= meta("pod_", **{f"{wanted.lower()}_name": text(behind, "name")})
        if "job" in self.attach and text(owner, "kind") == "Job" and text(owner, "name"):
            labels |= meta("pod_", job_name=text(owner, "name"))
        return labels


# 1. What all roles share


def key(item: Object) -> tuple[str, str]:
    return text(item, "metadata", "namespace"), text(item, "metadata", "name")


def part(item: Object | None, *path: str) -> Any:
    """What is at that path; None where the way there is absent or null."""
    for step in path:
        item = (item or {}).get(step)
    return item


def text(item: Object | None, *path: str) -> str:
    return part(item, *path) or ""


def number(item: Object | None, *path: str) -> int:
    return part(item, *path) or 0


def many(item: Object | None, *path: str) -> list[Object]:
    return [entry or {} for entry in part(item, *path) or ()]


def texts(item: Object | None, *path: str) -> list[str]:
    return [entry or "" for entry in part(item, *path) or ()]


def clean(name: str) -> str:
    return re.sub("[^a-zA-Z0-9_]", "_", name)


def families(role: str, item: Object | None) -> Labels:
    """Two labels per label and per annotation of an object; of keys that become equal, the greatest original one wins."""
    labels: Labels = {}
    for family, field in (("label", "labels"), ("annotation", "annotations")):
        for name, value in sorted((part(item, "metadata", field) or {}).items()):
            labels[f"{META}{role}_{family}_{clean(name)}"] = value or ""
            labels[f"{META}{role}_{family}present_{clean(name)}"] = "true"
    return labels


def controller(item: Object | None) -> Object | None:
    """The first owner that is one."""
    return next((entry for entry in many(item, "metadata", "ownerReferences") if part(entry, "controller")), None)


def host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def join(address: str, port: int) -> str:
    return f"{host(address)}:{port}"


def true_or_false(value: object) -> str:
    return "true" if value else "false"


def meta(prefix: str = "", /, **labels: str) -> Labels:
    return {META + prefix + name: value for name, value in labels.items()}


def some(prefix: str = "", /, **labels: str) -> Labels:
    """Those of `meta` that are not empty."""
    return {name: value for name, value in meta(prefix, **labels).items() if value}


# 2. node


def node(cluster: Cluster, item: Object) -> Iterator[Labels]:
    first: dict[str, str] = {}  # the first address of each type
    for entry in many(item, "status", "addresses"):
        first.setdefault(text(entry, "type"), text(entry, "address"))
    # D4: an empty address of a better type, or the next type
    address = next((first[kind] for kind in NODE_ADDRESS_TYPES if (kind in first if cluster.prometheus else first.get(kind))), None)
    name = text(item, "metadata", "name")
    if cluster.prometheus:
        first = dict(sorted(first.items()))  # D2
    if address is not None:
        yield (
            {"__address__": join(address, number(item, "status", "daemonEndpoints", "kubeletEndpoint", "Port")), "instance": name}
            | meta("node_", name=name, provider_id=text(item, "spec", "providerID"))
            | {f"{META}node_address_{clean(kind)}": address for kind, address in first.items()}
            | (node_conditions(item) if cluster.prometheus else {})
            | families("node", item)
        )


def node_conditions(item: Object) -> Labels:
    """D5: the last of each type."""
    conditions = many(item, "status", "conditions")
    return {f"{META}node_condition_{clean(text(entry, 'type').lower())}": text(entry, "status").lower() for entry in conditions}


# 3. pod


def pod(cluster: Cluster, item: Object) -> Iterator[Labels]:
    ip = text(item, "status", "podIP")
    if not ip or (text(item, "status", "phase") in {"Succeeded", "Failed"} and not cluster.prometheus):  # D6
        return
    node = ("", text(item, "spec", "nodeName"))
    if cluster.prometheus and "node" in cluster.attach and node not in cluster.all["nodes"]:  # D8
        return
    common = pod_place(cluster, item) | pod_labels(cluster, item)
    for container, init in containers(item):
        statuses = many(item, "status", "initContainerStatuses" if init else "containerStatuses")
        status = next((entry for entry in statuses if text(entry, "name") == text(container, "name")), None)
        if part(status, "state", "terminated") is not None and not cluster.prometheus:  # D7
            continue
        rest = common | some("pod_container_", id=text(status, "containerID"))
        ports: list[Object | None] = [*many(container, "ports")]
        for port in ports or [None]:
            bare = ip if cluster.prometheus else host(ip)  # D9
            address = bare if port is None else join(ip, number(port, "containerPort"))
            yield {"__address__": address} | rest | container_labels(container, init, port)


def pod_place(cluster: Cluster, item: Object) -> Labels:
    """Where a pod is, and what is attached of that."""
    namespace = key(item)[0]
    return cluster.node_metadata(text(item, "spec", "nodeName")) | cluster.namespace_metadata(namespace) | meta(namespace=namespace)


def pod_labels(cluster: Cluster, item: Object) -> Labels:
    """What every target of a pod has, in the roles that join pods too, beside where it is."""
    conditions = many(item, "status", "conditions")
    ready = next((text(entry, "status").lower() for entry in conditions if text(entry, "type") == "Ready"), "unknown")
    owner = controller(item)
    namespace, name = key(item)
    return (
        meta(pod_name=name, pod_ip=text(item, "status", "podIP"), pod_ready=ready)
        | meta("pod_", phase=text(item, "status", "phase"), node_name=text(item, "spec", "nodeName"))
        | meta("pod_", host_ip=text(item, "status", "hostIP"), uid=text(item, "metadata", "uid"))
        | some("pod_controller_", kind=text(owner, "kind"), name=text(owner, "name"))
        | cluster.workload(namespace, owner)
        | families("pod", item)
    )


def containers(item: Object) -> Iterator[tuple[Object, bool]]:
    """Each container, and whether it is an init container."""
    yield from ((entry, False) for entry in many(item, "spec", "containers"))
    yield from ((entry, True) for entry in many(item, "spec", "initContainers"))


def container_labels(container: Object, init: bool, port: Object | None) -> Labels:
    labels = meta("pod_container_", name=text(container, "name"), image=text(container, "image"), init=true_or_false(init))
    return labels if port is None else labels | port_labels("pod_container_port_", port, number(port, "containerPort"))


def port_labels(prefix: str, port: Object, value: int) -> Labels:
    return meta(prefix, name=text(port, "name"), number=str(value), protocol=text(port, "protocol"))


# 4. service


def service(cluster: Cluster, item: Object) -> Iterator[Labels]:
    namespace, name = key(item)
    for port in many(item, "spec", "ports"):
        value = number(port, "port")
        address = join(f"{name}.{namespace}.svc", value)
        yield {"__address__": address} | service_labels(cluster, item) | port_labels("service_port_", port, value)


def joined_service(cluster: Cluster, item: Object | None) -> Labels:
    """What targets of endpoints have of their service; nothing of an unknown one."""
    if item is None:
        return {}
    if cluster.prometheus:  # D13
        return meta(service_name=key(item)[1]) | families("service", item)
    return service_labels(cluster, item)


def service_labels(cluster: Cluster, item: Object) -> Labels:
    """What every target of a service has."""
    namespace, name = key(item)
    kind = text(item, "spec", "type")
    external = meta("service_", external_name=text(item, "spec", "externalName"))
    internal = meta("service_", cluster_ip=text(item, "spec", "clusterIP"))
    return (
        meta(namespace=namespace, service_name=name, service_type=kind)
        | (external if kind == "ExternalName" else internal)
        | (meta("service_", loadbalancer_ip=balancer(item)) if cluster.prometheus and kind == "LoadBalancer" else {})  # D12
        | cluster.namespace_metadata(namespace)
        | families("service", item)
    )


def balancer(item: Object) -> str:
    found = [text(entry, "ip") for entry in many(item, "status", "loadBalancer", "ingress")]
    return ",".join(filter(None, found)) or text(item, "spec", "loadBalancerIP")


# 5. endpoints and endpointslice: one walk, two ways of naming what it finds


def endpoints(cluster: Cluster, item: Object) -> Iterator[Labels]:
    own = meta(endpoints_name=text(item, "metadata", "name")) | families("endpoints", item)
    entries = (
        (address, join(text(address, "ip"), number(port, "port")), port, endpoint(address, port, ready))
        for subset in many(item, "subsets")
        for port in many(subset, "ports")
        for ready, field in (("true", "addresses"), ("false", "notReadyAddresses"))
        for address in many(subset, field)
    )
    return joined(cluster, item, "endpoint", own, cluster.all["services"].get(key(item)), entries, sidecars_only=True)


def endpoint(address: Object, port: Object, ready: str) -> Labels:
    always = meta("endpoint_", ready=ready, port_name=text(port, "name"), port_protocol=text(port, "protocol"))
    return always | some("endpoint_", node_name=text(address, "nodeName"), hostname=text(address, "hostname"))


def endpointslice(cluster: Cluster, item: Object) -> Iterator[Labels]:
    namespace, name = key(item)
    own = meta("endpointslice_", name=name, address_type=text(item, "addressType")) | families("endpointslice", item)
    found = cluster.all["services"].get((namespace, text(item, "metadata", "labels", "kubernetes.io/service-name")))
    if cluster.prometheus and is_secondary(item, found):
        return iter(())
    entries = (
        (entry, slice_address(cluster, address, port), port, slice_entry(cluster, entry, port))
        for entry in many(item, "endpoints")
        for port in many(item, "ports")
        for address in texts(entry, "addresses")
    )
    return joined(cluster, item, "endpointslice", own, found, entries, sidecars_only=False)


def is_secondary(item: Object, of_service: Object | None) -> bool:
    """D30: of a dual-stack service, and not of its first family."""
    families = texts(of_service, "spec", "ipFamilies")
    is_dual = text(of_service, "spec", "ipFamilyPolicy") in {"PreferDualStack", "RequireDualStack"}
    return is_dual and bool(families) and text(item, "addressType") != families[0]


def slice_address(cluster: Cluster, address: str, port: Object) -> str:
    return address if cluster.prometheus and part(port, "port") is None else join(address, number(port, "port"))  # D26


def slice_entry(cluster: Cluster, entry: Object, port: Object) -> Labels:
    unknown = "" if cluster.prometheus else "false"  # D25
    states = {name: part(entry, "conditions", name) for name in ("ready", "serving", "terminating")}
    conditions = {name: unknown if state is None else true_or_false(state) for name, state in states.items()}
    value = "" if cluster.prometheus and part(port, "port") is None else str(number(port, "port"))
    topology = sorted((part(entry, "deprecatedTopology" if cluster.prometheus else "topology") or {}).items())  # D29
    return (
        meta("endpointslice_endpoint_conditions_", **conditions)
        | meta("endpointslice_", port=value, port_name=text(port, "name"), port_protocol=text(port, "protocol"))
        | some("endpointslice_", port_app_protocol=text(port, "appProtocol"))
        | some("endpointslice_endpoint_", hostname=text(entry, "hostname"), node_name=text(entry, "nodeName"))
        | (meta("endpointslice_endpoint_", zone=text(entry, "zone")) if cluster.prometheus else {})  # D28
        | meta("endpointslice_endpoint_topology_", **{clean(name): value or "" for name, value in topology})
        | meta("endpointslice_endpoint_topology_present_", **{clean(name): "true" for name, _ in topology})
    )


def entry_node(cluster: Cluster, prefix: str, entry: Object) -> Labels:
    """D21, D22: of the node that an entry names; there is no second try."""
    of_target = text(entry, "targetRef", "name") if text(entry, "targetRef", "kind") == "Node" else None
    named = part(entry, "nodeName")
    first, second = (named, of_target) if prefix == "endpoint" else (of_target, named)
    return cluster.node_metadata((second if first is None else first) or "")


def joined(
    cluster: Cluster,
    item: Object,
    prefix: str,
    own: Labels,
    of_service: Object | None,
    entries: Iterable[tuple[Object, str, Object, Labels]],
    *,
    sidecars_only: bool,
) -> Iterator[Labels]:
    """A target per entry, then one per container port that no entry of the same pod covers; of two that write one label, the later wins."""
    prometheus = cluster.prometheus
    namespace = meta(namespace=key(item)[0]) | (cluster.namespace_metadata(key(item)[0]) if prometheus else {})  # D23
    covered: dict[tuple[str, str], set[int]] = {}  # the pods that entries name → the ports under which they do
    for entry, address, port, labels in entries:
        kind, name = text(entry, "targetRef", "kind"), text(entry, "targetRef", "name")
        where = (text(entry, "targetRef", "namespace"), name)
        target = {"__address__": address} | namespace | own | labels
        if part(entry, "targetRef") is not None if prometheus else kind:  # D31
            target |= {f"{META}{prefix}_address_target_kind": kind, f"{META}{prefix}_address_target_name": name}
        target |= joined_service(cluster, of_service)
        if prometheus:
            target |= entry_node(cluster, prefix, entry)
        is_seen = not cluster.apart or where[0] == key(item)[0]  # D45
        if kind == "Pod" and where in cluster.all["pods"] and is_seen:
            value = None if prometheus and prefix == "endpointslice" and part(port, "port") is None else number(port, "port")
            covered.setdefault(where, set()).update(() if value is None else (value,))
            found = cluster.all["pods"][where]
            target |= {} if prometheus else pod_place(cluster, found)  # D22, D23, D45
            target |= pod_labels(cluster, found)
            matching = {} if value is None else matching_container(found, value, sidecars_only and not prometheus)  # D14
            target |= matching
            if matching and prometheus and prefix == "endpoint":
                target |= meta("pod_container_port_", protocol=text(port, "protocol"))  # D17
        yield target
    for where, ports in covered.items():
        found = cluster.all["pods"][where]
        if prometheus and not text(found, "status", "podIP"):  # D20
            continue
        for container, init in containers(found) if prometheus else served(found):  # D16
            for port in many(container, "ports"):
                if number(port, "containerPort") not in ports:
                    target_of = {f"{META}{prefix}_address_target_kind": "Pod", f"{META}{prefix}_address_target_name": where[1]}
                    yield (
                        {"__address__": join(text(found, "status", "podIP"), number(port, "containerPort"))}
                        | (namespace if prometheus else pod_place(cluster, found))  # D19
                        | pod_labels(cluster, found)
                        | container_labels(container, init, port)
                        | own
                        | ({} if prometheus else target_of)  # D18
                        | joined_service(cluster, of_service)
                    )


def served(item: Object) -> Iterator[tuple[Object, bool]]:
    """The containers that run beside each other: of the init containers, only sidecars."""
    return ((entry, init) for entry, init in containers(item) if not init or text(entry, "restartPolicy") == "Always")


def matching_container(item: Object, port: int, sidecars_only: bool) -> Labels:
    """Of the last container that declares that number, and its first port that does."""
    labels: Labels = {}
    for container, init in served(item) if sidecars_only else containers(item):
        declared = next((entry for entry in many(container, "ports") if number(entry, "containerPort") == port), None)
        if declared is not None:
            labels = container_labels(container, init, declared)
    return labels


# 6. ingress


def ingress(cluster: Cluster, item: Object) -> Iterator[Labels]:
    namespace, name = key(item)
    secure = [pattern for entry in many(item, "spec", "tls") for pattern in texts(entry, "hosts")]
    common = (
        meta(namespace=namespace, ingress_name=name, ingress_class_name=text(item, "spec", "ingressClassName"))
        | cluster.namespace_metadata(namespace)
        | families("ingress", item)
    )
    for rule in many(item, "spec", "rules"):
        name = text(rule, "host")
        scheme = "https" if any(matches(pattern, name, cluster.prometheus) for pattern in secure) else "http"
        paths = many(rule, "http", "paths")
        if part(rule, "http") is None if cluster.prometheus else not paths:  # D33
            paths = [{}]
        for path in paths:
            yield {"__address__": name} | common | meta("ingress_", scheme=scheme, host=name, path=text(path, "path") or "/")


def matches(pattern: str, name: str, prometheus: bool) -> bool:
    """Equal, or `*.` in place of exactly the first label; D34: or `*` in place of the only one."""
    _, dot, rest = name.partition(".")
    return pattern == name or (dot == "." and pattern == "*." + rest) or (prometheus and pattern == "*" and not dot)


ROLES = {
    "node": ("nodes", node),
    "pod": ("pods", pod),
    "service": ("services", service),
    "endpoints": ("endpoints", endpoints),
    "endpointslice": ("endpointslices", endpointslice),
    "ingress": ("ingresses", ingress),
}
