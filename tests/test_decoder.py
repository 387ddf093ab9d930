"""What the decoder reads of an object and what it refuses, against orjson; its memory; and what mutated streams do to it."""

import json
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder, decode_object
from fastdisco.errors import DecodeError
from tests import strategies
from tests.decoding import RECORDED, WIRE, errors, mutated, names, new_decoder, read_list, read_watch, stored
from tests.fields import READ, Skipping, WrongType, clean, kept
from tests.heart import KINDS, cut, key_of, line, list_body, new_pod

CHOOSE = st.randoms(use_true_random=False)
KIND = st.sampled_from(sorted(KINDS.items()))


@pytest.mark.parametrize(("kind", "folder"), RECORDED)
def test_of_recorded_objects_just_the_needed_fields_are_kept(kind: str, folder: str) -> None:
    """From a list, from an event and from the body of a GET alike."""
    items = RECORDED[kind, folder]
    listed, watched = new_decoder(kind), new_decoder(kind)
    read_list(listed, list_body(items))
    read_watch(watched, b"".join(line("ADDED", item) for item in items))
    expected = [kept(kind, item) for item in items]
    assert stored(listed, items) == expected
    assert stored(watched, items) == expected
    assert [decode_object(kind, orjson.dumps(item, option=orjson.OPT_INDENT_2)) for item in items] == expected


@settings(deadline=None, max_examples=150)
@given(st.data(), KIND, CHOOSE)
def test_generated_objects_cut_anywhere(data: st.DataObject, kind: tuple[str, str], choose: random.Random) -> None:
    """Lists and watches in random pieces; every field that is read, absent or null, is as orjson has it."""
    items = data.draw(st.lists(strategies.OBJECTS[kind[0]], max_size=4, unique_by=key_of))
    expected = [kept(kind[1], orjson.loads(orjson.dumps(item))) for item in items]
    listed, watched = new_decoder(kind[1]), new_decoder(kind[1])
    listed.begin_list()
    watched.begin_watch()
    for decoder, body in ((listed, list_body(items)), (watched, b"".join(line("ADDED", item) for item in items))):
        while body:
            size = choose.choice((1, 2, 5, 30, 200))
            decoder.feed(body[:size])
            body = body[size:]
        assert not decoder.take_errors()
    assert listed.end_page() == ("1", "")
    assert watched.end_watch() == len(items)
    assert stored(listed, items) == stored(watched, items) == expected


def noisy(value: Any, choose: random.Random) -> str:
    """The same value as JSON with keys in any order, some of them twice, white space, and escapes that need not be."""
    space = choose.choice(("", "", " ", "\n\t", "\r\n  "))
    if isinstance(value, dict):
        members = [f"{space}{noisy(key, choose)}{space}:{noisy(value[key], choose)}" for key in choose.sample([*value], len(value))]
        for key in choose.sample([*value], min(len(value), choose.choice((0, 0, 1, 2)))):
            members.insert(0, f"{noisy(key, choose)}:{noisy(choose.choice((None, other_of(value[key], choose))), choose)}")
        return "{" + ",".join(members) + space + "}" + space
    if isinstance(value, list):
        return f"[{space}" + ",".join(noisy(one, choose) for one in value) + space + "]"
    if isinstance(value, str):
        return space + '"' + "".join(escaped(char, choose) for char in value) + '"' + space
    return space + orjson.dumps(value).decode() + space


def other_of(value: Any, choose: random.Random) -> Any:
    """Another value of the same types: what is replaced is read as well."""
    if isinstance(value, dict):
        return {key: other_of(value[key], choose) for key in choose.sample([*value], choose.randrange(len(value) + 1))}
    if isinstance(value, list):
        return value * choose.randrange(3)
    return value + "x" if isinstance(value, str) else value


