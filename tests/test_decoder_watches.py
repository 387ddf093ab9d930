"""Watches: events cut anywhere, bad lines, errors of the server, and the version at which to go on."""

import orjson
import pytest

from fastdisco.errors import DecodeError
from tests.decoding import errors, event, feed_all, names, new_decoder, read_list, read_watch, stored, versioned
from tests.fields import kept
from tests.heart import list_body, new_pod

NOT_ONE = "not one JSON object in a line"
INCOMPLETE = "an event without type or object"


@pytest.mark.parametrize("size", [0, 1, 13])
def test_events_change_the_store(size: int) -> None:
    """Added, modified, deleted; an unknown object that is deleted is nothing; white space and blank lines are nothing."""
    decoder = new_decoder()
    body = b"".join(
        [
            event("ADDED", versioned("10", "a")), b"\n", event("ADDED", versioned("11", "b")).replace(b'","', b'" , "'), b"  \r\n",
            event("MODIFIED", versioned("12", "c")), event("DELETED", versioned("13", "b")), event("DELETED", versioned("14", "unknown")),
            event("ADDED", versioned("15", "a")).replace(b"\n", b"\r\n"),
        ]
    )  # fmt: skip
    assert read_watch(decoder, body, size) == 6
    assert names(decoder, "a", "b", "c", "unknown") == {"a", "c"}
    assert decoder.store.counters("pod") == (3, 0, 1, 0)
    assert decoder.resource_version == "15"
    assert not decoder.take_errors()


def test_feed_counts_the_lines_that_ended() -> None:
    """Bookmarks and bad lines too, blank ones not."""
    decoder = new_decoder()
    decoder.begin_watch()
    lines = [event("ADDED", versioned("1")), b"\n", b"bad\n", event("BOOKMARK", {"metadata": {"resourceVersion": "2"}})]
    body = b"".join(lines)
    assert [decoder.feed(body[:5]), decoder.feed(body[5:-1]), decoder.feed(body[-1:])] == [0, 2, 1]
    assert decoder.end_watch() == 3


def test_a_last_line_without_newline_counts_if_it_is_whole() -> None:
    """At every byte: half a line is nothing, and no error."""
    whole = event("ADDED", versioned("5"))
    for end in range(len(whole) + 1):
        decoder = new_decoder()
        assert read_watch(decoder, whole[:end], 50) == (end >= len(whole) - 1)
        assert decoder.store.objects("pod") == (end >= len(whole) - 1)
        assert not decoder.take_errors()


def test_type_and_object_come_in_any_order() -> None:
    """With other fields between, escaped keys and types, and the last of equal keys."""
    item = orjson.dumps(versioned("5")).decode()
    for raw in (
        f'{{"object":{item},"type":"ADDED"}}',
        f'{{"x":[{{"type":"ERROR"}}],"type":"ADDED","y":null,"object":{item},"z":"\\"}}"}}',
        f'{{"type":"DELETED","object":{{"metadata":{{"name":"x"}}}},"object":{item},"type":"ADDED"}}',
        f' {{ "type" : "ADDED" , "object" : {item} }} ',
        f'{{"\\u0074ype":"ADDED","o\\u0062ject":{item}}}',
        f'{{"\\u0074ype":"ADD\\u0045D","object":{item}}}',
    ):
        decoder = new_decoder()
        assert read_watch(decoder, raw.encode() + b"\n") == 1
        assert names(decoder, "a") == {"a"}
        assert not decoder.take_errors()


