"""The label rules of docs/labels.md, section by section, once more and plainly: from API objects as JSON gives them to target labels."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

Object = Mapping[str, Any]
Labels = dict[str, str]
Objects = Mapping[str, Sequence[Object]]  # plural resource name → the items of its list

META = "__meta_kubernetes_"
NODE_ADDRESS_TYPES = ("InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS", "LegacyHostIP", "Hostname")


def targets(role: str, objects: Objects, *, attach_node: bool = False, attach_namespace: bool = False) -> list[Labels]:
    """The labels of all targets of a role, in no promised order; plurals that are not given have no objects."""
    cluster = Cluster(objects, attach_node, attach_namespace)
    plural, make = ROLES[role]
    return [labels for item in cluster.all[plural].values() for labels in make(cluster, item)]


class Cluster:
    """All objects by resource and key, and which metadata is attached."""

    def __init__(self, objects: Objects, attach_node: bool, attach_namespace: bool) -> None:
        plurals = {plural for plural, _ in ROLES.values()} | {"namespaces"}
        self.all = {plural: {key(item): item for item in objects.get(plural, ())} for plural in plurals}
        self.attach_node = attach_node
        self.attach_namespace = attach_namespace

    def node_metadata(self, name: str) -> Labels:
        if not self.attach_node:
            return {}
        return {META + "node_name": name} | families("node", self.all["nodes"].get(("", name)))

    def namespace_metadata(self, name: str) -> Labels:
        return families("namespace", self.all["namespaces"].get(("", name))) if self.attach_namespace else {}


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


def node(_: Cluster, item: Object) -> Iterator[Labels]:
    first: dict[str, str] = {}  # the first address of each type
    for entry in many(item, "status", "addresses"):
        first.setdefault(text(entry, "type"), text(entry, "address"))
    address = next((first[kind] for kind in NODE_ADDRESS_TYPES if first.get(kind)), "")
    name = text(item, "metadata", "name")
    if address:
        yield (
            {"__address__": join(address, number(item, "status", "daemonEndpoints", "kubeletEndpoint", "Port")), "instance": name}
            | meta("node_", name=name, provider_id=text(item, "spec", "providerID"))
            | {f"{META}node_address_{clean(kind)}": address for kind, address in first.items()}
            | families("node", item)
        )


# 3. pod


def pod(cluster: Cluster, item: Object) -> Iterator[Labels]:
    ip = text(item, "status", "podIP")
    if not ip or text(item, "status", "phase") in {"Succeeded", "Failed"}:
        return
    common = pod_labels(cluster, item)
    for container, init in containers(item):
        statuses = many(item, "status", "initContainerStatuses" if init else "containerStatuses")
        status = next((entry for entry in statuses if text(entry, "name") == text(container, "name")), None)
        if part(status, "state", "terminated") is not None:
            continue
        rest = common | some("pod_container_", id=text(status, "containerID"))
        ports: list[Object | None] = [*many(container, "ports")]
        for port in ports or [None]:
            address = host(ip) if port is None else join(ip, number(port, "containerPort"))
            yield {"__address__": address} | rest | container_labels(container, init, port)


def pod_labels(cluster: Cluster, item: Object) -> Labels:
    """What every target of a pod has, in the roles that join pods too."""
    conditions = many(item, "status", "conditions")
    ready = next((text(entry, "status").lower() for entry in conditions if text(entry, "type") == "Ready"), "unknown")
    owner = next((entry for entry in many(item, "metadata", "ownerReferences") if part(entry, "controller")), None)
    namespace, name = key(item)
    return (
        cluster.node_metadata(text(item, "spec", "nodeName"))
        | cluster.namespace_metadata(namespace)
        | meta(namespace=namespace, pod_name=name, pod_ip=text(item, "status", "podIP"), pod_ready=ready)
        | meta("pod_", phase=text(item, "status", "phase"), node_name=text(item, "spec", "nodeName"))
        | meta("pod_", host_ip=text(item, "status", "hostIP"), uid=text(item, "metadata", "uid"))
        | some("pod_controller_", kind=text(owner, "kind"), name=text(owner, "name"))
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


def service_labels(cluster: Cluster, item: Object | None) -> Labels:
    """What every target of a service has, in the roles that join services too; nothing for an unknown service."""
    if item is None:
        return {}
    namespace, name = key(item)
    kind = text(item, "spec", "type")
    external = meta("service_", external_name=text(item, "spec", "externalName"))
    internal = meta("service_", cluster_ip=text(item, "spec", "clusterIP"))
    return (
        meta(namespace=namespace, service_name=name, service_type=kind)
        | (external if kind == "ExternalName" else internal)
        | cluster.namespace_metadata(namespace)
        | families("service", item)
    )


# 5. endpoints and endpointslice: one walk, two ways of naming what it finds


def endpoints(cluster: Cluster, item: Object) -> Iterator[Labels]:
    own = meta(endpoints_name=text(item, "metadata", "name")) | families("endpoints", item)
    entries = (
        (address, text(address, "ip"), port, endpoint(address, port, ready))
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
    entries = (
        (entry, address, port, slice_entry(entry, port))
        for entry in many(item, "endpoints")
        for port in many(item, "ports")
        for address in texts(entry, "addresses")
    )
    return joined(cluster, item, "endpointslice", own, found, entries, sidecars_only=False)


def slice_entry(entry: Object, port: Object) -> Labels:
    conditions = {name: true_or_false(part(entry, "conditions", name)) for name in ("ready", "serving", "terminating")}
    topology = sorted((part(entry, "topology") or {}).items())
    return (
        meta("endpointslice_endpoint_conditions_", **conditions)
        | meta("endpointslice_", port=str(number(port, "port")), port_name=text(port, "name"), port_protocol=text(port, "protocol"))
        | some("endpointslice_", port_app_protocol=text(port, "appProtocol"))
        | some("endpointslice_endpoint_", hostname=text(entry, "hostname"), node_name=text(entry, "nodeName"))
        | meta("endpointslice_endpoint_topology_", **{clean(name): value or "" for name, value in topology})
        | meta("endpointslice_endpoint_topology_present_", **{clean(name): "true" for name, _ in topology})
    )


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
    covered: dict[tuple[str, str], set[int]] = {}  # the pods that entries name → the ports under which they do
    for entry, address, port, labels in entries:
        kind, name = text(entry, "targetRef", "kind"), text(entry, "targetRef", "name")
        where = (text(entry, "targetRef", "namespace"), name)
        target = {"__address__": join(address, number(port, "port")), META + "namespace": key(item)[0]} | own | labels
        if kind:
            target |= {f"{META}{prefix}_address_target_kind": kind, f"{META}{prefix}_address_target_name": name}
        target |= service_labels(cluster, of_service)
        if kind == "Pod" and where in cluster.all["pods"]:
            covered.setdefault(where, set()).add(number(port, "port"))
            target |= pod_labels(cluster, cluster.all["pods"][where])
            target |= matching_container(cluster.all["pods"][where], number(port, "port"), sidecars_only)
        yield target
    for where, ports in covered.items():
        found = cluster.all["pods"][where]
        for container, init in served(found):
            for port in many(container, "ports"):
                if number(port, "containerPort") not in ports:
                    yield (
                        {"__address__": join(text(found, "status", "podIP"), number(port, "containerPort"))}
                        | pod_labels(cluster, found)
                        | container_labels(container, init, port)
                        | own
                        | {f"{META}{prefix}_address_target_kind": "Pod", f"{META}{prefix}_address_target_name": where[1]}
                        | service_labels(cluster, of_service)
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
        scheme = "https" if any(matches(pattern, name) for pattern in secure) else "http"
        for path in many(rule, "http", "paths") or [{}]:
            yield {"__address__": name} | common | meta("ingress_", scheme=scheme, host=name, path=text(path, "path") or "/")


def matches(pattern: str, name: str) -> bool:
    """Equal, or `*.` in place of exactly the first label."""
    _, dot, rest = name.partition(".")
    return pattern == name or (dot == "." and pattern == "*." + rest)


ROLES = {
    "node": ("nodes", node),
    "pod": ("pods", pod),
    "service": ("services", service),
    "endpoints": ("endpoints", endpoints),
    "endpointslice": ("endpointslices", endpointslice),
    "ingress": ("ingresses", ingress),
}
