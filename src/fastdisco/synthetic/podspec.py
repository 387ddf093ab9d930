"""The shape of a pod: its spec, its status and its managed fields, as a template."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from fastdisco.synthetic.templates import Template, managed

CREATED = "2026-11-01T10:00:00Z"
_STARTED = "2026-11-01T10:00:05Z"


@dataclass(frozen=True, slots=True)
class Shape:
    """What the pods of an app in one phase have in common; `labels` may hold placeholders."""

    index: int
    namespace: str
    name: str
    owner: str
    hash: str
    owner_uid: str
    team: str
    port: int
    dual: bool
    host_network: bool
    init: str
    phase: str
    labels: Mapping[str, str]


def pod_template(shape: Shape) -> Template:
    """The template of the pods of an app in one phase; it is filled in by `pods.pod_entry`."""
    spec, status = _spec(shape), _status(shape)
    labels = dict(sorted(shape.labels.items()))
    annotations = {
        "checksum/config": shape.owner_uid.replace("-", "") * 2,
        "example.com/description": f"serves <{shape.name}> & friends, \"in\" {shape.namespace}: 100% é 🚀 \u2028 \\o/",
        "example.com/revision": "%(revision)b",
        "prometheus.io/port": str(shape.port + 1),
        "prometheus.io/scrape": "true",
    }
    owner_name = f"{shape.name}-{shape.hash}" if shape.owner == "ReplicaSet" else shape.name
    metadata: dict[str, Any] = {
        "name": "%(name)b",
        **({"generateName": f"{owner_name}-"} if shape.owner != "StatefulSet" else {}),
        "namespace": shape.namespace,
        "uid": "%(uid)b",
        "resourceVersion": "%(version)b",
        "generation": 1,
        "creationTimestamp": CREATED,
        "labels": labels,
        "annotations": annotations,
        "ownerReferences": [
            {
                "apiVersion": "batch/v1" if shape.owner == "Job" else "apps/v1",
                "kind": shape.owner,
                "name": owner_name,
                "uid": shape.owner_uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
    }
    controlled = {"metadata": {key: metadata[key] for key in ("annotations", "labels", "ownerReferences")}, "spec": _declared(spec)}
    metadata["managedFields"] = [
        managed("kube-controller-manager", CREATED, controlled),
        managed("kubelet", _STARTED, {"status": _reported(status)}, subresource="status"),
    ]
    return Template({"metadata": metadata, "spec": spec, "status": status})


def _declared(spec: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in spec.items() if key not in ("nodeName", "tolerations", "priority", "preemptionPolicy")}


def _reported(status: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in status.items() if key not in ("phase", "qosClass")}


def _container(name: str, image: str, ports: list[dict[str, Any]], **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "image": image,
        **({"ports": ports} if ports else {}),
        **({"env": more["env"]} if "env" in more else {}),
        "resources": more.get("resources", {}),
        **({"restartPolicy": more["restart"]} if "restart" in more else {}),
        **({"volumeMounts": more["mounts"]} if "mounts" in more else {}),
        **more.get("probes", {}),
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _image(shape: Shape, part: str) -> str:
    return f"registry.example.com/{shape.team}/{part}:1.{shape.index % 20}.{shape.index % 7}"


def _spec(shape: Shape) -> dict[str, Any]:
    main_ports = [
        {"name": "http", "containerPort": shape.port, "protocol": "TCP"},
        {"name": "metrics", "containerPort": shape.port + 1, "protocol": "TCP"},
    ]
    proxy_ports = [{"name": "http-envoy-prom", "containerPort": 15090, "protocol": "TCP"}]
    env: list[dict[str, Any]] = [
        {"name": "POD_IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}},
        {"name": "DATABASE_URL", "value": f"postgres://{shape.name}@db.{shape.namespace}.svc:5432/{shape.name}?sslmode=verify-full&pool=10"},
        {"name": "JAVA_TOOL_OPTIONS", "value": "-XX:MaxRAMPercentage=75 -Dlog.pattern=\"{time} [{level}] <{thread}>\" -Xlog:gc*"},
    ]
    probe = {"periodSeconds": 10, "failureThreshold": 3}
    probes = {
        "readinessProbe": {"httpGet": {"path": "/ready", "port": "http"}, **probe},
    }
    mounts = [
        {"name": "config", "mountPath": f"/etc/{shape.name}"},
        {"name": "kube-api-access", "readOnly": True, "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount"},
    ]
    resources = {"limits": {"memory": "512Mi"}, "requests": {"cpu": "50m", "memory": "128Mi"}}
    proxy_env = [{"name": "PROXY_CONFIG", "value": "{\"concurrency\":2,\"drainDuration\":\"45s\"}"}]
    inits = {
        "": [],
        "once": [_container("migrate", _image(shape, "migrate"), [], env=env[:2])],
        "sidecar": [
            _container(
                "log-shipper",
                _image(shape, "shipper"),
                [{"name": "shipper", "containerPort": 2020, "protocol": "TCP"}],
                restart="Always",
            )
        ],
    }[shape.init]
    toleration = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    return {
        "volumes": [
            {"name": "config", "configMap": {"name": f"{shape.name}-config", "defaultMode": 420}},
            {
                "name": "kube-api-access",
                "projected": {
                    "sources": [
                        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
                    ],
                    "defaultMode": 420,
                },
            },
        ],
        **({"initContainers": inits} if inits else {}),
        "containers": [
            _container("main", _image(shape, shape.name), main_ports, env=env, mounts=mounts, resources=resources, probes=probes),
            _container("proxy", "registry.example.com/mesh/proxy:1.22.3", proxy_ports, env=proxy_env),
        ],
        "restartPolicy": "OnFailure" if shape.owner == "Job" else "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": shape.name,
        **({"nodeName": "%(node)b"} if shape.phase != "Pending" else {}),
        **({"hostNetwork": True} if shape.host_network else {}),
        "securityContext": {"fsGroup": 2000},
        "schedulerName": "default-scheduler",
        "tolerations": [{"key": f"node.kubernetes.io/{key}", **toleration} for key in ("not-ready", "unreachable")],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }


def _status(shape: Shape) -> dict[str, Any]:
    def condition(kind: str, status: str) -> dict[str, Any]:
        return {"type": kind, "status": status, "lastProbeTime": None, "lastTransitionTime": _STARTED}

    if shape.phase == "Pending":
        return {"phase": "Pending", "conditions": [condition("PodScheduled", "False")], "qosClass": "Burstable"}
    done = shape.phase == "Succeeded"
    finished = {"terminated": {"exitCode": 0, "reason": "Completed", "startedAt": CREATED, "finishedAt": _STARTED}}
    running = {"running": {"startedAt": _STARTED}}

    def container(name: str, image: str, number: str, *, ended: bool, ready: str) -> dict[str, Any]:
        return {
            "name": name,
            "state": finished if ended else running,
            "lastState": {},
            "ready": ready,
            "restartCount": shape.index % 3,
            "image": image,
            "imageID": f"{image.rpartition(':')[0]}@sha256:{shape.owner_uid.replace('-', '') * 2}",
            "containerID": f"containerd://{number}",
            "started": not ended,
        }

    inits = []
    if shape.init == "once":
        inits = [container("migrate", _image(shape, "migrate"), "%(id)b%(id)b", ended=True, ready="%(=ready)b")]
    elif shape.init == "sidecar":
        inits = [container("log-shipper", _image(shape, "shipper"), "%(id2)b%(id2)b", ended=done, ready="%(=ready)b")]
    ips = [{"ip": "%(ip)b"}, *([{"ip": "%(ip6)b"}] if shape.dual else [])]
    return {
        "phase": shape.phase,
        "conditions": [
            condition("Initialized", "True"),
            condition("Ready", "%(condition)b"),
            condition("PodScheduled", "True"),
        ],
        "hostIP": "%(host)b",
        "podIP": "%(ip)b",
        "podIPs": ips,
        "startTime": CREATED,
        **({"initContainerStatuses": inits} if inits else {}),
        "containerStatuses": [
            container("main", _image(shape, shape.name), "%(id)b%(id2)b", ended=done, ready="%(=ready)b"),
            container("proxy", "registry.example.com/mesh/proxy:1.22.3", "%(id2)b%(id)b", ended=done, ready="%(=ready)b"),
        ],
        "qosClass": "Burstable",
    }
