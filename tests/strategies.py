"""Small generated clusters at the edges of the label rules: what refers to what, and what is missing, null, empty or there twice."""

from typing import Any

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

Object = dict[str, Any]
Objects = dict[str, list[Object]]
Fields = dict[str, SearchStrategy[Any]]

API_VERSIONS = {
    "endpointslices": "discovery.k8s.io/v1", "ingresses": "networking.k8s.io/v1", "replicasets": "apps/v1", "jobs": "batch/v1",
}  # fmt: skip
KINDS = {
    "nodes": "Node",
    "namespaces": "Namespace",
    "pods": "Pod",
    "services": "Service",
    "endpoints": "Endpoints",
    "endpointslices": "EndpointSlice",
    "ingresses": "Ingress",
    "replicasets": "ReplicaSet",
    "jobs": "Job",
}

# Few names and numbers, so that references often meet what they name, and now and then do not.
NAMESPACES = st.sampled_from(["web", "web", "web", "db"])
NAMES = st.sampled_from(["a", "a", "b", "c.d"])
NODES = st.sampled_from(["n1", "n1", "n2", "gone"])
PORTS = st.sampled_from([80, 80, 443, 8080, 0, 65535])
PROTOCOLS = st.sampled_from(["TCP", "UDP", "SCTP", ""])
ADDRESSES = st.sampled_from(["127.0.0.1", "127.1.2.3", "192.0.2.7", "2001:db8::1", "::1", "host.example.com", ""])

# Keys that become the same when cleaned, with characters of one to four bytes, and some that need escapes.
ALIKE = ["a.b", "a-b", "a_b", "a/b", "a b", "aéb", "a日b", "a😀b"]
KEYS = st.sampled_from([*ALIKE, "A.b", "a..b", "0", "", "日本", '"\\', "\x7f\n", "present_x", "kubernetes.io/service-name"])
TEXTS = st.one_of(st.sampled_from(["", "x", "True", "a-value", "日本", "😀", '"quoted" \\ \n\t\x00', "\u2028"]), st.text(max_size=8))
PAIRS = st.dictionaries(KEYS, st.one_of(TEXTS, TEXTS, TEXTS, st.none()), max_size=4)
# For fields that no dialect reads.
UNREAD: SearchStrategy[Any] = st.sampled_from(
    [None, True, -2.5e-3, 2**63, 'x"]},{"name":"no"', "\\", [], {}, [[{"name": "no"}, "]"], {}], {"metadata": {"name": "no"}, "": None}]
)


@st.composite
def record(draw: DrawFn, fields: Fields) -> Object:
    """A JSON object, its fields starting anywhere; now and then one of them is absent or null, or there is one that nobody reads."""
    names = list(fields)
    oddity = draw(st.integers(0, 12 * len(names) - 1))
    kind, at = divmod(oddity, len(names))
    made = {name: draw(values) for name, values in fields.items() if (kind, name) != (1, names[at])}
    if kind == 2:
        made[names[at]] = None
    if kind == 3:
        made["unread"] = draw(UNREAD)
    return dict([*made.items()][at:] + [*made.items()][:at])


def some(values: SearchStrategy[Any], most: int = 3) -> SearchStrategy[list[Any]]:
    """A list, now and then with nulls among its elements."""
    full = st.lists(values, min_size=1, max_size=most)
    return st.one_of(full, full, full, full, st.lists(st.one_of(values, st.none()), max_size=most))


@st.composite
def item(
    draw: DrawFn, name: SearchStrategy[str], namespace: SearchStrategy[str] | None, fields: Fields, meta: Fields | None = None
) -> Object:
    """An API object with metadata, which always has a name, and the other fields as `record` has them."""
    metadata = draw(record({"labels": PAIRS, "annotations": PAIRS, "managedFields": UNREAD, "uid": TEXTS, **(meta or {})}))
    if namespace is not None:
        metadata["namespace"] = draw(namespace)
    metadata["name"] = draw(name)
    made = {"metadata": metadata} | draw(record(fields))
    return dict(reversed(made.items())) if draw(st.booleans()) else made


def port(field: str) -> SearchStrategy[Object]:
    names, app_protocols = st.sampled_from(["http", "", "m"]), st.sampled_from(["", "h2c"])
    return record({"name": names, field: PORTS, "protocol": PROTOCOLS, "appProtocol": app_protocols})


