"""Nodes, namespaces, services, endpoints, endpoint slices, ingresses and the owners of pods, rendered so that they fit to the pods."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from fastdisco.synthetic.objects import go_json
from fastdisco.synthetic.pods import App, Node, Pod
from fastdisco.synthetic.podspec import CREATED
from fastdisco.synthetic.store import Entry
from fastdisco.synthetic.templates import Template, address4, managed, uid_text

MOST_ADDRESSES = 1000  # of one Endpoints object
_ENDPOINT = (
    b'{"addresses":["%b"],"conditions":{"ready":%b,"serving":%b,"terminating":false},'
    b'"targetRef":{"kind":"Pod","namespace":"%b","name":"%b","uid":"%b"},"nodeName":"%b","zone":"%b"}'
)
_ADDRESS = b'{"ip":"%b","nodeName":"%b","targetRef":{"kind":"Pod","namespace":"%b","name":"%b","uid":"%b"}}'


def _metadata(
    name: str, namespace: str, uid: int, labels: Mapping[str, str], annotations: Mapping[str, str], **more: Any
) -> dict[str, Any]:
    return {
        "name": name,
        **({"namespace": namespace} if namespace else {}),
        "uid": uid_text(uid),
        "resourceVersion": "%(version)b",
        "creationTimestamp": CREATED,
        **({"labels": dict(labels)} if labels else {}),
        **({"annotations": dict(annotations)} if annotations else {}),
        **more,
    }


def _entry(namespace: str, name: str, value: dict[str, Any], version: int, **fields: str) -> Entry:
    body = Template(value).render({b"version": b"%d" % version})
    return Entry(namespace, name, body, version, value["metadata"].get("labels") or {}, **fields)


def make_node(index: int, uid: int) -> tuple[Node, Mapping[str, Any]]:
    """A node as pods see it, and the object, to be rendered by `node_entry`."""
    zone = f"eu-central-1{'abc'[index % 3]}"
    name = f"node-{index:04d}.example.internal"
    address = address4(200, index + 1)
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node-role.kubernetes.io/worker": "",
        "node.kubernetes.io/instance-type": ("m7i.4xlarge", "c7i.8xlarge", "r7i.4xlarge")[index % 3],
        "topology.kubernetes.io/region": "eu-central-1",
        "topology.kubernetes.io/zone": zone,
    }
    annotations = {"csi.volume.kubernetes.io/nodeid": f'{{"ebs.csi.example.com":"i-{index:017x}"}}', "example.com/revision": "0"}
    conditions = [
        {"type": kind, "status": status, "lastHeartbeatTime": CREATED, "lastTransitionTime": CREATED, "reason": f"Kubelet{kind}"}
        for kind, status in (("MemoryPressure", "False"), ("DiskPressure", "False"), ("PIDPressure", "False"), ("Ready", "True"))
    ]
    capacity = {"cpu": "16", "ephemeral-storage": "104845292Ki", "hugepages-2Mi": "0", "memory": "64768936Ki", "pods": "110"}
    addresses = [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]
    if index % 2 == 0:
        addresses.append({"type": "ExternalIP", "address": f"203.0.113.{index % 254 + 1}"})
    spec = {"podCIDR": f"{address4(1, index << 8)}/24", "podCIDRs": [f"{address4(1, index << 8)}/24"], "providerID": f"aws:///{zone}/i-{index:017x}"}
    status = {
        "capacity": capacity,
        "allocatable": capacity,
        "conditions": conditions,
        "addresses": addresses,
        "daemonEndpoints": {"kubeletEndpoint": {"Port": 10250}},
        "nodeInfo": {
            "machineID": f"{index:032x}",
            "systemUUID": uid_text(index),
            "bootID": uid_text(index + 1),
            "kernelVersion": "6.12.9",
            "osImage": "Debian GNU/Linux 13",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kubeletVersion": "v1.37.2",
            "kubeProxyVersion": "v1.37.2",
            "operatingSystem": "linux",
            "architecture": "amd64",
        },
        "images": [
            {"names": [f"registry.example.com/image-{number}@sha256:{number:064x}"], "sizeBytes": 52428800}
            for number in range(index % 5, index % 5 + 8)
        ],
    }
    fields = [managed("kubelet", CREATED, {"metadata": {"labels": labels}, "status": status})]
    value = {"metadata": _metadata(name, "", uid, labels, annotations, managedFields=fields), "spec": spec, "status": status}
    return Node(name, address, zone), value


def node_entry(value: Mapping[str, Any], version: int, revision: int = 0) -> Entry:
    """The node at a version; `revision` is an annotation."""
    metadata = {**value["metadata"], "annotations": {**value["metadata"]["annotations"], "example.com/revision": str(revision)}}
    return _entry("", metadata["name"], {**value, "metadata": metadata}, version)


def namespace_entry(name: str, index: int, uid: int, version: int, revision: int = 0) -> Entry:
    """A namespace with its labels and annotations."""
    labels = {"kubernetes.io/metadata.name": name, "pod-security.kubernetes.io/enforce": "baseline", "team": f"team-{index % 50}"}
    annotations = {"example.com/owner": f"team-{index % 50}@example.com <on call>", "example.com/revision": str(revision)}
    metadata = _metadata(name, "", uid, labels, annotations)
    metadata["managedFields"] = [managed("kubectl-create", CREATED, {"metadata": {"labels": labels, "annotations": annotations}})]
    value = {"metadata": metadata, "spec": {"finalizers": ["kubernetes"]}, "status": {"phase": "Active"}}
    return _entry("", name, value, version, phase="Active")


def service_name(app: App, index: int) -> str:
    """The app's name for its first service, a numbered one for the others."""
    return app.name if not app.services or app.services[0] == index else f"{app.name}-{index}"


