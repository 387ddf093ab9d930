"""Scrape jobs of the kinds that charts and operators make, written anew for the objects of `objects.py`."""

from collections.abc import Sequence
from typing import Any

from tests.peers.scraper import RULES, Rule

META = "__meta_kubernetes_"
Job = dict[str, Any]

# What rules have made of where and how to scrape is kept for comparison, and then no target is connected to.
LAST: list[Rule] = [
    {"source_labels": ["__address__"], "target_label": "m_address"},
    {"source_labels": ["__scheme__"], "target_label": "m_scheme"},
    {"source_labels": ["__metrics_path__"], "target_label": "m_path"},
    {"action": "labelmap", "regex": "__(param_.+|scrape_.+|always_.+|convert_.+)", "replacement": "m_$1"},
    {"action": "labeldrop", "regex": "__param_.+"},
    RULES[-1],
]


def job(role: str, *rules: Rule, attach: Sequence[str] = (), **more: Any) -> Job:
    attached = {"attach_metadata": dict.fromkeys(attach, True)} if attach else {}
    return {"sd": {"role": role, **attached, **more}, "rules": [*rules, *LAST]}


def from_meta(name: str, target: str, **more: Any) -> Rule:
    return {"source_labels": [META + name], "target_label": target, **more}


def keep(name: str, regex: str, action: str = "keep") -> Rule:
    return {"source_labels": [META + name], "action": action, "regex": regex}


def labelmap(name: str, replacement: str = "$1") -> Rule:
    return {"action": "labelmap", "regex": f"{META}{name}_(.+)", "replacement": replacement}


def annotated(kind: str) -> list[Rule]:
    """The rules of prometheus.io annotations."""
    note = f"{kind}_annotation_prometheus_io_"
    return [
        keep(note + "scrape", "true"),
        from_meta(note + "scheme", "__scheme__", action="replace", regex="(https?)"),
        from_meta(note + "path", "__metrics_path__", action="replace", regex="(.+)"),
        {
            "source_labels": ["__address__", META + note + "port"],
            "action": "replace",
            "regex": r"(.+?)(?::\d+)?;(\d+)",
            "replacement": "$1:$2",
            "target_label": "__address__",
        },
        {"action": "labelmap", "regex": f"{META}{note}param_(.+)", "replacement": "__param_$1"},
    ]


def placed(kind: str) -> list[Rule]:
    return [
        labelmap(f"{kind}_label"),
        from_meta("namespace", "namespace"),
        from_meta(f"{kind}_name", kind),
    ]


# As an operator makes them of a monitor of services.
MONITOR: list[Rule] = [
    {"source_labels": ["job"], "target_label": "__tmp_prometheus_job_name"},
    {
        "action": "keep",
        "source_labels": [f"{META}service_label_app", f"{META}service_labelpresent_app"],
        "regex": "(web|db);true",
    },
    keep("endpoint_port_name", "p.+"),
    {
        "source_labels": [f"{META}endpoint_address_target_kind", f"{META}endpoint_address_target_name"],
        "separator": ";", "regex": "Node;(.*)", "replacement": "${1}", "target_label": "node",
    },
    {
        "source_labels": [f"{META}endpoint_address_target_kind", f"{META}endpoint_address_target_name"],
        "separator": ";", "regex": "Pod;(.*)", "replacement": "${1}", "target_label": "pod",
    },
    from_meta("namespace", "namespace"),
    from_meta("service_name", "service"),
    from_meta("pod_name", "pod"),
    from_meta("pod_container_name", "container"),
    keep("pod_phase", "(Failed|Succeeded)", "drop"),
    from_meta("service_name", "job", replacement="${1}"),
    from_meta("service_label_k8s_app", "job", regex="(.+)", replacement="${1}"),
    {"target_label": "endpoint", "replacement": "metrics"},
    {"source_labels": ["__address__", "__tmp_hash"], "target_label": "__tmp_hash", "regex": "(.+);", "replacement": "$1"},
    {"source_labels": ["__tmp_hash"], "target_label": "__tmp_hash", "modulus": 3, "action": "hashmod"},
    {"source_labels": ["__tmp_hash", "__tmp_disable_sharding"], "regex": "$(SHARD);|.+;.+|[01];", "action": "keep"},
]  # fmt: skip
SLICES: list[Rule] = [
    {**rule, "source_labels": [name.replace("_endpoint_port", "_endpointslice_port").replace("_endpoint_address", "_endpointslice_address")
                               for name in rule["source_labels"]]}
    if "source_labels" in rule else rule
    for rule in MONITOR
]  # fmt: skip

