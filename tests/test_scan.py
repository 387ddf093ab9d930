"""The scanner, seen through the decoder: where values and strings end, by each kernel, whatever the place in a block of 64 bytes."""

import random
from collections.abc import Iterator

import orjson
import pytest

from fastdisco._core import Store, Symbols
from fastdisco._json import Decoder
from fastdisco.errors import DecodeError
from tests.heart import kernels, list_body

BLOCK = 64
NASTY = [
    "", "x", '"', "\\", "\\\\", '\\"', '"\\', "{", "}", "[]", '"}]}', '{"a":"b"}', "]]]]", '\\\\\\"\\', '"' * 70, "\\" * 70, "{[" * 40,
    "日本\U0001f600é", "\n\t\u2028\x7f", ",:,:", "\\u0022",
]  # fmt: skip


def plain_ends(body: bytes, depth_of_items: int = 2) -> list[int]:
    """Where items end, by reading every byte once and remembering nothing else than depth, string and escape."""
    ends, depth, in_string, escaped = [], 0, False, False
    for at, byte in enumerate(body):
        if byte == ord('"') and not escaped:
            in_string = not in_string
        escaped = byte == ord("\\") and not escaped
        if not in_string and byte in b"{[":
            depth += 1
        elif not in_string and byte in b"}]":
            depth -= 1
            if depth == depth_of_items:
                ends.append(at)
    return ends


def new_decoder(kernel: str) -> Decoder:
    decoder = Decoder(Store(Symbols()), "namespace", kernel=kernel)
    decoder.begin_list()
    return decoder


def item(padding: int, text: str, skipped: object = None) -> bytes:
    """An object whose strings are moved along by the padding, in a label that is read and in a field that is not."""
    return orjson.dumps({"spec": ["p" * padding, text, skipped], "metadata": {"name": "n", "labels": {"before": text, text: "x"}}})


def noise(choose: random.Random, length: int) -> bytes:
    return bytes(choose.choices(b'\\"{}[]a,:\xc3', weights=[4, 4, 2, 1, 2, 1, 6, 1, 1, 1], k=length))


@pytest.fixture(params=kernels())
def kernel(request: pytest.FixtureRequest) -> str:
    name: str = request.param
    return name


def labels_of(decoder: Decoder) -> dict[str, str]:
    found = decoder.store.get("namespace", "", "n")
    assert found is not None
    labels: dict[str, str] = found["metadata"]["labels"]
    return labels


def test_this_processor_has_a_fast_kernel_and_the_plain_one() -> None:
    """The plain one is everywhere; what there is not is refused by name."""
    assert kernels()[-1] == "scalar"
    with pytest.raises(ValueError, match="no kernel 'mmx'"):
        Decoder(Store(Symbols()), "pod", kernel="mmx")


def test_an_item_ends_where_a_plain_reading_ends_it(kernel: str) -> None:
    """Byte by byte, with nasty strings at every offset in a block."""
    for padding in range(BLOCK):
        for text in NASTY[padding % 3 :: 3]:
            body = list_body([item(padding, text), item(1, text)])
            decoder = new_decoder(kernel)
            ends = [at for at in range(len(body)) if decoder.feed(body[at : at + 1])]
            assert ends == [end for end in plain_ends(body) if end > body.index(b"items")]
            assert labels_of(decoder) == {"before": text, text: "x"}
            assert not decoder.take_errors()


def test_strings_come_out_whole_at_every_offset_in_a_block(kernel: str) -> None:
    """In one piece, as it is with large chunks."""
    decoder = new_decoder(kernel)
    decoder.feed(b'{"items":[')
    for padding in range(2 * BLOCK):
        for text in NASTY:
            assert decoder.feed(item(padding, text, [text, {text: text}])) == 1
            assert labels_of(decoder) == {"before": text, text: "x"}
            decoder.feed(b",")
    assert not decoder.take_errors()


def test_an_item_may_be_cut_at_every_byte(kernel: str) -> None:
    """Two pieces, with the first byte of the item at every offset of the first piece's blocks."""
    for padding in (0, 1, 31, 62, 63):
        for text in NASTY:
            body = list_body([item(padding, text)])
            for at in range(0, len(body), 1 if padding == 0 else 7):
                decoder = new_decoder(kernel)
                assert decoder.feed(body[:at]) + decoder.feed(body[at:]) == 1
                assert labels_of(decoder) == {"before": text, text: "x"}


