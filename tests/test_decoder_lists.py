"""Lists: cut anywhere, of one page or more, first ones and later ones, bad ones; and objects loaded beside them."""

import random

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder
from fastdisco.errors import DecodeError
from tests.decoding import bad_item, errors, feed_all, names, new_decoder, read_list, read_watch, stored
from tests.fields import kept
from tests.heart import Object, cut, line, list_body, new_pod


def test_a_list_may_come_in_any_buffer() -> None:
    """bytes, bytearray and memoryview, and empty ones."""
    decoder = new_decoder()
    body = list_body([new_pod("a"), new_pod("b")])
    decoder.begin_list()
    fed = [decoder.feed(chunk) for chunk in (b"", bytearray(body[:100]), memoryview(body)[100:300], memoryview(b""), body[300:])]
    assert sum(fed) == 2
    assert decoder.end_page() == ("1", "")
    decoder.begin_list()
    with pytest.raises(TypeError):
        decoder.feed("text")  # type: ignore[arg-type]


@pytest.mark.parametrize("size", [0, 1, 7])
@pytest.mark.parametrize(
    ("body", "found"),
    [
        (b'{"metadata":{"resourceVersion":"5"},"items":[]}', ("5", "")),
        (b'{"metadata":{"resourceVersion":"5"},"items":null}', ("5", "")),
        (b'{"kind":"PodList","metadata":{"resourceVersion":"5"}}', ("5", "")),
        (b'{"kind":"List","metadata":{"resourceVersion":"5"},"items":[]}', ("5", "")),
        (b'{"items":[],"metadata":{"continue":"c\\u003d","resourceVersion":"5","remainingItemCount":7}}', ("5", "c=")),
        (b' \n{ "items" : [ ] , "metadata" : { "resourceVersion" : "5" } } \r\n', ("5", "")),
        (b'{"items":[],"metadata":{"resourceVersion":"5","selfLink":"\\"}]"},"x":"\\\\","y":[{}],"z":-1.5e3}', ("5", "")),
        (b'{"\\u0069tems":null,"metada\\u0074a":{"resourceVersion":"5"},"a\\"b":true}', ("5", "")),
        (b'{"items":[],"metadata":{"resourceVersion":"5"},"metadata":null}', ("", "")),
        (b'{"items":[],"metadata":{"resourceVersion":null,"continue":null}}', ("", "")),
        (b'{"items":[]}', ("", "")),
    ],
)
def test_what_a_list_may_look_like(body: bytes, found: tuple[str, str], size: int) -> None:
    """Keys in any order, no items in three ways, white space, other fields; without a version it says so."""
    decoder = new_decoder()
    assert read_list(decoder, body, size) == found
    assert decoder.resource_version == found[0]
    assert decoder.listed
    assert not decoder.take_errors()


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"metadata":{"resourceVersion":"11"}}',
        b'{"kind":"Status","metadata":{"resourceVersion":"11"},"status":"Failure","code":500}',
        b'{"kind":"NodeList","metadata":{"resourceVersion":"11"},"items":[]}',
        b'{"kind":"NodeList","metadata":{"resourceVersion":"11"},"items":[{"metadata":{"name":"n"}}]}',
        b'{"items":[],"metadata":{"resourceVersion":"11"},"kind":"ServiceList"}',
    ],
)
def test_what_is_no_list_of_these_objects_removes_none(body: bytes) -> None:
    """An answer that merely looks successful, such as a Status with 200, is an error, and nothing of it gets into the store."""
    decoder = new_decoder()
    read_list(decoder, list_body([new_pod("a")]))
    with pytest.raises(DecodeError, match="expected a "):
        read_list(decoder, body)
    decoder.abort_list()
    assert names(decoder, "a") == {"a"}
    assert decoder.store.objects("pod") == 1