def _service_labels(app: App) -> dict[str, str]:
    return {"app": app.name, "app.kubernetes.io/name": app.name, "team": app.team, "tier": ("front", "back")[app.index % 2]}


def service_entry(app: App, index: int, uid: int, version: int, revision: int = 0) -> Entry:
    """A service in front of an app: headless for a StatefulSet, now and then a load balancer."""
    name, labels = service_name(app, index), _service_labels(app)
    annotations = {"example.com/revision": str(revision), "prometheus.io/probe": "true"}
    address = "None" if app.owner == "StatefulSet" else address4(220, index + 1)
    if app.stack == "v6" and address != "None":
        address = f"2001:db8:ffff::{index + 1:x}"
    balanced = index % 50 == 7
    spec: dict[str, Any] = {
        "ports": [
            {"name": "http", "protocol": "TCP", "port": 80, "targetPort": "http"},
            {"name": "metrics", "protocol": "TCP", "port": 9090, "targetPort": app.port + 1},
        ],
        "selector": {"app": app.name},
        "clusterIP": address,
        "clusterIPs": [address],
        "type": "LoadBalancer" if balanced else "ClusterIP",
        "sessionAffinity": "None",
        "ipFamilies": ["IPv6" if app.stack == "v6" else "IPv4"],
        "ipFamilyPolicy": "SingleStack",
        "internalTrafficPolicy": "Cluster",
    }
    balancer = {"ingress": [{"ip": f"203.0.113.{index % 254 + 1}"}]} if balanced else {}
    metadata = _metadata(name, app.namespace, uid, labels, annotations)
    metadata["managedFields"] = [managed("helm", CREATED, {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec})]
    return _entry(app.namespace, name, {"metadata": metadata, "spec": spec, "status": {"loadBalancer": balancer}}, version)


def endpoints_entry(app: App, index: int, uid: int, version: int, revision: int = 0) -> Entry:
    """The Endpoints object of a service: ready and other addresses, at most 1,000 of them."""
    name, labels = service_name(app, index), _service_labels(app)
    ready: list[bytes] = []
    waiting: list[bytes] = []
    pods = [pod for group in app.groups for pod in group.values()]
    for pod in pods[:MOST_ADDRESSES]:
        node = pod.node.name.encode() if pod.node is not None else b""
        address = _ADDRESS % (pod.ip.encode(), node, app.namespace.encode(), pod.name.encode(), uid_text(pod.uid).encode())
        (ready if pod.ready else waiting).append(address)
    annotations = {"endpoints.kubernetes.io/last-change-trigger-time": CREATED, "example.com/revision": str(revision)}
    if len(pods) > MOST_ADDRESSES:
        annotations["endpoints.kubernetes.io/over-capacity"] = "truncated"
    metadata = _metadata(name, app.namespace, uid, labels, annotations)
    metadata["managedFields"] = [managed("kube-controller-manager", CREATED, {"metadata": {"labels": labels}, "subsets": []})]
    ports = [{"name": "http", "port": app.port, "protocol": "TCP"}, {"name": "metrics", "port": app.port + 1, "protocol": "TCP"}]
    subset = [
        *([b'"addresses":[%b]' % b",".join(ready)] if ready else []),
        *([b'"notReadyAddresses":[%b]' % b",".join(waiting)] if waiting else []),
        b'"ports":%b' % go_json(ports),
    ]
    head = Template({"metadata": metadata}).render({b"version": b"%d" % version})
    subsets = b',"subsets":[{%b}]}' % b",".join(subset) if pods else b"}"
    return Entry(app.namespace, name, head[:-1] + subsets, version, labels)


