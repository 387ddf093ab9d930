"""Labels that rules read and that no target has."""

from __future__ import annotations

from typing import Any

import pytest

from fastdisco.config import KubernetesSDConfig
from fastdisco.configuration import unmade_labels
from fastdisco.relabel_config import load_rules
from fastdisco.scrape_config import ScrapeConfig

M = "__meta_kubernetes_"


def told(*rules: dict[str, Any], role: str = "pod", dialect: str = "victoriametrics", **more: Any) -> list[str]:
    config = KubernetesSDConfig.from_dict({"role": role, **more})
    lines = unmade_labels(ScrapeConfig("a", (config,), load_rules(list(rules)), dialect=dialect))
    return [line.replace(M, "M_") for line in lines]


def reads(name: str) -> dict[str, Any]:
    return {"source_labels": [M + name], "target_label": "x"}


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("pod_lable_app", "no target has it; is M_pod_label_app meant?"),
        ("pod_labels_app", "no target has it; is M_pod_label_app meant?"),
        ("pod_nam", "no target has it; is M_pod_name meant?"),
        ("pod_label_", "no target has it"),
        ("nonsense", "no target has it"),
        ("node_name", "there with attach_metadata: {node: true} only"),
        ("namespace_label_team", "there with attach_metadata: {namespace: true} only"),
        ("ingress_path", "role ingress has it, and role pod does not"),
        ("endpoint_ready", "role endpoints has it, and role pod does not"),
    ],
)
def test_a_label_that_no_target_has_is_told_with_what_is_meant(name: str, reason: str) -> None:
    """Or with what would have to be asked for."""
    assert told({"action": "keep", "source_labels": ["job", "x"], "regex": "y"}, reads(name)) == [f"relabel_configs[1]: M_{name}: {reason}"]


def test_labels_of_the_other_dialect_are_told_so() -> None:
    """A zone is there with Prometheus only, and the type of a service with endpoints in vmagent only."""
    zone = reads("endpointslice_endpoint_zone")
    assert told(zone, role="endpointslice") == [
        "relabel_configs[0]: M_endpointslice_endpoint_zone: Prometheus has it, and dialect victoriametrics does not"
    ]
    assert told(zone, role="endpointslice", dialect="prometheus") == []
    assert told(reads("service_type"), role="endpoints", dialect="prometheus") == [
        "relabel_configs[0]: M_service_type: vmagent has it, and dialect prometheus does not"
    ]
    assert told(reads("service_type"), role="endpoints") == told(reads("service_type"), role="service", dialect="prometheus") == []


def test_what_is_there_is_not_told() -> None:
    """Nor is what an earlier rule has written, nor a label that is none of Kubernetes discovery."""
    assert told(reads("pod_label_app"), reads("pod_name"), {"source_labels": ["app", "__meta_url", "__tmp_x"], "target_label": "x"}) == []
    assert told(reads("node_label_zone"), reads("namespace_label_team"), attach_metadata={"node": True, "namespace": True}) == []
    assert told({"target_label": M + "mine", "replacement": "x"}, reads("mine")) == []
    assert told(reads("mine"), {"target_label": M + "mine", "replacement": "x"}) != []


def test_selectors_and_references_read_labels_too() -> None:
    """`if`, and names in braces in a replacement."""
    wanted = ["relabel_configs[0]: M_pod_nam: no target has it; is M_pod_name meant?"]
    assert told({"action": "drop", "if": f'{{{M}pod_nam="x"}}'}) == wanted
    assert told({"target_label": "x", "replacement": f"a-{{{{{M}pod_nam}}}}"}) == wanted


@pytest.mark.parametrize(
    ("regex", "reason"),
    [
        ("pod_label_(.+)", ""),
        ("pod_(label|annotation)_(.+)", ""),
        ("pod_.*", ""),
        (".+", ""),
        ("pod_lable_(.+)", "fits no label that targets of this job can have"),
        ("(pods|podz)_name", "fits no label that targets of this job can have"),
        ("(pod|node)_name", ""),
        ("pod_name", ""),
        ("pod_nam", "fits no label that targets of this job can have"),
        ("pod_name_.+", "fits no label that targets of this job can have"),
        ("node_label_(.+)", "fits only labels of attach_metadata that is not asked for"),
    ],
)
def test_an_expression_over_names_that_fits_none_of_them_is_told(regex: str, reason: str) -> None:
    """Of labelmap, labeldrop and labelkeep; one that may fit anything else is not told."""
    for action in ("labelmap", "labeldrop", "labelkeep"):
        wanted = [f"relabel_configs[0]: M_{regex}: {reason}"] if reason else []
        assert told({"action": action, "regex": M + regex}) == wanted
    assert told({"action": "labelmap", "regex": f"foo|{M}{regex}"}) == []
