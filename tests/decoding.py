"""Decoders in the hands of a test: fed with whole bodies or pieces, and asked what they made of them; and bodies to feed them with."""

import random
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import orjson

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder
from tests.heart import KINDS, Object, cut, key_of, new_pod

WIRE = Path(__file__).parent / "data" / "wire"
RECORDED = {
    (kind, folder): orjson.loads((WIRE / folder / f"list-{plural}.json").read_bytes())["items"]
    for folder in ("", "1.37")
    for plural, kind in KINDS.items()
    if (WIRE / folder / f"list-{plural}.json").exists()
}


def new_decoder(kind: str = "pod", **options: Any) -> Decoder:
    return Decoder(Store(Symbols()), kind, **options)


def read_list(decoder: Decoder, body: bytes, size: int = 0) -> tuple[str, str]:
    decoder.begin_list()
    for chunk in cut(body, size):
        decoder.feed(chunk)
    found = decoder.end_page()
    while decoder.apply_list():
        pass
    return found


def read_watch(decoder: Decoder, body: bytes, size: int = 0) -> int:
    decoder.begin_watch()
    for chunk in cut(body, size):
        decoder.feed(chunk)
    return decoder.end_watch()


def feed_all(decoder: Decoder, body: bytes, size: int) -> None:
    for chunk in cut(body, size):
        decoder.feed(chunk)


def stored(decoder: Decoder, items: Iterable[Object]) -> list[dict[str, Any] | None]:
    return [decoder.store.get(decoder.kind, *key_of(item)) for item in items]


def names(decoder: Decoder, *candidates: str) -> set[str]:
    """Which of these pods in the namespace web are here."""
    return {name for name in candidates if decoder.store.get("pod", "web", name) is not None}


def errors(decoder: Decoder) -> list[tuple[str | None, str, int]]:
    return [(key, error.reason, error.offset) for key, error in decoder.take_errors()]


def bad_item(name: str) -> bytes:
    return orjson.dumps(new_pod(name) | {"status": {"podIP": 5}})


def versioned(version: str, name: str = "a") -> Object:
    item = new_pod(name)
    item["metadata"]["resourceVersion"] = version
    return item


def event(change: str, item: Any, **more: Any) -> bytes:
    return orjson.dumps({"type": change, "object": item} | more) + b"\n"


ODD = [*b'"\\{}[],:0-9.eE \n\t\x00\x01\x7f\x80\xed\xa0\xff', *b"untrfalsb/"]


def mutated(raw: bytes, choose: random.Random) -> bytes:
    body = bytearray(raw)
    for _ in range(choose.choice((1, 1, 1, 2, 5))):
        at, other = sorted(choose.randrange(len(body) + 1) for _ in range(2))
        length = min(other - at, choose.choice((0, 1, 1, 2, 30)))
        piece = choose.choice((bytes([choose.choice(ODD)]), b"", body[at : at + choose.choice((1, 20))], b"null", b"-1", b"\\ud83d"))
        body[at : at + length] = piece
    return bytes(body)