@pytest.mark.parametrize("size", [1, 3, 64, 1000])
def test_an_object_may_be_loaded_at_any_moment_of_a_list(size: int) -> None:
    """Also in the middle of an item that straddles chunks: neither harms the other."""
    body = list_body([new_pod("a", labels={"note": "x" * 300}), new_pod("b")])
    for place in range(0, len(body), max(size, 7)):
        decoder = new_decoder()
        decoder.begin_list()
        feed_all(decoder, body[:place], size)
        decoder.load(orjson.dumps(new_pod("loaded", labels={"note": "y" * 2000})))
        feed_all(decoder, body[place:], size)
        assert decoder.end_page() == ("1", "")
        assert not decoder.apply_list()
        assert not decoder.take_errors()
        assert {"a", "b"} <= names(decoder, "a", "b", "loaded")


def test_of_an_object_that_a_list_has_twice_the_last_one_counts() -> None:
    """Also if that is what the store has already."""
    decoder = new_decoder()
    first, second = new_pod("a", labels={"note": "1"}), new_pod("a", labels={"note": "2"})
    for pair in ([first], [second, first], [first, second], [second, first]):
        read_list(decoder, list_body(pair))
        assert stored(decoder, [pair[-1]]) == [kept("pod", pair[-1])]


@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize(
    ("body", "offset"),
    [
        (b"x", 0), (b"[]", 0), (b'"a"', 0), (b"null", 0), (b"\xef\xbb\xbf{}", 0), (b"{x", 1), (b'{"a"}', 4), (b'{"a":}', 5),
        (b'{"a":1 2}', 7), (b'{"a":1,}', 7), (b'{"a":[1]]', 8), (b"{,}", 1), (b"{}{}", 2), (b"{} x", 3), (b'{"a":1}\0', 7),
        (b'{"a":"x" "b":1}', 9), (b'{"items":[{"metadata":{"name":"n"}},]}', 36), (b'{"items":[,]}', 10),
        (b'{"items":[{"metadata":{"name":"n"}}{}]}', 35), (b'{"items":[{"metadata":{"name":"n"}} x]}', 36), (b'{"items":[null]}', 10),
        (b'{"items":[1]}', 10), (b'{"items":[]x}', 11), (b'{"items":"x"}', 9), (b'{"items":{}}', 9), (b'{"items":true}', 9),
        (b'{"items":0}', 9), (b'{"items":nul}', 12), (b'{"items":nullx}', 14), (b'{"metadata":"x"}', 12), (b'{"metadata":[]}', 12),
        (b'{"metadata":1}', 12), (b'{"items":[}', 10),
    ],
)  # fmt: skip
def test_a_body_in_which_items_cannot_be_told_apart_is_refused(body: bytes, offset: int, size: int) -> None:
    """With the offset of the byte that does not belong there; nothing more is taken, and the list has no end."""
    decoder = new_decoder()
    decoder.begin_list()
    with pytest.raises(DecodeError) as caught:
        feed_all(decoder, body, size)
    assert caught.value.offset == offset
    with pytest.raises(RuntimeError):
        decoder.feed(b"{}")
    with pytest.raises(DecodeError):
        decoder.end_page()
    assert not decoder.listed


def test_a_body_that_is_cut_short_is_refused_wherever_it_ends() -> None:
    """At every byte; whole objects before that are kept."""
    body = list_body([new_pod("a"), new_pod("b")])
    for end in range(len(body)):
        decoder = new_decoder()
        decoder.begin_list()
        decoder.feed(body[:end])
        with pytest.raises(DecodeError, match="ends before its last bracket") as caught:
            decoder.end_page()
        assert caught.value.offset == end
        decoder.abort_list()
    assert names(decoder, "a", "b") == {"a", "b"}


@pytest.mark.parametrize("raw", [b'{"resourceVersion":5}', b'{"continue":[]}', b'{"resourceVersion":tru}', b'{"resourceVersion":"\xff"}'])
def test_metadata_of_a_list_that_is_not_valid_fails_the_list(raw: bytes) -> None:
    """Its version is never guessed."""
    decoder = new_decoder()
    with pytest.raises(DecodeError):
        read_list(decoder, b'{"items":[],"metadata":' + raw + b"}")
    assert decoder.resource_version == ""