def escaped(char: str, choose: random.Random) -> str:
    plain = orjson.dumps(char).decode()[1:-1]
    if choose.random() < 0.7:
        return plain
    units = char.encode("utf-16-be")
    spelled = "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
    return choose.choice((plain, spelled, spelled.upper().replace("\\U", "\\u"), "\\/" if char == "/" else plain))


@settings(deadline=None, max_examples=200)
@given(st.data(), KIND, CHOOSE)
def test_spelling_makes_no_difference(data: st.DataObject, kind: tuple[str, str], choose: random.Random) -> None:
    """Any order of keys, white space, escapes in keys and values, and duplicates of which the last counts whole."""
    item = data.draw(strategies.OBJECTS[kind[0]])
    raw = noisy(item, choose).encode()
    expected = kept(kind[1], orjson.loads(raw))
    assert expected == kept(kind[1], item)
    assert decode_object(kind[1], raw) == expected
    decoder = new_decoder(kind[1])
    read_list(decoder, list_body([raw]), choose.choice((0, 1, 50)))
    assert stored(decoder, [item]) == [expected]


def lenient_string(text: str) -> str:
    try:
        return clean(json.loads(text))
    except ValueError:
        return ""


def check_mutated(kind: str, raw: bytes) -> None:
    """Accepted and equal if orjson accepts; and if not, accepted only for what may be."""
    decoded: dict[str, Any] | None = None
    offset = 0
    try:
        decoded = decode_object(kind, raw)
    except DecodeError as error:
        offset = error.offset
    assert 0 <= offset <= len(raw)
    try:
        parsed = orjson.loads(raw)
    except orjson.JSONDecodeError:
        if decoded is not None:
            rewritten = Skipping(raw.decode("utf-8", "replace"), lenient_string).rewritten(READ[kind])
            assert decoded == kept(kind, json.loads(rewritten))
        return
    try:
        expected: dict[str, Any] | None = kept(kind, parsed)
    except WrongType:
        expected = None
    if expected is None or decoded is not None or not has_replaced_values(raw):
        assert decoded == expected


def has_replaced_values(raw: bytes) -> bool:
    """Whether a key is there twice: an earlier value of a wrong type is refused, though orjson never shows it."""
    found = False

    def pairs(members: list[tuple[str, Any]]) -> None:
        nonlocal found
        found = found or len(dict(members)) < len(members)

    json.loads(raw, object_pairs_hook=pairs)
    return found


@settings(deadline=None, max_examples=500)
@given(st.data(), KIND, CHOOSE)
def test_mutated_objects_are_read_as_orjson_reads_them(data: st.DataObject, kind: tuple[str, str], choose: random.Random) -> None:
    """What orjson accepts is accepted with the same values; more only for invalid UTF-8, lone surrogates and what is skipped."""
    raw = orjson.dumps(data.draw(strategies.OBJECTS[kind[0]]))
    for _ in range(20):
        check_mutated(kind[1], mutated(raw, choose))


@pytest.mark.parametrize(("kind", "folder"), RECORDED)
def test_mutated_recordings_are_read_as_orjson_reads_them(kind: str, folder: str) -> None:
    """The same, of objects that real servers sent."""
    choose = random.Random(folder + kind)
    for item in RECORDED[kind, folder]:
        raw = orjson.dumps(item)
        for _ in range(60):
            check_mutated(kind, mutated(raw, choose))