@pytest.mark.parametrize(
    ("raw", "key", "reason"),
    [
        (b"x", None, NOT_ONE),
        (b"[]", None, NOT_ONE),
        (b'{"type":"ADDED"', None, NOT_ONE),
        (b'{"type":"ADDED"}{}', None, NOT_ONE),
        (b"{}", None, "expected a key"),
        (b'{"type":"ADDED"}', None, INCOMPLETE),
        (b'{"object":{}}', None, INCOMPLETE),
        (b'{"type":"ADDED","object":null}', None, INCOMPLETE),
        (b'{"type":5,"object":{}}', None, INCOMPLETE),
        (b'{"type":"ADDED","object":{}}', None, "metadata.name is missing"),
        (b'{"type":"DELETED","object":{"metadata":{}}}', None, "metadata.name is missing"),
        (b'{"type":"ADDED" "object":{}}', None, "expected , or }"),
        (b'{"type":"ADDED","object":{"metadata":{"name":"a","namespace":"web","uid":5}}}', "web/a", "expected a string"),
        (b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":5}}}', None, "expected a string"),
        (b'{"type":"A\\x","object":{}}', None, "an escape that JSON does not have"),
    ],
)
def test_a_bad_line_is_told_and_the_next_one_read(raw: bytes, key: str | None, reason: str) -> None:
    """With its offset in the stream; what was known stays as it was."""
    before, after = event("ADDED", versioned("5")), event("ADDED", versioned("7", "b"))
    decoder = new_decoder()
    assert read_watch(decoder, before + raw + b"\n" + after, 9) == 3
    [(found, told, offset)] = errors(decoder)
    assert (found, told) == (key, reason)
    assert len(before) <= offset <= len(before) + len(raw)
    assert names(decoder, "a", "b") == {"a", "b"}
    assert stored(decoder, [new_pod("a")]) == [kept("pod", new_pod("a"))]


def test_the_offset_of_a_last_line_without_newline() -> None:
    """Counts from the start of the stream as all others do."""
    before, bad = event("ADDED", versioned("5")), b'{"type":"ADDED","object":{"metadata":{"name":5}}}'
    decoder = new_decoder()
    read_watch(decoder, before + bad, 20)
    assert errors(decoder) == [(None, "expected a string", len(before) + bad.index(b"5}"))]


def test_a_bad_object_s_version_still_counts() -> None:
    """It has been seen, and the watch need not bring it again."""
    decoder = new_decoder()
    item = versioned("9") | {"status": []}
    read_watch(decoder, event("MODIFIED", item))
    assert errors(decoder)[0][0] == "web/a"
    assert decoder.resource_version == "9"


def test_deleted_objects_need_only_a_name() -> None:
    """Whatever else is wrong with them."""
    decoder = new_decoder()
    read_watch(decoder, event("ADDED", versioned("1")))
    read_watch(decoder, event("DELETED", {"metadata": {"name": "a", "namespace": "web", "labels": 5, "resourceVersion": "2"}, "spec": []}))
    assert names(decoder, "a") == set()
    assert not decoder.take_errors()
    assert decoder.resource_version == "2"


def test_unknown_types_are_counted_and_skipped() -> None:
    """Whatever their object is."""
    decoder = new_decoder()
    assert read_watch(decoder, event("ADDED ", {}) + event("added", versioned("9")) + event("", {"metadata": 5})) == 3
    assert decoder.unknown_events == 3
    assert (decoder.resource_version, decoder.store.objects("pod"), decoder.take_errors()) == ("", 0, [])


@pytest.mark.parametrize("size", [0, 1])
def test_errors_of_the_server_come_out_as_they_were_sent(size: int) -> None:
    """Byte by byte; they are neither objects nor bad lines."""
    status = b'{"kind":"Status" , "code":410,"message":"\\u00e9 \xc3\xa9","metadata":{"resourceVersion":"99"}}'
    decoder = new_decoder()
    assert read_watch(decoder, b'{"type":"ERROR","object":' + status + b"}\n" + event("ERROR", {"code": 500}), size) == 2
    assert decoder.take_statuses() == [status, b'{"code":500}']
    assert decoder.take_statuses() == []
    assert (decoder.resource_version, decoder.take_errors()) == ("", [])


def test_a_bookmark_only_moves_the_version() -> None:
    """With null where servers send null."""
    decoder = new_decoder()
    bookmark = {"metadata": {"name": "", "labels": None, "resourceVersion": "12", "creationTimestamp": None}, "spec": {"containers": None}}
    assert read_watch(decoder, event("BOOKMARK", {"kind": "Pod", **bookmark})) == 1
    assert decoder.resource_version == "12"
    assert (decoder.store.objects("pod"), decoder.take_errors()) == (0, [])


@pytest.mark.parametrize(
    ("before", "seen", "after"),
    [
        ("5", "6", "6"), ("6", "5", "6"), ("9", "10", "10"), ("10", "9", "10"), ("", "0", "0"), ("5", "", "5"), ("5", "5", "5"),
        ("99999999999999999999", "100000000000000000000", "100000000000000000000"), ("5", "x7", "x7"), ("x7", "5", "5"), ("x7", "x6", "x6"),
        ("5", "²", "²"),
    ],
)  # fmt: skip
def test_the_version_never_goes_back(before: str, seen: str, after: str) -> None:
    """As numbers of any length; where one is no number, the one that came last is the newest."""
    for change in ("ADDED", "MODIFIED", "DELETED", "BOOKMARK"):
        decoder = new_decoder()
        decoder.resource_version = before
        read_watch(decoder, event(change, versioned(seen)))
        assert decoder.resource_version == after


def test_an_object_of_an_older_version_is_taken_all_the_same() -> None:
    """At the start of a watch they come in any order."""
    decoder = new_decoder()
    decoder.resource_version = "100"
    read_watch(decoder, event("ADDED", versioned("7")))
    assert names(decoder, "a") == {"a"}


def test_a_version_is_a_string_as_others_are() -> None:
    """It may be escaped; a raw control character makes the object bad."""
    decoder = new_decoder()
    read_watch(decoder, event("ADDED", versioned("x")).replace(b'"x"', b'"\\u0031\\u0032"'))
    assert decoder.resource_version == "12"
    read_watch(decoder, event("ADDED", versioned("13", "b")).replace(b'"13"', b'"13\x01"'))
    assert (decoder.resource_version, names(decoder, "a", "b")) == ("12", {"a"})
    assert errors(decoder)[0][1] == "a control character in a string"


def test_only_a_bookmark_that_goes_back_tells_of_a_rewound_server() -> None:
    """Events come in any order at the start of a watch; the next watch begins anew."""
    decoder = new_decoder()
    decoder.resource_version = "100"
    read_watch(decoder, event("ADDED", versioned("50")) + event("BOOKMARK", {"metadata": {"resourceVersion": "100"}}))
    assert not decoder.rewound
    read_watch(decoder, event("BOOKMARK", {"metadata": {"resourceVersion": "99"}}))
    assert decoder.rewound
    assert decoder.resource_version == "100"
    decoder.begin_watch()
    assert not decoder.rewound


def test_a_list_sets_the_version_even_back() -> None:
    """It is the whole truth, wherever the server stands now."""
    decoder = new_decoder()
    decoder.resource_version = "100"
    read_list(decoder, list_body([], "7"))
    assert decoder.resource_version == "7"


@pytest.mark.parametrize("size", [0, 1, 100])
def test_a_line_above_the_limit_ends_the_watch(size: int) -> None:
    """With or without its newline; and one that is just within it does not."""
    whole = event("ADDED", versioned("1"))
    for body in (whole, whole[:-1] + b"x" * 100):
        decoder = new_decoder(limit=len(whole) - 2)
        decoder.begin_watch()
        with pytest.raises(DecodeError, match=f"above {len(whole) - 2} bytes"):
            feed_all(decoder, body, size)
        assert decoder.end_watch() == 0
    decoder = new_decoder(limit=len(whole) - 1)
    assert read_watch(decoder, whole * 2, size) == 2
    assert not decoder.take_errors()


def test_a_watch_begins_anew() -> None:
    """Half a line of the one before is forgotten, and its lines are not counted."""
    decoder = new_decoder()
    decoder.begin_watch()
    decoder.feed(event("ADDED", versioned("1", "c")) + event("ADDED", versioned("1"))[:50])
    assert read_watch(decoder, event("ADDED", versioned("2", "b"))) == 1
    assert names(decoder, "a", "b") == {"b"}


def test_feeding_without_a_beginning_is_a_mistake() -> None:
    """Of the program, not of the server."""
    decoder = new_decoder()
    for end in (decoder.abort_list, decoder.end_watch):
        with pytest.raises(RuntimeError):
            decoder.feed(b"{}")
        end()
