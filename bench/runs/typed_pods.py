"""Pods as msgspec structs, with the fields that the engine's decoder reads."""

from __future__ import annotations

from typing import Any

import msgspec


class Port(msgspec.Struct):
    name: str | None = None
    containerPort: int | None = None  # noqa: N815
    protocol: str | None = None


class Container(msgspec.Struct):
    name: str | None = None
    image: str | None = None
    restartPolicy: str | None = None  # noqa: N815
    ports: list[Port] | None = None


class State(msgspec.Struct):
    terminated: dict[str, Any] | None = None


class ContainerStatus(msgspec.Struct):
    name: str | None = None
    containerID: str | None = None  # noqa: N815
    state: State | None = None


class Condition(msgspec.Struct):
    type: str | None = None
    status: str | None = None


class Owner(msgspec.Struct):
    controller: bool | None = None
    kind: str | None = None
    name: str | None = None


class Metadata(msgspec.Struct):
    name: str
    namespace: str
    uid: str | None = None
    resourceVersion: str | None = None  # noqa: N815
    labels: dict[str, str] | None = None
    annotations: dict[str, str] | None = None
    ownerReferences: list[Owner] | None = None  # noqa: N815


class Spec(msgspec.Struct):
    nodeName: str | None = None  # noqa: N815
    containers: list[Container] | None = None
    initContainers: list[Container] | None = None  # noqa: N815


class Status(msgspec.Struct):
    phase: str | None = None
    podIP: str | None = None  # noqa: N815
    hostIP: str | None = None  # noqa: N815
    conditions: list[Condition] | None = None
    containerStatuses: list[ContainerStatus] | None = None  # noqa: N815
    initContainerStatuses: list[ContainerStatus] | None = None  # noqa: N815


class Pod(msgspec.Struct):
    metadata: Metadata
    spec: Spec | None = None
    status: Status | None = None


class ListMetadata(msgspec.Struct):
    resourceVersion: str | None = None  # noqa: N815


class PodList(msgspec.Struct):
    metadata: ListMetadata
    items: list[Pod]


decoder = msgspec.json.Decoder(PodList)