def fields_of(raw: str) -> dict[str, Any]:
    """What is read of a pod with this inside its metadata."""
    inside = raw.encode("utf-8", "surrogateescape")
    metadata: dict[str, Any] = decode_object("pod", b'{"metadata":{"name":"n",' + inside + b"}}")["metadata"]
    return metadata


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"a\"b\\c\/d\b\f\n\r\t"', 'a"b\\c/d\b\f\n\r\t'),
        (r'"\u0041\u00e9\u65e5\ud83d\ude00"', "Aé日😀"),
        (r'"\uD83D\uDE00"', "😀"),
        ('"é日😀\x7f\u2028"', "é日😀\x7f\u2028"),
        (r'"<\u003c\u2028"', "<<\u2028"),
        (r'"\u0000"', "\0"),
        ('""', ""),
        ("null", None),
    ],
)
def test_strings(written: str, read: str | None) -> None:
    """Escapes of all kinds, characters of one to four bytes, and null."""
    assert fields_of(f'"uid":{written}').get("uid") == read == orjson.loads(written)


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'"\ud83dx"', "\ufffdx"),
        (r'"\ude00\ud83d"', "\ufffd\ufffd"),
        (r'"\ud83d\u0041"', "\ufffdA"),
        (r'"\ud83d\ud83d\ude00"', "\ufffd😀"),
        (r'"\ud83d"', "\ufffd"),
        ('"a\udcffb"', "a\ufffdb"),
        ('"\udce6\udc97"', "\ufffd"),
        ('"\udcc0\udc80"', "\ufffd\ufffd"),
    ],
)
def test_what_is_no_unicode_reads_as_replacement_characters(written: str, read: str) -> None:
    """Lone surrogates, and bytes (here as low surrogates) that are not UTF-8; also in keys."""
    assert fields_of(f'"uid":{written}')["uid"] == read
    assert fields_of(f'"labels":{{{written}:"x"}}')["labels"] == {read: "x"}


NO_STRINGS = [
    r'"\x"', r'"\u12g4"', r'"\u12"', '"\x01"', '"a\n"', '"\\', '"', "'a'", "5", "true", "{}", '["a"]', "nul", "nullx", "",
]  # fmt: skip


@pytest.mark.parametrize("written", NO_STRINGS)
def test_what_is_no_string_is_refused(written: str) -> None:
    """Where one is read: bad escapes, raw control characters, other types."""
    with pytest.raises(DecodeError):
        fields_of(f'"uid":{written}')


def test_a_raw_control_character_is_refused_also_in_a_string_that_is_known() -> None:
    """An escaped one is the same string, and is no excuse for the raw one; nor is having been asked for it."""
    decoder = new_decoder()
    read_watch(decoder, line("ADDED", new_pod("a", uid="x\x01y")))
    for name, text in (("b", "x\x01y"), ("c", "z\x01")):
        assert decoder.store.get("pod", "web", text) is None
        read_watch(decoder, line("ADDED", new_pod(name, uid=text)).replace(b"\\u0001", b"\x01"))
        assert errors(decoder)[0][:2] == (f"web/{name}", "a control character in a string")
    assert names(decoder, "a", "b", "c") == {"a"}


def port_of(written: str) -> Any:
    raw = '{"metadata":{"name":"n"},"spec":{"containers":[{"ports":[{"containerPort":' + written + "}]}]}}"
    return decode_object("pod", raw.encode())["spec"]["containers"][0]["ports"][0].get("containerPort")


INTEGERS = [
    "0", "-0", "80", "-1", "9007199254740993", "9223372036854775807", "18446744073709551615", "-9223372036854775808", " 7 ", "null",
]  # fmt: skip


@pytest.mark.parametrize("written", INTEGERS)
def test_integers_are_kept_as_they_are(written: str) -> None:
    """Up to the bounds of 64 bits, where floating point would fail; -0 is 0."""
    assert port_of(written) == orjson.loads(written)


NO_INTEGERS = [
    "1.0", "0.5", "1e3", "1E3", "-1.5", "0e0", "18446744073709551616", "-9223372036854775809", "99999999999999999999999",
    "01", "-", "-01", "00", "+1", "1x", "--1", "0x10", "NaN", '"80"', "true", "[1]", "{}", "1 2", "",
]  # fmt: skip


@pytest.mark.parametrize("written", NO_INTEGERS)
def test_what_is_no_integer_is_refused(written: str) -> None:
    """Fractions and exponents are another type, even of whole numbers; and so are numbers of more than 64 bits."""
    with pytest.raises(DecodeError):
        port_of(written)


