"""The table of label names against what real programs discovered, and against the plain statement of the label rules."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import orjson
import pytest
from hypothesis import given

from fastdisco.config import DIALECTS, ROLES, AttachMetadata
from fastdisco.label_names import LabelNames, label_names
from tests import reference, strategies

GOLDEN = Path(__file__).parent / "data" / "golden"
DISCOVERED: dict[tuple[str, str], set[str]] = {
    ("victoriametrics", variant): {name for labels in targets for name in labels if name.startswith("__meta_")}
    for variant, targets in orjson.loads((GOLDEN / "targets-victoriametrics.json").read_bytes()).items()
} | {
    ("prometheus", variant): {name for labels in targets for name in labels if name.startswith("__meta_")}
    for variant, targets in orjson.loads((GOLDEN / "targets-prometheus.json").read_bytes()).items()
}  # fmt: skip
# Not among the objects there: endpoints of a service of type ExternalName, and slices of the API version v1beta1.
UNSEEN = {
    "__meta_kubernetes_service_external_name",
    "__meta_kubernetes_endpointslice_endpoint_topology_",
    "__meta_kubernetes_endpointslice_endpoint_topology_present_",
}


def table(dialect: str, variant: str) -> LabelNames:
    role, _, attached = variant.partition("+")
    return label_names(role, dialect, (attached,) if attached else ())


@pytest.mark.parametrize(("dialect", "variant"), DISCOVERED)
def test_the_table_has_what_real_programs_discover_and_nothing_else(dialect: str, variant: str) -> None:
    """Label by label, and family by family."""
    known, seen = table(dialect, variant), DISCOVERED[dialect, variant]
    assert {name for name in seen if not known.has(name)} == set()
    unseen = {name for name in known.names if name not in seen}
    unseen |= {family for family in known.families if not any(name.startswith(family) for name in seen)}
    assert unseen <= UNSEEN


@pytest.mark.parametrize("dialect", DIALECTS)
def test_the_table_has_every_label_that_the_rules_make(dialect: str) -> None:
    """Of odd objects, too, whatever is attached."""
    attached = tuple(one.name for one in fields(AttachMetadata))

    @given(strategies.clusters())
    def check(objects: strategies.Objects) -> None:
        for role in ROLES:
            known = label_names(role, dialect, attached)
            for labels in reference.targets(role, objects, attached, dialect):
                made = {name for name in labels if name.startswith("__meta_") and not known.has(name)}
                assert made <= known.families  # of an empty key, which no real object has

    check()
