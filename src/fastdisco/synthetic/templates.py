"""Objects written once as Python values, then rendered many times by bytes formatting.

A string `%(name)b` in the value is filled in at each rendering; `%(=name)b` is filled in without quotes, for numbers and booleans.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fastdisco.synthetic.objects import go_json

_MERGE_KEYS = {
    "containers": ("name",),
    "initContainers": ("name",),
    "env": ("name",),
    "volumes": ("name",),
    "volumeMounts": ("mountPath",),
    "ports": ("containerPort", "protocol"),
    "conditions": ("type",),
    "podIPs": ("ip",),
    "addresses": ("type",),
    "ownerReferences": ("uid",),
}
_UNQUOTED = re.compile(rb'"%\(=(\w+)\)b"')
_PLACEHOLDER = re.compile(rb"%(?!\(=?\w+\)b)")


class Template:
    """The list item of one kind of object, with its leading comma."""

    __slots__ = ("_text",)

    def __init__(self, value: Any) -> None:
        text = _PLACEHOLDER.sub(b"%%", go_json(value))
        self._text = b"," + _UNQUOTED.sub(rb"%(\1)b", text)

    def render(self, values: Mapping[bytes, bytes]) -> bytes:
        """The item with these values, which must be JSON-escaped already."""
        return self._text % values


def owned_fields(value: Any, *, name: str = "") -> Any:
    """What `managedFields` says of a value that one manager owns."""
    if isinstance(value, dict):
        return {f"f:{key}": owned_fields(each, name=key) for key, each in value.items()}
    keys = _MERGE_KEYS.get(name)
    if isinstance(value, list) and keys and all(isinstance(each, dict) and keys[0] in each for each in value):
        owned: dict[str, Any] = {".": {}}
        for each in value:
            identity = go_json({key: each[key] for key in keys if key in each}).decode()
            owned[f"k:{identity}"] = {".": {}, **owned_fields(each)}
        return owned
    return {}


def managed(manager: str, time: str, owned: Any, *, api_version: str = "v1", subresource: str = "") -> dict[str, Any]:
    """One entry of `metadata.managedFields`."""
    entry = {
        "manager": manager,
        "operation": "Update",
        "apiVersion": api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": owned_fields(owned),
    }
    return entry | {"subresource": subresource} if subresource else entry


def text(value: str | int) -> bytes:
    """A value for a rendering."""
    return str(value).encode()


def address4(first: int, number: int) -> str:
    """An address in 127.0.0.0/8, from the block that begins with `127.first`."""
    return f"127.{first + (number >> 16)}.{number >> 8 & 255}.{number & 255}"


def address6(number: int) -> str:
    """An address in the documentation prefix 2001:db8::/32."""
    return f"2001:db8:0:{number >> 16:x}::{number & 0xFFFF:x}" if number & 0xFFFF else f"2001:db8:0:{number >> 16:x}::1:0"


def uid_text(number: int) -> str:
    """A 128-bit number as a random UUID is written."""
    digits = f"{number:032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"