def containers(*, init: bool) -> SearchStrategy[list[Object]]:
    policy = {"restartPolicy": st.sampled_from(["Always", "Always", "Never", ""])} if init else {}
    return some(record({"name": NAMES, "image": TEXTS, "ports": some(port("containerPort")), "env": UNREAD, **policy}), 2)


def statuses() -> SearchStrategy[list[Object]]:
    running = st.just({"running": {"startedAt": "x"}})
    state = st.one_of(running, running, st.sampled_from([{"terminated": {}}, {"terminated": {"exitCode": 1}}, {"terminated": None}, {}]))
    return some(record({"name": NAMES, "containerID": TEXTS, "state": state, "lastState": st.just({"terminated": {"exitCode": 1}})}))


KUBELET = record({"kubeletEndpoint": record({"Port": PORTS, "port": UNREAD})})
NODE_ADDRESS_TYPES = st.sampled_from(
    ["InternalIP", "InternalDNS", "ExternalIP", "ExternalDNS", "LegacyHostIP", "Hostname", "Other", "x.y", "x-y", "internalIP"]
)
NODE_STATUS: Fields = {
    "addresses": some(record({"type": NODE_ADDRESS_TYPES, "address": ADDRESSES}), 5),
    "daemonEndpoints": KUBELET,
    "conditions": some(record({"type": st.sampled_from(["Ready", "ready", "My.Own", "my-own", ""]), "status": TEXTS}), 4),
}

POD_SPEC: Fields = {
    "nodeName": st.one_of(NODES, NODES, st.just("")),
    "containers": containers(init=False),
    "initContainers": containers(init=True),
    "ephemeralContainers": UNREAD,
}
POD_CONDITIONS: Fields = {
    "type": st.sampled_from(["Ready", "Ready", "Initialized"]),
    "status": st.sampled_from(["True", "False", "Unknown", ""]),
}
POD_STATUS: Fields = {
    "phase": st.sampled_from(["Running", "Running", "Running", "Pending", "Succeeded", "Failed", "Unknown", ""]),
    "podIP": ADDRESSES,
    "podIPs": UNREAD,
    "hostIP": ADDRESSES,
    "conditions": some(record(POD_CONDITIONS)),
    "containerStatuses": statuses(),
    "initContainerStatuses": statuses(),
}
# Owners of pods, and their owners.
OWNED = st.sampled_from(["a", "a", "b", ""])
OWNER_KINDS = st.sampled_from(["ReplicaSet", "ReplicaSet", "Job", "Job", "x", ""])
OWNERS = some(record({"kind": OWNER_KINDS, "name": OWNED, "controller": st.booleans(), "uid": UNREAD}))
SECOND_OWNER_KINDS = st.sampled_from(["Deployment", "CronJob", "Rollout", ""])
SECOND_OWNERS = some(record({"kind": SECOND_OWNER_KINDS, "name": NAMES, "controller": st.sampled_from([True, True, False])}), 2)

SERVICE_SPEC: Fields = {
    "type": st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "ExternalName", ""]),
    "clusterIP": st.sampled_from(["None", "", "192.0.2.99"]),
    "externalName": st.sampled_from(["", "example.com"]),
    "ports": some(port("port")),
    "selector": UNREAD,
    "loadBalancerIP": st.sampled_from(["", "192.0.2.50"]),
    "ipFamilyPolicy": st.sampled_from(["SingleStack", "PreferDualStack", "RequireDualStack", ""]),
    "ipFamilies": some(st.sampled_from(["IPv4", "IPv6", ""]), 2),
}

SERVICE_STATUS = record({"loadBalancer": record({"ingress": some(record({"ip": ADDRESSES, "hostname": UNREAD}))})})

TARGET_REFS = record({"kind": st.sampled_from(["Pod"] * 6 + ["Node", ""]), "name": NAMES, "namespace": NAMESPACES, "uid": UNREAD})
ENDPOINT_ADDRESSES = some(record({"ip": ADDRESSES, "hostname": NAMES, "nodeName": NODES, "targetRef": TARGET_REFS}))
SUBSETS = some(record({"addresses": ENDPOINT_ADDRESSES, "notReadyAddresses": ENDPOINT_ADDRESSES, "ports": some(port("port"))}), 2)