JOBS: dict[str, Job] = {
    # by annotations, as charts have them
    "annotated pods": job("pod", *annotated("pod"), *placed("pod"), keep("pod_phase", "Pending|Succeeded|Failed|Completed", "drop")),
    "annotated pods, slow": job("pod", keep("pod_annotation_prometheus_io_scrape_slow", "true"), *annotated("pod")[1:], *placed("pod")),
    "annotated services": job("endpoints", *annotated("service"), *placed("service"), from_meta("pod_node_name", "node")),
    "annotated services, by slices": job("endpointslice", *annotated("service"), *placed("service")),
    "annotated, not slow": job(
        "endpoints",
        keep("service_annotation_prometheus_io_scrape_slow", "true", "drop"),
        *annotated("service"),
        *placed("service"),
    ),
    "probed services": job(
        "service",
        keep("service_annotation_prometheus_io_probe", "true"),
        {"source_labels": ["__address__"], "target_label": "__param_target"},
        {"target_label": "__address__", "replacement": "blackbox"},
        {"source_labels": ["__param_target"], "target_label": "instance"},
        *placed("service"),
    ),
    "probed ingresses": job(
        "ingress",
        keep("ingress_annotation_prometheus_io_probe", "true"),
        {
            "source_labels": [f"{META}ingress_scheme", "__address__", f"{META}ingress_path"],
            "regex": "(.+);(.+);(.+)", "replacement": "${1}://${2}${3}", "target_label": "__param_target",
        },
        {"target_label": "__address__", "replacement": "blackbox:9115"},
        {"source_labels": ["__param_target"], "target_label": "instance"},
        labelmap("ingress_label"),
        from_meta("namespace", "namespace"),
        from_meta("ingress_name", "ingress"),
        from_meta("ingress_class_name", "class", regex="(.+)"),
    ),
    "intervals by annotation": job(
        "pod", from_meta("pod_annotation_prometheus_io_interval", "__scrape_interval__", regex="(.+)"), *placed("pod")
    ),
    # the cluster itself, as charts have it
    "api servers": job(
        "endpoints",
        {
            "source_labels": [f"{META}namespace", f"{META}service_name", f"{META}endpoint_port_name"],
            "action": "keep", "regex": "ns-[0-3];svc-[0-9]+;(p443|p80)?",
        },
    ),
    "nodes by the API": job(
        "node",
        labelmap("node_label"),
        {"target_label": "__address__", "replacement": "kubernetes.default.svc:443"},
        from_meta("node_name", "__metrics_path__", regex="(.+)", replacement="/api/v1/nodes/$1/proxy/metrics"),
    ),
    "cadvisor": job(
        "node",
        labelmap("node_label"),
        {"target_label": "__address__", "replacement": "kubernetes.default.svc:443"},
        from_meta("node_name", "__metrics_path__", regex="(.+)", replacement="/api/v1/nodes/$1/proxy/metrics/cadvisor"),
        {"target_label": "__scheme__", "replacement": "https"},
    ),
    "ready nodes": job("node", keep("node_condition_ready", "true"), from_meta("node_address_InternalIP", "ip")),
    "node exporters on nodes": job(
        "node",
        {"source_labels": ["__address__"], "regex": r"(.*):10250", "replacement": "${1}:9100", "target_label": "__address__"},
        from_meta("node_name", "node"),
        from_meta("node_provider_id", "provider", regex="synthetic://(.*)"),
    ),
    "pods of ready ports": job("pod", keep("pod_ready", "true"), keep("pod_container_port_name", "p9.*"), *placed("pod")),
    "no init containers": job(
        "pod", keep("pod_container_init", "true", "drop"), *placed("pod"), from_meta("pod_container_name", "container")
    ),
    "ports given by number": job("pod", keep("pod_container_port_number", "9[0-9]{3}"), *placed("pod")),
    "without ports of their own": job(
        "pod",
        keep("pod_container_port_number", ""),
        {"source_labels": [f"{META}pod_ip"], "target_label": "__address__", "replacement": "$1:15020"},
        *placed("pod"),
    ),
    "pods of one node": job("pod", *placed("pod"), selectors=[{"role": "pod", "field": "spec.nodeName=node-7"}], attach=["node"]),
    "pods and their zone": job(
        "pod", *placed("pod"), from_meta("node_label_app", "node_app"), labelmap("node_annotation", "node_$1"), attach=["node"]
    ),
    "pods and their team": job("pod", *placed("pod"), from_meta("namespace_label_app", "team"), attach=["namespace"]),
    "pods by workload": job(
        "pod",
        {
            "source_labels": [f"{META}pod_controller_kind", f"{META}pod_controller_name"],
            "regex": "ReplicaSet;(.+)", "target_label": "replicaset",
        },
        from_meta("pod_deployment_name", "workload", regex="(.+)"),
        from_meta("pod_job_name", "batch_job", regex="(.+)"),
        from_meta("pod_cronjob_name", "workload", regex="(.+)"),
        *placed("pod"),
        attach=["deployment", "job", "cronjob"],
    ),
    # monitors, as operators have them
    "monitor of services": job("endpoints", *MONITOR),
    "monitor of slices": job("endpointslice", *SLICES),
    "monitor of slices of some namespaces": job("endpointslice", *SLICES, namespaces={"names": [f"ns-{number}" for number in range(7)]}),
    "monitor of pods": job(
        "pod",
        {"source_labels": ["job"], "target_label": "__tmp_prometheus_job_name"},
        keep("pod_phase", "(Failed|Succeeded)", "drop"),
        keep("pod_label_app", "web|node-exporter"),
        keep("pod_container_port_name", "p(80|443|9090)"),
        from_meta("namespace", "namespace"),
        from_meta("pod_container_name", "container"),
        from_meta("pod_name", "pod"),
        {"target_label": "job", "replacement": "monitoring/web"},
        {"target_label": "endpoint", "replacement": "http"},
    ),
    "ready endpoints": job("endpoints", keep("endpoint_ready", "true"), keep("service_name", ".+"), *placed("service")),
    "serving slices": job(
        "endpointslice",
        keep("endpointslice_endpoint_conditions_serving", "true"),
        keep("endpointslice_endpoint_conditions_terminating", "true", "drop"),
        from_meta("endpointslice_endpoint_zone", "zone"),
        from_meta("endpointslice_endpoint_topology_kubernetes_io_hostname", "host"),
        *placed("service"),
    ),
    "kubelets": job(
        "endpoints",
        keep("endpoint_address_target_kind", "Node"),
        from_meta("endpoint_address_target_name", "node"),
        from_meta("node_label_k8s_app", "app"),
        {"source_labels": ["__metrics_path__"], "target_label": "metrics_path"},
        attach=["node"],
    ),
    "state metrics, labels kept": job(
        "endpointslice",
        keep("service_label_app_kubernetes_io_name", "kube-state-metrics"),
        {"target_label": "honoured", "replacement": "yes"},
    ),
    "coredns": job("pod", keep("pod_label_app_kubernetes_io_name", "coredns"), *placed("pod")),
    "load balancers": job(
        "service", keep("service_type", "LoadBalancer"), from_meta("service_loadbalancer_ip", "balancer"), *placed("service")
    ),
    # what people write themselves
    "jobs named by labels": job(
        "pod",
        {
            "source_labels": [f"{META}namespace", f"{META}pod_label_app", f"{META}pod_label_app_kubernetes_io_component"],
            "separator": "/", "target_label": "job",
        },
        labelmap("pod_label", "label_$1"),
    ),
    "labels that may take the job away": job("pod", labelmap("pod_label")),
    "letters": job(
        "service",
        {"source_labels": [f"{META}service_name"], "target_label": "upper", "action": "uppercase"},
        {"source_labels": [f"{META}service_type"], "target_label": "lower", "action": "lowercase"},
        {"source_labels": [f"{META}namespace"], "target_label": "$1", "regex": "(ns)-.*", "replacement": "of-$0"},
    ),
    "one of four": job(
        "pod",
        {"source_labels": [f"{META}pod_uid"], "modulus": 4, "target_label": "__tmp_shard", "action": "hashmod"},
        {"source_labels": ["__tmp_shard"], "regex": "2", "action": "keep"},
        *placed("pod"),
    ),
    "equal labels": job(
        "endpoints",
        {"source_labels": [f"{META}endpoint_port_name"], "target_label": f"{META}pod_container_port_name", "action": "keepequal"},
        {"source_labels": [f"{META}endpoint_node_name"], "target_label": f"{META}pod_node_name", "action": "dropequal"},
        *placed("service"),
    ),
    "few labels": job(
        "service",
        *placed("service"),
        {"action": "labelkeep", "regex": "__.*|job|namespace|service|app"},
        {"action": "labeldrop", "regex": "app"},
    ),
    "paths in the address": job(
        "ingress",
        {
            "source_labels": ["__address__", f"{META}ingress_path"], "regex": "(.+);(/x)?.*",
            "replacement": "$1$2", "target_label": "__address__",
        },
        {"source_labels": [f"{META}ingress_name"], "target_label": "ingress"},
    ),
    "an instance by hand": job(
        "pod",
        from_meta("pod_name", "instance"),
        {"source_labels": [f"{META}pod_container_name", f"{META}pod_container_port_number"], "separator": ":", "target_label": "container"},
    ),
}  # fmt: skip