@pytest.mark.parametrize("size", [0, 1, 64])
def test_a_bad_item_among_good_ones_is_told_and_skipped(size: int) -> None:
    """With its key and the offset of its fault in the body; without a key if it has none that can be read."""
    nameless = b'{"metadata":{"namespace":"web"}}'
    broken = b'{"metadata":{"name":"x",}}'
    wrong_labels = b'{"metadata":{"name":"l","labels":{"a":[1]}}}'
    body = list_body([new_pod("a"), bad_item("bad"), nameless, broken, wrong_labels, b"[1]", new_pod("b")])
    decoder = new_decoder()
    assert read_list(decoder, body, size) == ("1", "")
    assert names(decoder, "a", "b", "bad") == {"a", "b"}
    assert errors(decoder) == [
        ("web/bad", "expected a string", body.index(b'"podIP":5') + 8),
        (None, "metadata.name is missing", body.index(nameless) + len(nameless)),
        (None, "expected a key", body.index(broken) + 24),
        ("l", "expected a string", body.index(wrong_labels) + 38),
        (None, "expected an object", body.index(b",[1],") + 1),
    ]
    assert errors(decoder) == []
    assert decoder.list_counts == (2, 0, 0)


def test_pages_make_one_list() -> None:
    """Their items come together; the last page's version counts."""
    decoder = new_decoder()
    decoder.begin_list()
    decoder.feed(list_body([new_pod("a")], "8", "next"))
    assert decoder.end_page() == ("8", "next")
    decoder.begin_page()
    decoder.feed(list_body([new_pod("b")], "9"))
    assert decoder.end_page() == ("9", "")
    assert not decoder.apply_list()
    assert decoder.list_counts == (2, 0, 0)
    assert names(decoder, "a", "b") == {"a", "b"}


@pytest.mark.parametrize("size", [0, 1, 100])
def test_an_item_above_the_limit_fails_the_list(size: int) -> None:
    """And one that is just within it does not."""
    item = orjson.dumps(new_pod("a"))
    decoder = new_decoder(limit=len(item))
    read_list(decoder, list_body([item]), size)
    assert names(decoder, "a") == {"a"}
    with pytest.raises(DecodeError, match=f"an object above {len(item) - 1} bytes"):
        read_list(new_decoder(limit=len(item) - 1), list_body([item]), size)


def test_the_limit_is_for_one_item_and_not_for_the_list() -> None:
    """A large list of small items, in one chunk."""
    item = orjson.dumps(new_pod("a"))
    decoder = new_decoder(limit=len(item))
    decoder.begin_list()
    assert decoder.feed(list_body([item] * 1000)) == 1000


def test_a_key_or_string_above_the_limit_fails_the_list() -> None:
    """They are held as items are."""
    for body in (b'{"' + b"x" * 2000, b'{"a":"' + b"x" * 2000):
        with pytest.raises(DecodeError, match="above 1000 bytes"):
            read_list(new_decoder(limit=1000), body)


# Lists after the first.


def start_list(decoder: Decoder, *items: Object | bytes, version: str = "2") -> None:
    decoder.begin_list()
    decoder.feed(list_body(items, version))
    decoder.end_page()


def test_the_first_list_goes_into_the_store_as_it_comes() -> None:
    """Its objects are there before it has ended."""
    decoder = new_decoder()
    decoder.begin_list()
    decoder.feed(list_body([new_pod("a")])[:-2])
    assert names(decoder, "a") == {"a"}
    assert not decoder.listed


def test_a_later_list_changes_nothing_before_it_is_applied() -> None:
    """And is applied in slices: upserts, then removals."""
    decoder = new_decoder()
    read_list(decoder, list_body([new_pod(f"old{i}") for i in range(20)] + [new_pod("same"), new_pod("changed", uid="1")]))
    start_list(decoder, new_pod("same"), new_pod("changed", uid="2"), *(new_pod(f"new{i}") for i in range(20)))
    old, new = [f"old{i}" for i in range(20)], [f"new{i}" for i in range(20)]
    assert names(decoder, *old, *new) == set(old)
    assert decoder.list_counts == (20, 2, 0)
    seen = []
    while decoder.apply_list(3):
        seen.append((len(names(decoder, *old)), len(names(decoder, *new))))
    assert all(old_left == 20 or new_there == 20 for old_left, new_there in seen)
    assert len(seen) > 7
    assert names(decoder, *old, *new, "same") == {*new, "same"}
    assert stored(decoder, [new_pod("changed")]) == [kept("pod", new_pod("changed", uid="2"))]
    assert decoder.list_counts == (20, 2, 20)
    assert decoder.store.counters("pod")[:3] == (42, 2, 20)
    assert decoder.store.objects("pod") == 22


