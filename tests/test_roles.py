"""The table of roles: paths, joined kinds and label profiles."""

from __future__ import annotations

import pytest

from fastdisco.config import AttachMetadata
from fastdisco.roles import ATTACH_NAMESPACE, ATTACH_NODE, RESOURCES, kinds_of, profile_of


@pytest.mark.parametrize(
    ("kind", "cluster", "inside"),
    [
        ("node", "/api/v1/nodes", "/api/v1/nodes"),
        ("namespace", "/api/v1/namespaces", "/api/v1/namespaces"),
        ("pod", "/api/v1/pods", "/api/v1/namespaces/web/pods"),
        ("service", "/api/v1/services", "/api/v1/namespaces/web/services"),
        ("endpoints", "/api/v1/endpoints", "/api/v1/namespaces/web/endpoints"),
        ("endpointslice", "/apis/discovery.k8s.io/v1/endpointslices", "/apis/discovery.k8s.io/v1/namespaces/web/endpointslices"),
        ("ingress", "/apis/networking.k8s.io/v1/ingresses", "/apis/networking.k8s.io/v1/namespaces/web/ingresses"),
    ],
)
def test_paths_are_those_of_the_api_and_nodes_and_namespaces_are_cluster_wide(kind: str, cluster: str, inside: str) -> None:
    """Newest version first; without a namespace the whole cluster."""
    assert RESOURCES[kind].paths("")[0] == cluster
    assert RESOURCES[kind].paths("web")[0] == inside


@pytest.mark.parametrize("kind", ["endpointslice", "ingress"])
def test_slices_and_ingresses_have_an_older_version(kind: str) -> None:
    """`v1beta1` comes after `v1`; nothing else has a second version."""
    new, old = RESOURCES[kind].paths("web")
    assert old == new.replace("/v1/", "/v1beta1/")
    assert all(len(resource.paths("web")) == 1 for other, resource in RESOURCES.items() if other not in ("endpointslice", "ingress"))


@pytest.mark.parametrize(
    ("role", "kinds"),
    [
        ("node", ["node"]),
        ("pod", ["pod"]),
        ("service", ["service"]),
        ("ingress", ["ingress"]),
        ("endpoints", ["endpoints", "pod", "service"]),
        ("endpointslice", ["endpointslice", "pod", "service"]),
    ],
)
def test_a_role_needs_its_own_kind_and_those_it_joins(role: str, kinds: list[str]) -> None:
    """Only endpoints and slices join others."""
    assert list(kinds_of(role, 0)) == kinds


@pytest.mark.parametrize(
    ("role", "profile"),
    [
        ("node", 0),
        ("service", ATTACH_NAMESPACE),
        ("ingress", ATTACH_NAMESPACE),
        *((role, ATTACH_NODE | ATTACH_NAMESPACE) for role in ("pod", "endpoints", "endpointslice")),
    ],
)
def test_attaching_counts_only_where_the_role_has_a_use_for_it(role: str, profile: int) -> None:
    """A job that asks for more than its role shows has the profile, and the watchers, of one that does not."""
    assert profile_of(role, AttachMetadata(node=True, namespace=True)) == profile
    assert profile_of(role, AttachMetadata()) == 0
    assert ("node" in kinds_of(role, profile)) is (role == "node" or bool(profile & ATTACH_NODE))
    assert ("namespace" in kinds_of(role, profile)) is bool(profile & ATTACH_NAMESPACE)


@pytest.mark.parametrize("name", ["../../secrets/token", "p1?watch=1", "a/b", "p%2e", "ü"])
def test_a_name_stays_one_segment_of_its_path(name: str) -> None:
    """Names come out of objects that others write: none may lead to another path."""
    (path,) = RESOURCES["pod"].object_paths("web", name)
    assert path.startswith("/api/v1/namespaces/web/pods/")
    assert not set("/?#") & set(path.removeprefix("/api/v1/namespaces/web/pods/"))
    (path,) = RESOURCES["pod"].object_paths(name, "p1")
    assert path.removeprefix("/api/v1/namespaces/").count("/") == 2


@pytest.mark.parametrize("name", ["", ".", ".."])
def test_what_can_be_no_name_has_no_path(name: str) -> None:
    """URLs give dots a meaning of their own."""
    assert RESOURCES["pod"].object_paths("web", name) == ()
    assert (RESOURCES["pod"].object_paths(name, "p1") == ()) is (name != "")
