"""POST, PUT and DELETE of objects at the usual paths."""

from __future__ import annotations

from typing import Any

import orjson

from fastdisco.synthetic.objects import entry_of, prepared, whole
from fastdisco.synthetic.resources import Route
from fastdisco.synthetic.status import StatusError, no_object
from fastdisco.synthetic.store import Entry, Store


def create(store: Store, route: Route, item: Any) -> bytes:
    """A new object; 409 if its name is taken. A PUT's rules are `replace`."""
    route = _named(route, item)
    if route.key in store.tables[route.resource.plural].entries:
        raise StatusError(409, f'{route.resource.plural} "{route.name}" already exists', details=_details(route))
    return whole(route.resource, put(store, route, item), route.version)


def replace(store: Store, route: Route, item: Any) -> bytes:
    """Another state of an object, whatever version it names; 404 if there is none."""
    route = _named(route, item)
    if route.key not in store.tables[route.resource.plural].entries:
        raise no_object(route.resource.plural, route.resource.group, route.name)
    return whole(route.resource, put(store, route, item), route.version)


def put(store: Store, route: Route, item: Any) -> Entry:
    """Create or replace, whichever it takes."""
    route = _named(route, item)
    old = store.tables[route.resource.plural].entries.get(route.key)
    known = orjson.loads(old.body[1:]) if old is not None else None
    ready = prepared(item, route.namespace, known)
    return store.put(route.resource.plural, lambda version: entry_of(route.resource, ready, version)).entry


def delete(store: Store, route: Route) -> bytes:
    """Remove an object and return its last state, at the version of the deletion."""
    event = store.delete(route.resource.plural, route.key)
    if event is None:
        raise no_object(route.resource.plural, route.resource.group, route.name)
    return whole(route.resource, event.entry, route.version)


def _details(route: Route) -> dict[str, str]:
    return {"name": route.name, "kind": route.resource.plural}


def _named(route: Route, item: Any) -> Route:
    """The route with the object's own name and namespace where the path leaves them open."""
    if not isinstance(item, dict) or not isinstance(item.get("metadata"), dict):
        raise StatusError(400, "the object provided is unrecognized (must be of type Object): it has no metadata")
    metadata = item["metadata"]
    name = route.name or str(metadata.get("name") or "")
    namespace = route.namespace or (str(metadata.get("namespace") or "") if route.resource.namespaced else "")
    if not name or (route.resource.namespaced and not namespace):
        raise StatusError(422, "metadata.name and metadata.namespace are required")
    if metadata.get("name") not in (None, name):
        raise StatusError(400, "the name of the object does not match the name on the URL")
    return Route(route.resource, route.version, namespace, name)
