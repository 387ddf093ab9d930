"""The fields that labels need, said once more: an object as JSON gives it becomes what the store keeps of it, or has a wrong type."""

import re
from collections.abc import Mapping
from typing import Any

Spec = Any  # a mapping: an object with these fields; a list of one: an array of such; else the type of a value

PAIRS = "an object of strings"
METADATA = {"name": str, "namespace": str, "labels": PAIRS, "annotations": PAIRS, "resourceVersion": str}
OWNERS = [{"controller": bool, "kind": str, "name": str}]
OWNED = {"name": str, "namespace": str, "resourceVersion": str, "ownerReferences": OWNERS}
TARGET_REF = {"kind": str, "name": str, "namespace": str}
STATUSES = [{"name": str, "containerID": str, "state": {"terminated": {}}}]
ADDRESSES = [{"ip": str, "hostname": str, "nodeName": str, "targetRef": TARGET_REF}]


def ports(number: str, **more: Spec) -> Spec:
    return [{"name": str, number: int, "protocol": str, **more}]


CONTAINER = {"name": str, "image": str, "ports": ports("containerPort")}
READ: Mapping[str, Spec] = {
    "node": {
        "metadata": METADATA,
        "spec": {"providerID": str},
        "status": {
            "addresses": [{"type": str, "address": str}],
            "conditions": [{"type": str, "status": str}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": int}},
        },
    },
    "pod": {
        "metadata": METADATA | {"uid": str, "ownerReferences": OWNERS},
        "spec": {"nodeName": str, "containers": [CONTAINER], "initContainers": [CONTAINER | {"restartPolicy": str}]},
        "status": {
            "phase": str, "podIP": str, "hostIP": str, "conditions": [{"type": str, "status": str}],
            "containerStatuses": STATUSES, "initContainerStatuses": STATUSES,
        },
    },
    "service": {
        "metadata": METADATA,
        "spec": {
            "type": str, "clusterIP": str, "externalName": str, "loadBalancerIP": str, "ipFamilyPolicy": str, "ipFamilies": [str],
            "ports": ports("port"),
        },
        "status": {"loadBalancer": {"ingress": [{"ip": str}]}},
    },
    "endpoints": {
        "metadata": METADATA,
        "subsets": [{"addresses": ADDRESSES, "notReadyAddresses": ADDRESSES, "ports": ports("port")}],
    },
    "endpointslice": {
        "metadata": METADATA,
        "addressType": str,
        "ports": ports("port", appProtocol=str),
        "endpoints": [
            {
                "addresses": [str], "hostname": str, "nodeName": str, "zone": str, "topology": PAIRS, "deprecatedTopology": PAIRS,
                "conditions": {"ready": bool, "serving": bool, "terminating": bool}, "targetRef": TARGET_REF,
            }
        ],
    },
    "ingress": {
        "metadata": METADATA,
        "spec": {"ingressClassName": str, "rules": [{"host": str, "http": {"paths": [{"path": str}]}}], "tls": [{"hosts": [str]}]},
    },
    "namespace": {"metadata": METADATA},
    "replicaset": {"metadata": OWNED},
    "job": {"metadata": OWNED},
}  # fmt: skip
KEPT_EMPTY = ("targetRef", "http", "terminated")  # that they are there matters
FIRST = {"conditions": ("type", "Ready"), "ownerReferences": ("controller", True)}  # conditions only of pods


class WrongType(Exception):  # noqa: N818  a finding rather than an error
    """Something that is read has another type than it should have."""


def kept(kind: str, item: Any) -> dict[str, Any]:
    """What `Store.get` should give; WrongType where it cannot be read, or if it has no name."""
    made: dict[str, Any] = project(READ[kind], item)
    metadata = made.get("metadata", {})
    if not metadata.get("name"):
        raise WrongType("metadata.name")
    metadata.pop("resourceVersion", None)
    if metadata.get("namespace") == "":
        del metadata["namespace"]
    if kind == "pod":
        keep_first(made.get("status", {}), "conditions")
    keep_first(metadata, "ownerReferences")
    return {key: value for key, value in made.items() if value != {}}


def keep_first(outer: dict[str, Any], field: str) -> None:
    """Of these arrays only the element that decides is kept, with what it lacks as empty strings."""
    key, wanted = FIRST[field]
    found = next((one for one in outer.pop(field, ()) if one.get(key) == wanted), None)
    if found is not None:
        outer[field] = [dict.fromkeys(("kind", "name") if field == "ownerReferences" else ("status",), "") | found]


def project(spec: Spec, value: Any) -> Any:
    if isinstance(spec, dict):
        if not isinstance(value, dict):
            raise WrongType
        made = {key: project(inner, value[key]) for key, inner in spec.items() if value.get(key) is not None}
        return {key: inner for key, inner in made.items() if inner != {} or spec[key] is PAIRS or key in KEPT_EMPTY}
    if isinstance(spec, list):
        if not isinstance(value, list):
            raise WrongType
        nothing = "" if spec[0] is str else {}
        return [nothing if one is None else project(spec[0], one) for one in value]
    if spec is PAIRS:
        if not isinstance(value, dict):
            raise WrongType
        return {clean(key): "" if one is None else project(str, one) for key, one in value.items()}
    if type(value) is not spec or (spec is int and not -(2**63) <= value < 2**64):
        raise WrongType
    return clean(value) if spec is str else value


def clean(text: str) -> str:
    """Lone surrogates, which only a lenient parser lets through, read as U+FFFD."""
    return re.sub("[\ud800-\udfff]", "\ufffd", text)


STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
SPACE = re.compile(r"[ \t\r\n]*")
SCALAR = re.compile(r'[^\x00-\x20,}\]:"{\[]+')


class Skipping:
    """Reads JSON as far as a specification goes, and passes over the rest by its strings and brackets alone."""

    def __init__(self, text: str, parse_string: Any) -> None:
        self.text = text
        self.parse_string = parse_string
        self.at = 0

    def rewritten(self, spec: Spec) -> str:
        """The same JSON with null for whatever is not read; ValueError if it cannot be told apart."""
        made = self.value(spec)
        self.match(SPACE)
        if self.at != len(self.text):
            raise ValueError("bytes after the value")
        return made

    def match(self, pattern: re.Pattern[str]) -> str:
        found = pattern.match(self.text, self.at)
        if not found:
            raise ValueError(f"no {pattern} at {self.at}")
        self.at = found.end()
        return found[0]

    def take(self, wanted: str) -> str:
        self.match(SPACE)
        byte = self.text[self.at : self.at + 1]
        if not byte or byte not in wanted:
            raise ValueError(f"none of {wanted} at {self.at}")
        self.at += 1
        return byte

    def value(self, spec: Spec) -> str:
        self.match(SPACE)
        first = self.text[self.at : self.at + 1]
        if first == "{" and isinstance(spec, dict):
            return self.object(spec)
        if first == "[" and isinstance(spec, list):
            return self.array(spec[0])
        passed = self.passed(first)
        return "null" if spec is None else passed

    def object(self, spec: Spec) -> str:
        made = []
        self.take("{")
        self.match(SPACE)
        if self.text[self.at : self.at + 1] == "}":
            self.at += 1
            return "{}"
        while True:
            self.match(SPACE)
            key = self.match(STRING)
            self.take(":")
            inner = spec.get(self.parse_string(key))
            value = self.value(inner)
            made.append('"":null' if inner is None else f"{key}:{value}")
            if self.take(",}") == "}":
                return "{" + ",".join(made) + "}"

    def array(self, spec: Spec) -> str:
        made = []
        self.take("[")
        self.match(SPACE)
        if self.text[self.at : self.at + 1] == "]":
            self.at += 1
            return "[]"
        while True:
            made.append(self.value(spec))
            if self.take(",]") == "]":
                return "[" + ",".join(made) + "]"

    def passed(self, first: str) -> str:
        start = self.at
        if first == '"':
            return self.match(STRING)
        if first not in ("{", "["):
            return self.match(SCALAR)
        depth = 0
        while True:
            byte = self.text[self.at : self.at + 1]
            if byte == '"':
                self.match(STRING)
                continue
            if byte == "\\":  # where none belongs; it still takes a quote's meaning
                self.at += 1 + (self.text[self.at + 1 : self.at + 2] in ('"', "\\"))
                continue
            if not byte:
                raise ValueError("a value without end")
            self.at += 1
            depth += (byte in "{[") - (byte in "}]")
            if depth == 0:
                return self.text[start : self.at]
