"""The names of the labels that targets can have, by role and dialect; docs/labels.md says which of them a target has, and why."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

PREFIX = "__meta_kubernetes_"


@dataclass(frozen=True, slots=True)
class LabelNames:
    """Whole names, and beginnings of names whose rest is a key of an object."""

    names: frozenset[str]
    families: frozenset[str]

    def __or__(self, other: LabelNames) -> LabelNames:
        return LabelNames(self.names | other.names, self.families | other.families)

    def has(self, name: str) -> bool:
        """Whether a target could have this label."""
        return name in self.names or any(name.startswith(family) and name != family for family in self.families)


def label_names(role: str, dialect: str, attached: Collection[str]) -> LabelNames:
    """All `__meta_*` labels that this role can make; `attached` are the keys of `attach_metadata` that are true."""
    found = _ROLES[role] | (_PROMETHEUS if dialect == "prometheus" else _VICTORIAMETRICS)[role]
    if role in ("pod", "endpoints", "endpointslice"):
        for key in attached:
            found |= _ATTACHED_TO_PODS.get(key, _NONE)
    if role != "node" and "namespace" in attached:
        found |= _NAMESPACE
    return found


def _labels(names: str, *objects: str, families: str = "") -> LabelNames:
    """`objects`: kinds whose labels and annotations are labels of the target."""
    of_objects = (f"{kind}_{family}_" for kind in objects for family in ("label", "labelpresent", "annotation", "annotationpresent"))
    return LabelNames(
        frozenset(PREFIX + name for name in names.split()), frozenset(PREFIX + name for name in (*of_objects, *families.split()))
    )


_NONE = _labels("")
_CONTAINER = _labels(
    "pod_container_name pod_container_image pod_container_init pod_container_port_name pod_container_port_number "
    "pod_container_port_protocol"
)
_POD = _CONTAINER | _labels(
    "namespace pod_name pod_uid pod_ip pod_host_ip pod_phase pod_node_name pod_ready pod_controller_kind pod_controller_name", "pod"
)
_SERVICE = _labels("namespace service_name", "service")
_SERVICE_SPEC = _labels("service_type service_cluster_ip service_external_name")

_ROLES = {
    "node": _labels("node_name node_provider_id", "node", families="node_address_"),
    "pod": _POD | _labels("pod_container_id"),
    "service": _SERVICE | _SERVICE_SPEC | _labels("service_port_name service_port_number service_port_protocol"),
    "endpoints": _POD | _SERVICE | _labels(
        "endpoints_name endpoint_ready endpoint_port_name endpoint_port_protocol endpoint_node_name endpoint_hostname "
        "endpoint_address_target_kind endpoint_address_target_name", "endpoints",
    ),
    "endpointslice": _POD | _SERVICE | _labels(
        "endpointslice_name endpointslice_address_type endpointslice_endpoint_conditions_ready endpointslice_endpoint_conditions_serving "
        "endpointslice_endpoint_conditions_terminating endpointslice_port endpointslice_port_name endpointslice_port_protocol "
        "endpointslice_port_app_protocol endpointslice_address_target_kind endpointslice_address_target_name "
        "endpointslice_endpoint_hostname endpointslice_endpoint_node_name", "endpointslice",
        families="endpointslice_endpoint_topology_ endpointslice_endpoint_topology_present_",
    ),
    "ingress": _labels("namespace ingress_name ingress_scheme ingress_host ingress_path ingress_class_name", "ingress"),
}  # fmt: skip
"""What both dialects have."""
_VICTORIAMETRICS = dict.fromkeys(_ROLES, _NONE) | {"endpoints": _SERVICE_SPEC, "endpointslice": _SERVICE_SPEC}
_PROMETHEUS = dict.fromkeys(_ROLES, _NONE) | {
    "node": _labels("", families="node_condition_"),
    "service": _labels("service_loadbalancer_ip"),
    "endpointslice": _labels("endpointslice_endpoint_zone"),
}
_ATTACHED_TO_PODS = {
    "node": _labels("node_name", "node"),
    **{kind: _labels(f"pod_{kind}_name") for kind in ("deployment", "job", "cronjob")},
}
_NAMESPACE = _labels("", "namespace")