@pytest.mark.parametrize("written", ["truex", "tru", "True", "1", '"true"', "[]", "fals"])
def test_what_is_no_truth_value_is_refused(written: str) -> None:
    """Only true, false and null are."""
    with pytest.raises(DecodeError):
        decode_object("endpointslice", f'{{"metadata":{{"name":"n"}},"endpoints":[{{"conditions":{{"ready":{written}}}}}]}}'.encode())


def test_the_last_of_equal_keys_replaces_the_earlier_one_whole() -> None:
    """Objects too, at any depth; an escaped key is the same key; the version as well."""
    raw = (
        b'{"metadata":{"name":"old","namespace":"old","labels":{"a":"1"},"resourceVersion":"7"},"status":{"phase":"x","podIP":"1"},'
        b'"spec":{"containers":[{"name":"one"},{"name":"two","ports":[{"containerPort":1}]}],"nodeName":"x"},'
        b'"status":{"conditions":[{"type":"Ready","status":"True"}]},"metadata":{"name":"n","labels":{"b":"1","b":"2","b":"3"}},'
        b'"\\u0073pec":{"containers":[{"name":"old","name":"three"}]},"status":{"phase":"y","phase":null}}'
    )
    assert decode_object("pod", raw) == {"metadata": {"name": "n", "labels": {"b": "3"}}, "spec": {"containers": [{"name": "three"}]}}
    decoder = new_decoder()
    read_watch(decoder, b'{"type":"ADDED","object":' + raw + b"}")
    assert decoder.resource_version == ""


def test_a_key_is_spelled_exactly() -> None:
    """Other cases, prefixes and longer keys are other keys."""
    raw = b'{"metadata":{"name":"n","Name":"x","nam":"x","names":"x","":"x","UID":"x"},"Status":{"phase":"x"},"status":{"podip":"x"}}'
    assert decode_object("pod", raw) == {"metadata": {"name": "n"}}


def test_pairs_are_sorted_and_each_key_is_there_once() -> None:
    """In any order of arrival, and many of them."""
    choose = random.Random(3)
    pairs = [(f"k{choose.randrange(300)}", str(number)) for number in range(1000)]
    raw = ",".join(f'"{key}":"{value}"' for key, value in pairs)
    labels = fields_of(f'"labels":{{{raw}}}')["labels"]
    assert labels == dict(pairs)
    assert list(labels) == sorted(dict(pairs))


def test_an_object_that_has_not_changed_is_known_again_whatever_its_spelling() -> None:
    """White space, escapes and fields that are not read make no change."""
    decoder = new_decoder()
    choose = random.Random(4)
    item = new_pod(labels={"a/b": "é", "c": "d"})
    read_watch(decoder, line("ADDED", item))
    for _ in range(100):
        pretty = json.dumps(item | {"unread": choose.random()}, indent=choose.choice((None, 1)), ensure_ascii=choose.random() < 0.5)
        read_watch(decoder, b'{"type":"MODIFIED","object":' + pretty.replace("\n", " ").encode() + b"}\n")
    assert decoder.store.counters("pod") == (1, 0, 0, 0)


def test_an_object_without_a_name_is_refused() -> None:
    """Absent, null, empty, or no metadata at all; and an empty namespace is none."""
    for raw in (b"{}", b'{"metadata":null}', b'{"metadata":{"name":""}}', b'{"metadata":{"name":null,"namespace":"x"}}'):
        with pytest.raises(DecodeError, match=r"metadata\.name is missing"):
            decode_object("pod", raw)
    assert decode_object("pod", b'{"metadata":{"name":"n","namespace":""}}') == {"metadata": {"name": "n"}}


