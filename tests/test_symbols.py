"""Symbols: each string once, set aside when nothing owns it, taken back or swept; memory follows the live cluster, not its history."""

import random
import subprocess
import sys
import threading
from pathlib import Path

from fastdisco._core import Store, Symbols
from fastdisco._labels import Labels
from fastdisco._render import Renderer
from tests.decoding import new_decoder, read_list, read_watch
from tests.heart import Heart, line, list_body, new_pod

MANY = 5000  # more strings than are worth a sweep


def pods(generation: int, count: int) -> list[dict[str, object]]:
    return [new_pod(f"p{generation}-{number}", uid=f"u{generation}-{number}") for number in range(count)]


def labels_of(heart: Heart, role: str = "pod", profile: int = 0) -> list[Labels]:
    heart.settle()
    return [labels for part in heart.parts[role, profile].values() for _, labels in part]


def sweep(symbols: Symbols, budget: int = 1000) -> int:
    slices = 1
    while symbols.sweep(budget):
        slices += 1
    return slices


def resident() -> int:
    """Bytes of memory that this process has now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_each_string_is_there_once_for_all_stores() -> None:
    """Two stores over the same symbols share the strings of equal objects, also as Python objects."""
    symbols = Symbols()
    one, other = Heart(("pod", 0), symbols=symbols), Heart(("pod", 0), symbols=symbols)
    one.list("pod", pods(1, 100))
    labels_of(one)
    before = len(symbols)
    other.list("pod", pods(1, 100))
    first, second = labels_of(one)[0], labels_of(other)[0]
    assert len(symbols) == before == symbols.live
    assert first == second
    assert first["__meta_kubernetes_pod_uid"] is second["__meta_kubernetes_pod_uid"]


def test_strings_of_objects_that_are_gone_are_set_aside_and_taken_back() -> None:
    """Nothing is freed before a sweep, and what comes again before it is the same string."""
    symbols = Symbols()
    heart = Heart(symbols=symbols)
    heart.list("pod", pods(1, 100))
    full, aside = len(symbols), symbols.set_aside
    assert aside == 0
    heart.list("pod", [])
    assert len(symbols) == full
    assert symbols.set_aside >= 200
    heart.list("pod", pods(1, 100))
    assert (len(symbols), symbols.set_aside) == (full, 0)


def test_a_sweep_frees_what_is_set_aside() -> None:
    """And nothing else: what is left reads as before."""
    symbols = Symbols()
    heart = Heart(symbols=symbols)
    empty, held = len(symbols), symbols.bytes_held()
    heart.list("pod", pods(1, 100) + pods(2, 100))
    heart.list("pod", pods(2, 100))
    sweep(symbols)
    assert symbols.set_aside == 0
    assert heart.store.get("pod", "web", "p1-7") is None
    sweep(symbols)
    kept = heart.store.get("pod", "web", "p2-99")
    assert kept is not None
    assert kept["metadata"]["uid"] == "u2-99"
    heart.list("pod", [])
    sweep(symbols)
    assert (len(symbols), symbols.bytes_held()) == (empty, held)


def test_a_sweep_goes_in_slices_and_is_due_until_it_has_ended() -> None:
    """Each slice looks at as many strings as it may; what happens between slices is all right."""
    symbols = Symbols()
    heart = Heart(symbols=symbols)
    assert not symbols.due()
    heart.list("pod", pods(1, MANY))
    assert not symbols.due()
    heart.list("pod", pods(2, MANY))
    assert symbols.due()
    slices = 0
    while symbols.sweep(500):
        slices += 1
        assert symbols.due()
        heart.upsert("pods", new_pod(f"between-{slices}", uid=f"between-{slices}"))
        heart.delete("pods", new_pod(f"p2-{slices}"))
    assert slices >= 4 * MANY // 500
    assert not symbols.due()
    assert heart.store.objects("pod") == MANY
    sweep(symbols)
    for number in range(1, slices):
        found = heart.store.get("pod", "web", f"between-{number}")
        assert found is not None
        assert found["metadata"]["uid"] == f"between-{number}"


def test_no_string_is_freed_while_a_batch_is_open() -> None:
    """It holds bare numbers; closed, or dropped, it lets the sweep go on."""
    symbols = Symbols()
    heart = Heart(("pod", 0), symbols=symbols)
    heart.upsert("pods", new_pod("a", ip="192.0.2.200"))
    batch = heart.renderer.render()
    heart.delete("pods", new_pod("a"))
    aside = symbols.set_aside
    assert not symbols.sweep()
    assert symbols.set_aside == aside > 0
    [(_, [(_, labels)])] = batch.targets("pod", 0)
    assert labels["__address__"] == "192.0.2.200:80"
    batch.close()
    sweep(symbols)
    assert symbols.set_aside < aside
    other = heart.renderer.render()
    del other
    sweep(symbols)
    assert symbols.set_aside == 0


def test_memory_follows_the_live_cluster() -> None:
    """Thirty turnovers, each of all names, and rendered: as many strings, and no more memory."""
    symbols = Symbols()
    heart = Heart(("pod", 3), symbols=symbols)
    sizes, memory = [], []
    for generation in range(30):
        heart.list("pod", pods(generation, MANY))
        heart.settle()
        while symbols.due() and symbols.sweep():
            pass
        sizes.append(len(symbols))
        memory.append(resident())
    assert max(sizes[2:]) <= sizes[1] * 1.1
    assert memory[-1] <= memory[1] * 1.2


REUSE = """
from tests.decoding import *
from tests.heart import list_body, new_pod
decoder = new_decoder()
symbols = decoder.store.symbols
for size in {sizes}:
    for generation in range(3):
        read_list(decoder, list_body(new_pod(f"{{size}}-{{generation}}-{{i}}", uid=f"u{{size}}-{{generation}}-{{i}}") for i in range(size)))
        while symbols.sweep():
            pass
    assert decoder.store.objects("pod") == size
    assert all(decoder.store.get("pod", "web", f"{{size}}-2-{{i}}") for i in range(size))