def test_a_list_that_is_aborted_is_forgotten() -> None:
    """What it had is neither there nor gone, and the next list is as if it had never been."""
    decoder = new_decoder()
    read_list(decoder, list_body([new_pod("a"), new_pod("b")]))
    for part in (0.3, 0.7, 1.0):
        decoder.begin_list()
        body = list_body([new_pod("a", uid="other"), new_pod("c")])
        decoder.feed(body[: int(len(body) * part)])
        decoder.abort_list()
    assert names(decoder, "a", "b", "c") == {"a", "b"}
    assert stored(decoder, [new_pod("a")]) == [kept("pod", new_pod("a"))]
    read_list(decoder, list_body([new_pod("b")]))
    assert names(decoder, "a", "b", "c") == {"b"}
    assert decoder.list_counts == (0, 1, 1)


@pytest.mark.parametrize("aborted", [True, False])
def test_a_first_list_that_failed_half_way_leaves_nothing_that_is_gone(aborted: bool) -> None:
    """What it had put into the store is removed if the list that comes through has it no more."""
    decoder = new_decoder()
    decoder.begin_list()
    decoder.feed(list_body([new_pod("a"), new_pod("b")])[:-2])
    with pytest.raises(DecodeError):
        decoder.end_page()
    if aborted:
        decoder.abort_list()
    assert names(decoder, "a", "b") == {"a", "b"}
    read_list(decoder, list_body([new_pod("b"), new_pod("c")]))
    assert names(decoder, "a", "b", "c") == {"b", "c"}
    assert decoder.listed


def test_a_first_list_removes_what_came_before_it_and_is_gone() -> None:
    """By a watch or a direct load."""
    decoder = new_decoder()
    read_watch(decoder, line("ADDED", new_pod("a")) + line("ADDED", new_pod("b")))
    decoder.load(orjson.dumps(new_pod("c")))
    read_list(decoder, list_body([new_pod("b")]))
    assert names(decoder, "a", "b", "c") == {"b"}


def test_a_bad_item_keeps_the_object_that_it_was() -> None:
    """With a known key just this one; others that are gone are removed."""
    decoder = new_decoder()
    read_list(decoder, list_body([new_pod("a"), new_pod("bad"), new_pod("gone")]))
    read_list(decoder, list_body([new_pod("a"), bad_item("bad")]))
    assert names(decoder, "a", "bad", "gone") == {"a", "bad"}
    assert stored(decoder, [new_pod("bad")]) == [kept("pod", new_pod("bad"))]
    assert decoder.list_counts == (0, 1, 1)


def test_with_a_bad_item_of_unknown_key_nothing_is_removed_until_the_next_good_list() -> None:
    """It might have been any of them."""
    decoder = new_decoder()
    read_list(decoder, list_body([new_pod("a"), new_pod("gone")]))
    read_list(decoder, list_body([new_pod("a", uid="2"), new_pod("b"), b'{"metadata":{}}']))
    assert names(decoder, "a", "b", "gone") == {"a", "b", "gone"}
    assert decoder.list_counts == (1, 1, 0)
    read_list(decoder, list_body([new_pod("a")]))
    assert names(decoder, "a", "b", "gone") == {"a"}


def test_a_list_removes_only_what_its_own_watcher_has() -> None:
    """Objects of another watcher, of the same kind or another one, stay."""
    store = Store(Symbols())
    web, db, nodes = Decoder(store, "pod"), Decoder(store, "pod"), Decoder(store, "node")
    read_list(web, list_body([new_pod("a"), new_pod("b")]))
    read_list(db, list_body([new_pod("a", "db")]))
    read_list(nodes, list_body([{"metadata": {"name": "a"}}]))
    read_list(web, list_body([]))
    assert (store.objects("pod"), store.objects("node")) == (1, 1)
    assert store.get("pod", "db", "a") is not None
    assert web.list_counts == (0, 0, 2)


