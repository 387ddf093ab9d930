"""Objects given as JSON, turned into entries: encoded as Go encodes them, stamped, indexed for selectors."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping
from typing import Any

import orjson

from fastdisco.synthetic.resources import Resource
from fastdisco.synthetic.store import Entry

_ESCAPES = ((b"<", b"\\u003c"), (b">", b"\\u003e"), (b"&", b"\\u0026"), ("\u2028".encode(), b"\\u2028"), ("\u2029".encode(), b"\\u2029"))
_FIRST = ("name", "generateName", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp")


def go_json(value: Any) -> bytes:
    """Compact JSON with the escapes of Go's `encoding/json`."""
    encoded = orjson.dumps(value)
    for plain, escaped in _ESCAPES:  # none of them occurs outside strings
        if plain in encoded:
            encoded = encoded.replace(plain, escaped)
    return encoded


def prepared(item: Mapping[str, Any], namespace: str, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The object as the server keeps it: no kind or apiVersion, with a uid and a creation time (the old ones, if there are any)."""
    given = dict(item.get("metadata") or {})
    if namespace:
        given["namespace"] = namespace
    known = (old or {}).get("metadata") or {}
    given["uid"] = given.get("uid") or known.get("uid") or str(uuid.uuid4())
    if "creationTimestamp" not in given:
        given["creationTimestamp"] = known.get("creationTimestamp") or time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    given["resourceVersion"] = ""
    metadata = {key: given.pop(key) for key in _FIRST if key in given}
    metadata.update(given)
    rest = {key: value for key, value in item.items() if key not in ("kind", "apiVersion", "metadata")}
    return {"metadata": metadata, **rest}


def entry_of(resource: Resource, item: dict[str, Any], version: int) -> Entry:
    """The entry of a prepared object at a version."""
    metadata = item["metadata"]
    metadata["resourceVersion"] = str(version)
    labels = metadata.get("labels")
    spec, status = item.get("spec"), item.get("status")
    return Entry(
        metadata["namespace"] if resource.namespaced else "",
        metadata["name"],
        b"," + go_json(item),
        version,
        labels if isinstance(labels, dict) else {},
        str(spec.get("nodeName") or "") if isinstance(spec, dict) else "",
        str(status.get("phase") or "") if isinstance(status, dict) else "",
    )


def whole(resource: Resource, entry: Entry, version: str = "v1") -> bytes:
    """One object with its kind and apiVersion, as in a GET."""
    return b'{"kind":"%b","apiVersion":"%b",%b' % (resource.kind.encode(), resource.api_version(version).encode(), entry.body[2:])
