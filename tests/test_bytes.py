"""Short strings, compared and checked eight bytes at a time, seen through the decoder: no length and no place is special."""

import orjson
import pytest

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder
from tests.heart import list_body

LENGTHS = range(1, 42)


def decode(*objects: bytes) -> tuple[Decoder, Store]:
    """These namespaces, as one list."""
    store = Store(Symbols())
    decoder = Decoder(store, "namespace")
    decoder.begin_list()
    decoder.feed(b'{"metadata":{"resourceVersion":"1"},"items":[' + b",".join(objects) + b"]}")
    decoder.end_page()
    while decoder.apply_list():
        pass
    return decoder, store


def namespace(name: str, text: str) -> bytes:
    return orjson.dumps({"metadata": {"name": name, "labels": {"text": text}}})


def changed(text: str, place: int, to: str) -> str:
    return text[:place] + to + text[place + 1 :]


@pytest.mark.parametrize("length", LENGTHS)
def test_strings_that_differ_in_one_byte_are_different(length: int) -> None:
    """Whichever byte it is, and although one object follows the other, the same string stands in the same place before and after."""
    plain = "a" * length
    texts = [text for place in range(length) for text in (plain, changed(plain, place, "b"), plain[:place], plain + "a" * place)]
    objects = [namespace(f"n{number}", text) for number, text in enumerate(texts)]
    _, store = decode(*objects)
    for encoded in objects:
        expected = orjson.loads(encoded)
        assert store.get("namespace", "", expected["metadata"]["name"]) == expected


@pytest.mark.parametrize("length", LENGTHS)
def test_a_control_character_is_found_wherever_it_is(length: int) -> None:
    """As orjson, the decoder refuses an object with one, and takes all other bytes."""
    for place in range(length):
        for code in (0x00, 0x1F, 0x20, 0x7F):
            text = changed("a" * length, place, chr(code)).encode()
            encoded = b'{"metadata":{"name":"n","labels":{"text":"' + text + b'"}}}'
            try:
                expected = orjson.loads(encoded)
            except orjson.JSONDecodeError:
                expected = None
            decoder, store = decode(encoded)
            assert store.get("namespace", "", "n") == expected
            assert len(decoder.take_errors()) == (expected is None)


def test_a_control_character_that_came_by_an_escape_is_no_excuse_for_a_raw_one() -> None:
    """Neither in the same object nor in a later one, in the same place or elsewhere; and with escapes it is always welcome."""
    for texts in ([rb"p\u0001q", b"p\x01q"], [b"p\x01q", rb"p\u0001q"], [rb"p\u0001q", rb"p\u0001q"]):
        first, second = texts
        objects = [
            b'{"metadata":{"name":"n%d","labels":{"a":"%s","b":"%s"}}}' % (number, first, second) for number in range(3)
        ] + [b'{"metadata":{"name":"m%d","labels":{"a":"%s"}}}' % (number, text) for number, text in enumerate(texts)]
        decoder, store = decode(*objects)
        bad = 0
        for encoded in objects:
            name = encoded.split(b'"')[5].decode()
            try:
                expected = orjson.loads(encoded)
            except orjson.JSONDecodeError:
                expected, bad = None, bad + 1
            assert store.get("namespace", "", name) == expected
        assert len(decoder.take_errors()) == bad


@pytest.mark.parametrize("length", LENGTHS)
def test_bytes_that_are_no_text_are_replaced_wherever_they_are(length: int) -> None:
    """As Python replaces them."""
    for place in range(length):
        text = b"a" * place + b"\xff" + b"a" * (length - place - 1)
        _, store = decode(b'{"metadata":{"name":"n","labels":{"text":"' + text + b'"}}}')
        found = store.get("namespace", "", "n")
        assert found is not None
        assert found["metadata"]["labels"]["text"] == text.decode(errors="replace")


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("pod", ("status", "phase")),
        ("pod", ("status", "containerStatuses")),
        ("pod", ("status", "initContainerStatuses")),
        ("pod", ("spec", "nodeName")),
        ("pod", ("metadata", "uid")),
    ],
)
def test_a_key_that_differs_in_one_byte_is_another_key(kind: str, path: tuple[str, str]) -> None:
    """Whichever byte it is: short keys, long ones, and those of more than two words."""
    outer, key = path
    value: object = [{"name": "c"}] if key.endswith("Statuses") else "text"
    for place in range(len(key)):
        wrong = changed(key, place, "_")
        written = {"metadata": {"name": "n", "namespace": "a"}}
        written.setdefault(outer, {})[wrong] = value  # type: ignore[assignment]
        store = Store(Symbols())
        decoder = Decoder(store, kind)
        decoder.begin_list()
        decoder.feed(list_body([written]))
        decoder.end_page()
        while decoder.apply_list():
            pass
        assert decoder.take_errors() == []
        assert store.get(kind, "a", "n") == {"metadata": {"name": "n", "namespace": "a"}}
        written[outer][key] = value  # type: ignore[assignment]
        decoder.begin_list()
        decoder.feed(list_body([written]))
        decoder.end_page()
        while decoder.apply_list():
            pass
        found = store.get(kind, "a", "n")
        assert found is not None
        assert found[outer][key] == value