def slice_name(app: App, index: int, group: int) -> str:
    """The name of the slice with one group of an app's pods, for one service."""
    return f"{service_name(app, index)}-{app.hash[:4]}{group}"


def slice_entry(app: App, index: int, group: int, uid: int, version: int, revision: int = 0) -> Entry:
    """One EndpointSlice of a service: one group of the app's pods."""
    service, name = service_name(app, index), slice_name(app, index, group)
    labels = {
        **_service_labels(app),
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
        "kubernetes.io/service-name": service,
    }
    annotations = {"endpoints.kubernetes.io/last-change-trigger-time": CREATED, "example.com/revision": str(revision)}
    owner = {"apiVersion": "v1", "kind": "Service", "name": service, "uid": uid_text(uid), "controller": True, "blockOwnerDeletion": True}
    metadata = _metadata(name, app.namespace, uid + group + 1, labels, annotations, generateName=f"{service}-", ownerReferences=[owner])
    owned = {"metadata": {"labels": labels, "ownerReferences": [owner]}, "endpoints": [], "ports": [], "addressType": ""}
    metadata["managedFields"] = [managed("kube-controller-manager", CREATED, owned, api_version="discovery.k8s.io/v1")]
    value = {"metadata": metadata, "addressType": "IPv6" if app.stack == "v6" else "IPv4"}
    ports = [{"name": "http", "protocol": "TCP", "port": app.port}, {"name": "metrics", "protocol": "TCP", "port": app.port + 1}]
    head = Template(value).render({b"version": b"%d" % version})
    endpoints = b",".join(_endpoints(app, app.groups[group].values()))
    body = b'%b,"endpoints":[%b],"ports":%b}' % (head[:-1], endpoints, go_json(ports))
    return Entry(app.namespace, name, body, version, labels)


def _endpoints(app: App, pods: Iterable[Pod]) -> Iterable[bytes]:
    namespace = app.namespace.encode()
    for pod in pods:
        ready = b"true" if pod.ready else b"false"
        node, zone = (pod.node.name.encode(), pod.node.zone.encode()) if pod.node is not None else (b"", b"")
        yield _ENDPOINT % (pod.ip.encode(), ready, ready, namespace, pod.name.encode(), uid_text(pod.uid).encode(), node, zone)


def ingress_entry(app: App, service: str, index: int, uid: int, version: int, revision: int = 0) -> Entry:
    """An ingress to a service; every other one with TLS."""
    name = f"{service}-{index}"
    host = f"{name}.{app.namespace}.example.com"
    backend = {"service": {"name": service, "port": {"name": "http"}}}
    paths = [{"path": path, "pathType": "Prefix", "backend": backend} for path in ("/", "/api")[: index % 2 + 1]]
    labels = {"app": app.name, "app.kubernetes.io/name": app.name}
    annotations = {"example.com/revision": str(revision), "nginx.ingress.kubernetes.io/rewrite-target": "/$1"}
    spec: dict[str, Any] = {"ingressClassName": "nginx"}
    if index % 2:
        spec["tls"] = [{"hosts": [host], "secretName": f"{name}-tls"}]
    spec["rules"] = [{"host": host, "http": {"paths": paths}}]
    metadata = _metadata(name, app.namespace, uid, labels, annotations, generation=1)
    owned = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    metadata["managedFields"] = [managed("helm", CREATED, owned, api_version="networking.k8s.io/v1")]
    status = {"loadBalancer": {"ingress": [{"ip": f"198.51.100.{index % 254 + 1}"}]}}
    return _entry(app.namespace, name, {"metadata": metadata, "spec": spec, "status": status}, version)


def owner_entry(app: App, version: int) -> Entry:
    """What owns the app's pods, and is owned itself: a ReplicaSet by a Deployment, a Job by a CronJob."""
    job = app.owner == "Job"
    controller = {"kind": "CronJob" if job else "Deployment", "name": f"{app.name}-nightly" if job else app.name, "controller": True}
    name = app.name if job else f"{app.name}-{app.hash}"
    labels = {**_service_labels(app), "pod-template-hash": app.hash}
    metadata = {
        "name": name, "namespace": app.namespace, "uid": app.owner_uid, "resourceVersion": "%(version)b", "creationTimestamp": CREATED,
        "labels": labels, "ownerReferences": [{"apiVersion": "batch/v1" if job else "apps/v1", **controller, "uid": app.owner_uid}],
    }  # fmt: skip
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "app", "image": f"registry.example.com/{app.name}:1"}]}}
    metadata["managedFields"] = [managed("kube-controller-manager", CREATED, {"metadata": {"labels": labels}, "spec": template})]
    spec = {"selector": {"matchLabels": labels}, "template": template}
    return _entry(app.namespace, name, {"metadata": metadata, "spec": spec, "status": {}}, version)