@pytest.mark.parametrize(
    ("raw", "offset"),
    [
        (b"", 0), (b"x", 1), (b"[]", 0), (b'"x"', 3), (b"null", 4), (b'{"metadata":{"name":"n"}', 24), (b'{"metadata":{"name":"n"}}}', 25),
        (b'{"metadata":{"name":"n"}} x', 25), (b'{"metadata":{"name":"n"},}', 25), (b'{"metadata":{"name":"n"} "a":1}', 25),
        (b'{"metadata":{"name":"n"},"a" 1}', 29), (b'{"metadata":{"name":"n"},"a":}', 29), (b'{"metadata":{"name":n}}', 20),
        (b'{"metadata":[1]}', 12), (b'{"metadata":{"name":"n"},"spec":{"containers":{}}}', 46), (b'{,"metadata":{"name":"n"}}', 1),
        (b'{"metadata":{"name":"n"},"spec":{"containers":[{},]}}', 50), (b'{"metadata":{"name":"n","labels":{"a":1}}}', 38),
    ],
)  # fmt: skip
def test_an_error_is_told_with_its_offset(raw: bytes, offset: int) -> None:
    """The byte at which a value of that place cannot begin, or the end if there is none."""
    with pytest.raises(DecodeError) as caught:
        decode_object("pod", raw)
    assert caught.value.offset == offset


def test_an_unknown_kind_is_refused() -> None:
    """By name."""
    with pytest.raises(ValueError, match="'deployment'"):
        new_decoder("deployment")
    with pytest.raises(ValueError, match="'pods'"):
        decode_object("pods", b"{}")


def test_a_decoder_needs_a_store() -> None:
    """Nothing else will do, and nothing breaks."""
    with pytest.raises(TypeError):
        Decoder(None, "pod")  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Store(None)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        Decoder(Store(Symbols()), None)  # type: ignore[arg-type]


MEMORY = """
import resource
from tests.decoding import new_decoder
from tests.heart import new_pod
import orjson
item = orjson.dumps(new_pod("a") | {"unread": "x" * 20000})
decoder = new_decoder()
decoder.begin_list()
decoder.feed(b'{"items":[' + item)
piece = (b"," + item) * 10
def feed(times):
    for _ in range(times):
        for at in range(0, len(piece), 65536):
            decoder.feed(piece[at:at + 65536])
feed(5)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
feed(1000)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


def test_memory_is_one_object_and_not_the_list() -> None:
    """200 MB of list, in chunks, take less than 1 MB."""
    grown = subprocess.run([sys.executable, "-c", MEMORY], check=True, capture_output=True, cwd=Path(__file__).parents[1])
    assert int(grown.stdout) < 1000


def streams() -> Iterator[tuple[str, bytes, bool]]:
    for (kind, folder), items in RECORDED.items():
        yield kind, (WIRE / folder / f"list-{next(p for p, k in KINDS.items() if k == kind)}.json").read_bytes(), True
        yield kind, b"".join(line("MODIFIED", item) for item in items[:3]), False


def offset_of_failure(decoder: Decoder, raw: bytes, size: int, is_list: bool) -> int:
    """Where the stream ends the reading, or 0."""
    (decoder.begin_list if is_list else decoder.begin_watch)()
    try:
        for chunk in cut(raw, size):
            decoder.feed(chunk)
        if is_list:
            decoder.end_page()
            decoder.apply_list()
        else:
            decoder.end_watch()
    except DecodeError as error:
        return error.offset
    return 0


def test_mutated_streams_neither_crash_nor_hang() -> None:
    """Recordings with some bytes changed, in pieces of any size: objects, errors of the decoder, and nothing else."""
    choose = random.Random(6)
    for kind, body, is_list in streams():
        for _ in range(25):
            decoder = new_decoder(kind, limit=choose.choice((2000, 1 << 20)))
            raw = mutated(body, choose)
            assert 0 <= offset_of_failure(decoder, raw, choose.choice((0, 100, 4096)), is_list) <= len(raw)
            assert all(0 <= error.offset <= len(raw) for _, error in decoder.take_errors())
