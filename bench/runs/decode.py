"""A list of pods from memory, decoded: by the engine's decoder, and by others into Python objects."""

from __future__ import annotations

import gc
import hashlib
import json
import statistics
import time
from collections.abc import Callable, Iterable
from typing import Any

from fastdisco.synthetic import RemoteControl

from ..cases import Figures
from .child import RunError, answer

_CHUNK = 256 << 10
_ROUNDS = 5
Names = Iterable[tuple[str, str]]


def measure(*, began: float, url: str, decoder: str, collector: bool = True) -> Figures:  # noqa: ARG001
    """Megabytes per second of processor time, the median of some rounds; `decoder` is one of DECODERS.

    `collector`: whether the garbage collector runs, as it does by default. The names of all pods are checked.
    """
    _, body = RemoteControl(url).request("GET", "/api/v1/pods?resourceVersion=0")
    decode = DECODERS[decoder](body)
    took: list[float] = []
    if not collector:
        gc.disable()
    for _ in range(_ROUNDS):
        start = time.process_time()
        made, names = decode()
        took.append(time.process_time() - start)
        _check(names(made), body)
        del made
    gc.enable()
    return {"throughput": len(body) / 1e6 / statistics.median(took)}


_expected: dict[int, str] = {}


def _check(names: Names, body: bytes) -> None:
    """RunError unless these are the names in the body, as the standard library reads it."""
    if id(body) not in _expected:
        pods = json.loads(body)["items"]
        _expected[id(body)] = _digest((pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in pods)
    if _digest(names) != _expected[id(body)]:
        raise RunError("wrong answer: not the names of the pods that were sent")


def _digest(names: Names) -> str:
    return hashlib.sha256(repr(sorted(names)).encode()).hexdigest()


Decode = Callable[[], tuple[Any, Callable[[Any], Names]]]


def _engine(body: bytes) -> Decode:
    """Records in a store, strings interned; fed in chunks as a connection would."""
    from fastdisco._core import Store, Symbols
    from fastdisco._json import Decoder

    chunks = [body[start : start + _CHUNK] for start in range(0, len(body), _CHUNK)]
    keys = [(pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in json.loads(body)["items"]]

    def names(store: Store) -> Names:
        if store.objects("pod") != len(keys):
            raise RunError(f"wrong answer: {store.objects('pod')} records of {len(keys)} pods")
        for namespace, name in keys:
            pod = store.get("pod", namespace, name)
            if pod is not None:
                yield pod["metadata"]["namespace"], pod["metadata"]["name"]

    def decode() -> tuple[Any, Callable[[Any], Names]]:
        store = Store(Symbols())
        decoder = Decoder(store, "pod")
        decoder.begin_list()
        for chunk in chunks:
            decoder.feed(chunk)
        decoder.end_page()
        while decoder.apply_list():
            pass
        return store, names

    return decode


def _plain(items: Callable[[], Any]) -> Decode:
    def names(made: Any) -> Names:
        return ((pod["metadata"]["namespace"], pod["metadata"]["name"]) for pod in made["items"])

    return lambda: (items(), names)


def _json(body: bytes) -> Decode:
    return _plain(lambda: json.loads(body))


def _orjson(body: bytes) -> Decode:
    import orjson

    return _plain(lambda: orjson.loads(body))


def _msgspec(body: bytes) -> Decode:
    """The fields that the engine's decoder reads of a pod, and no others."""
    from .typed_pods import decoder

    def names(made: Any) -> Names:
        return ((pod.metadata.namespace, pod.metadata.name) for pod in made.items)

    return lambda: (decoder.decode(body), names)


DECODERS: dict[str, Callable[[bytes], Decode]] = {"fastdisco": _engine, "json": _json, "orjson": _orjson, "msgspec": _msgspec}


if __name__ == "__main__":
    answer(measure)