print(len(symbols))
"""


def test_tables_that_empty_and_fill_again_stay_sound() -> None:
    """From many strings to almost none and back, at sizes around those at which tables grow; it ends, too."""
    choose = random.Random(1)
    sizes = [*range(10, 3000, 97), 3000, 0, 1, *range(40, 100), 0, *(choose.choice((0, 1, 30, 95, 400, 1500)) for _ in range(100))]
    command = [sys.executable, "-c", REUSE.format(sizes=sizes)]
    done = subprocess.run(command, check=True, capture_output=True, cwd=Path(__file__).parents[1], timeout=60)
    assert int(done.stdout) > 0


def test_a_table_that_was_swept_when_it_was_full_takes_new_strings() -> None:
    """Nearly all entries are those of strings that are gone when it is made anew, much smaller, and fills at once."""
    for full in range(1500, 1560, 2):
        decoder = new_decoder("namespace")
        read_list(decoder, list_body({"metadata": {"name": f"{full}-{number}"}} for number in range(full)))
        read_list(decoder, list_body([]))
        sweep(decoder.store.symbols)
        for number in range(400):
            read_watch(decoder, line("ADDED", {"metadata": {"name": f"new-{number}"}}))
        assert decoder.store.objects("namespace") == 400
        assert all(decoder.store.get("namespace", "", f"new-{number}") for number in range(400))


def test_labels_survive_their_object_their_job_and_their_store() -> None:
    """They own their strings, through sweeps and after everything else is gone."""
    symbols = Symbols()
    heart = Heart(("pod", 0), symbols=symbols)
    heart.list("pod", pods(1, 50))
    kept = labels_of(heart)
    read = [dict(labels) for labels in kept]
    heart.list("pod", pods(2, MANY))
    heart.settle()
    sweep(symbols)
    assert [dict(labels) for labels in kept] == read
    del heart, symbols
    assert [dict(labels) for labels in kept] == read
    assert kept[7]["__meta_kubernetes_pod_name"] == "p1-7"


def test_released_labels_give_their_strings_back() -> None:
    """The last of them, and then a sweep; a label name goes with the last key that makes it."""
    symbols = Symbols()
    heart = Heart(("pod", 0), symbols=symbols)
    heart.upsert("pods", new_pod("a", labels={"some.key": "some-value"}))
    kept = labels_of(heart)
    heart.delete("pods", new_pod("a"))
    heart.settle()
    sweep(symbols)
    with_labels = len(symbols)
    assert kept[0]["__meta_kubernetes_pod_label_some_key"] == "some-value"
    del kept
    sweep(symbols)
    assert len(symbols) < with_labels


def test_label_names_made_of_a_key_go_with_it() -> None:
    """A key whose number another one had before has its own names."""
    symbols = Symbols()
    heart = Heart(("pod", 0), symbols=symbols)
    for turn in range(50):
        labels = {f"key.{turn}-{number}": str(number) for number in range(turn % 7)}
        heart.upsert("pods", new_pod("a", labels=labels))
        [found] = labels_of(heart)
        prefix = "__meta_kubernetes_pod_label_"
        assert {name: value for name, value in found.items() if name.startswith(prefix)} == {
            f"{prefix}key_{turn}_{number}": str(number) for number in range(turn % 7)
        }
        del found
        heart.delete("pods", new_pod("a"))
        heart.settle()
        sweep(symbols)


def test_label_shapes_that_nobody_has_are_given_up() -> None:
    """Each pod has a key of its own, and there are always new ones: what is remembered of them has a bound."""
    symbols = Symbols()
    heart = Heart(("pod", 0), symbols=symbols)
    sizes = []
    for generation in range(8):
        heart.list("pod", [new_pod(f"p{number}", labels={f"key{generation}-{number}": "x"}) for number in range(2000)])
        assert len(labels_of(heart)) == 2000
        sweep(symbols)
        sizes.append(len(symbols))
    assert max(sizes[4:]) <= max(sizes[:4])


def test_labels_may_be_released_on_another_thread_while_the_store_goes_on() -> None:
    """Readers and releasers beside relists, rendering and sweeps; at the end everything is given back."""
    symbols = Symbols()
    heart = Heart(("pod", 0), symbols=symbols)
    handed: list[list[Labels]] = []
    wrong: list[str] = []
    ended = threading.Event()

    def release() -> None:
        while not ended.is_set() or handed:
            if handed:
                for labels in handed.pop():
                    name = labels["__meta_kubernetes_pod_name"]
                    if labels["__meta_kubernetes_pod_uid"] != name.replace("p", "u") or len(dict(labels)) != len(labels):
                        wrong.append(name)

    threads = [threading.Thread(target=release) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for generation in range(25):
            heart.list("pod", pods(generation, 300), budget=50)
            handed.append(labels_of(heart))
            symbols.sweep(300)
    finally:
        ended.set()
        sys.setswitchinterval(interval)
        for thread in threads:
            thread.join()
    assert not wrong
    heart.list("pod", [])
    heart.settle()
    sweep(symbols)
    sweep(symbols)
    unused = Symbols()
    Renderer(Store(unused))
    assert len(symbols) == len(unused)


def test_symbols_may_go_before_or_after_what_uses_them() -> None:
    """In any order of release."""
    symbols = Symbols()
    store = Store(symbols)
    renderer = Renderer(store)
    batch = renderer.render()
    del symbols, store, renderer
    batch.close()
    assert len(batch) == 0