SLICE_ENDPOINTS: Fields = {
    "addresses": some(ADDRESSES),
    "conditions": record({"ready": st.booleans(), "serving": st.booleans(), "terminating": st.booleans()}),
    "hostname": NAMES,
    "nodeName": NODES,
    "zone": TEXTS,
    "targetRef": TARGET_REFS,
    "topology": PAIRS,  # of v1beta1
    "deprecatedTopology": PAIRS,
}
SLICE: Fields = {
    "addressType": st.sampled_from(["IPv4", "IPv6", "FQDN", ""]),
    "ports": some(port("port")),
    "endpoints": some(record(SLICE_ENDPOINTS)),
}
SLICE_LABELS = st.builds(lambda pairs, name: {**pairs, "kubernetes.io/service-name": name}, PAIRS, NAMES)

HOSTS = st.sampled_from(
    ["a.example.com", "b.a.example.com", "example.com", "*.example.com", "*.a.example.com", "*", "", ".example.com", "A.example.com"]
)
PATHS = some(record({"path": st.sampled_from(["", "/", "/x y"]), "pathType": UNREAD}), 2)
INGRESS_SPEC: Fields = {
    "ingressClassName": st.sampled_from(["", "nginx"]),
    "rules": some(record({"host": HOSTS, "http": record({"paths": st.one_of(PATHS, PATHS, st.just([]))})})),
    "tls": some(record({"hosts": some(HOSTS), "secretName": UNREAD}), 2),
    "defaultBackend": UNREAD,
}

OBJECTS: dict[str, SearchStrategy[Object]] = {
    "nodes": item(NODES, None, {"spec": record({"providerID": TEXTS}), "status": record(NODE_STATUS)}),
    "namespaces": item(NAMESPACES, None, {"spec": UNREAD, "status": UNREAD}),
    "pods": item(NAMES, NAMESPACES, {"spec": record(POD_SPEC), "status": record(POD_STATUS)}, {"ownerReferences": OWNERS}),
    "services": item(NAMES, NAMESPACES, {"spec": record(SERVICE_SPEC), "status": SERVICE_STATUS}),
    "endpoints": item(NAMES, NAMESPACES, {"subsets": SUBSETS}),
    "endpointslices": item(st.sampled_from(["a-1", "a-2", "b-1"]), NAMESPACES, SLICE, {"labels": SLICE_LABELS}),
    "ingresses": item(NAMES, NAMESPACES, {"spec": record(INGRESS_SPEC), "status": UNREAD}),
    "replicasets": item(st.sampled_from(["a", "b"]), NAMESPACES, {"spec": UNREAD}, {"ownerReferences": SECOND_OWNERS}),
    "jobs": item(st.sampled_from(["a", "b"]), NAMESPACES, {"spec": UNREAD}, {"ownerReferences": SECOND_OWNERS}),
}


def object_key(made: Object) -> tuple[str, str]:
    return made["metadata"].get("namespace", ""), made["metadata"]["name"]


def clusters(most: int = 3) -> SearchStrategy[Objects]:
    """Some objects of each kind by plural name, no two of a kind with one key."""
    return st.fixed_dictionaries({plural: st.lists(made, max_size=most, unique_by=object_key) for plural, made in OBJECTS.items()})


def list_bytes(plural: str, items: list[Object], resource_version: str = "1000") -> bytes:
    """The body of an API list; its items have neither kind nor version, as the server sends them."""
    head = {"kind": f"{KINDS[plural]}List", "apiVersion": API_VERSIONS.get(plural, "v1"), "metadata": {"resourceVersion": resource_version}}
    return orjson.dumps(head | {"items": items})


def event_line(plural: str, change: str, made: Object, resource_version: str = "1001") -> bytes:
    """A line of a watch; its object names its kind, and the version at which it became so."""
    metadata = made["metadata"] | {"resourceVersion": resource_version}
    whole = {"kind": KINDS[plural], "apiVersion": API_VERSIONS.get(plural, "v1"), **made, "metadata": metadata}
    return orjson.dumps({"type": change, "object": whole}) + b"\n"