@pytest.mark.parametrize(("first", "second"), [(1, 2), (2, 1), (1, 3), (3, 1)])
def test_an_object_that_comes_to_another_watcher_is_that_one_s(first: int, second: int) -> None:
    """Whoever saw it last can remove it, even if it had not changed; whatever the number of lists that each has had."""
    store = Store(Symbols())
    one, other = Decoder(store, "pod"), Decoder(store, "pod")
    for _ in range(first):
        read_list(one, list_body([new_pod("a")]))
    for _ in range(second):
        read_list(other, list_body([]))
    read_watch(other, line("MODIFIED", new_pod("a")))
    read_list(one, list_body([]))
    assert store.objects("pod") == 1
    read_list(other, list_body([]))
    assert store.objects("pod") == 0


@settings(deadline=None, max_examples=100)
@given(st.randoms(use_true_random=False))
def test_lists_and_events_in_any_order_leave_what_the_last_ones_say(choose: random.Random) -> None:
    """Against a dict: lists whole or aborted at any byte, applied in slices, and events between them."""
    decoder = new_decoder()
    truth: dict[str, str] = {}
    candidates = [f"p{i}" for i in range(12)]
    for _ in range(30):
        if choose.random() < 0.4:
            name, uid = choose.choice(candidates), choose.choice("xyz")
            if choose.random() < 0.3:
                read_watch(decoder, line("DELETED", new_pod(name)))
                truth.pop(name, None)
            else:
                read_watch(decoder, line("MODIFIED", new_pod(name, uid=uid)))
                truth[name] = uid
            continue
        wanted = {name: choose.choice("xyz") for name in choose.sample(candidates, choose.randrange(12))}
        body = list_body(new_pod(name, uid=uid) for name, uid in wanted.items())
        decoder.begin_list()
        end = len(body) if choose.random() < 0.7 else choose.randrange(len(body))
        done = sum(decoder.feed(chunk) for chunk in cut(body[:end], choose.choice((0, 10, 100))))
        if end == len(body):
            decoder.end_page()
            while decoder.apply_list(choose.choice((1, 3, 1000))):
                pass
            truth = wanted
        else:
            decoder.abort_list()
            if not decoder.listed:
                truth |= dict([*wanted.items()][:done])
        assert decoder.store.objects("pod") == len(truth)
        assert stored(decoder, [new_pod(name) for name in truth]) == [kept("pod", new_pod(name, uid=uid)) for name, uid in truth.items()]


# Objects loaded one by one.


def test_a_loaded_object_lives_until_the_watch_tells() -> None:
    """An object that the watch has delivered is not replaced by an older one; a list that does not have it removes it."""
    decoder = new_decoder()
    read_list(decoder, list_body([new_pod("a")]))
    decoder.load(orjson.dumps(new_pod("b", uid="loaded")) + b"\n")
    decoder.load(orjson.dumps(new_pod("a", uid="older")))
    assert stored(decoder, [new_pod("a"), new_pod("b")]) == [kept("pod", new_pod("a")), kept("pod", new_pod("b", uid="loaded"))]
    read_watch(decoder, line("ADDED", new_pod("b")))
    assert stored(decoder, [new_pod("b")]) == [kept("pod", new_pod("b"))]
    decoder.load(orjson.dumps(new_pod("c")))
    read_list(decoder, list_body([new_pod("a"), new_pod("b")]))
    assert names(decoder, "a", "b", "c") == {"a", "b"}


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"{}", b'{"metadata":{"name":"x"}} {}', b'{"metadata":{"name":5}}'])
def test_a_body_that_is_no_object_is_not_loaded(body: bytes) -> None:
    """And says why."""
    decoder = new_decoder()
    with pytest.raises(DecodeError):
        decoder.load(body)
    assert decoder.store.objects("pod") == 0