@pytest.mark.parametrize("quoted", [False, True])
def test_runs_of_backslashes_of_every_length(kernel: str, quoted: bool) -> None:
    """Odd and even ones, ended by a quote that is escaped or not, at the edges of blocks, whole and cut inside the run."""
    decoder = new_decoder(kernel)
    decoder.feed(b'{"items":[')
    for run in range(140):
        for padding in (0, 1, *range(BLOCK - 2 - run % BLOCK, BLOCK + 2 - run % BLOCK)):
            text = "\\" * run + '"}]' * quoted
            raw = item(max(padding, 0), text)
            at = raw.index(b"\\") + run if run else 5
            decoder.feed(raw[:at])
            assert decoder.feed(raw[at:]) == 1
            assert labels_of(decoder) == {"before": text, text: "x"}
            decoder.feed(b",")


def test_noise_ends_where_a_plain_reading_ends_it(kernel: str) -> None:
    """What is no JSON at all: strings and brackets are told apart all the same, and it is one bad item."""
    choose = random.Random(1)
    for _ in range(1500):
        body = b'{"items":[{' + noise(choose, choose.choice((20, 70, 300)))
        ends = plain_ends(body)
        decoder = new_decoder(kernel)
        size = choose.choice((1, 3, 64, 1000))
        end = next((at + size for at in range(0, len(body), size) if fed(decoder, body[at : at + size])), None)
        assert end is None if not ends else end is not None and end - size <= ends[0] < end


def fed(decoder: Decoder, chunk: bytes) -> bool:
    """Whether the item ended here, with or without an error in what follows it."""
    try:
        return decoder.feed(chunk) > 0
    except DecodeError:
        return True


def skipped_values(choose: random.Random, depth: int) -> object:
    if depth == 0 or choose.random() < 0.3:
        return choose.choice([*NASTY, None, True, -1.5e9, 12])
    inside = [skipped_values(choose, depth - 1) for _ in range(choose.randrange(4))]
    return inside if choose.random() < 0.5 else {choose.choice(NASTY) + str(at): one for at, one in enumerate(inside)}


def skipping() -> Iterator[object]:
    choose = random.Random(2)
    for _ in range(400):
        yield skipped_values(choose, 6)
    yield [[[[]]]] * 100
    nested: object = []
    for _ in range(200):
        nested = [nested, {"": nested}] if choose.random() < 0.03 else [nested]
    yield nested


def test_whatever_is_skipped_ends_at_its_own_bracket(kernel: str) -> None:
    """Generated values of any depth before, between and after what is read."""
    decoder = new_decoder(kernel)
    decoder.feed(b'{"items":[')
    for number, value in enumerate(skipping()):
        text = str(number)
        raw = orjson.dumps({"x": value, "metadata": {"y": value, "name": "n", "managedFields": value, "labels": {"l": text}}, "z": value})
        assert decoder.feed(raw) == 1
        assert labels_of(decoder) == {"l": text}
        decoder.feed(b",")
    assert not decoder.take_errors()


@pytest.mark.parametrize("size", [1000, 5000, 1 << 16, 1 << 30])
def test_each_byte_is_scanned_once(size: int) -> None:
    """However objects are cut: what is left of a block at the end of a piece is done again, and nothing else."""
    items = [{"metadata": {"name": f"n{number}"}, "spec": ["x" * 70] * count} for number, count in enumerate((1, 10_000, 3, 20_000, 1, 1))]
    body = list_body(items)
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    for kernel in kernels():
        decoder = new_decoder(kernel)
        for piece in pieces:
            decoder.feed(piece)
        decoder.end_page()
        copied = sum(len(piece) // (1 << 14) + 2 for piece in pieces)  # a piece of an object that was begun before is copied bit by bit
        assert len(body) // BLOCK <= decoder.blocks_scanned + 2 * len(items)
        assert decoder.blocks_scanned <= len(body) // BLOCK + copied + 2 * len(items)
