"""`python -m fastdisco.synthetic`: prints one JSON line with the URL, and serves until a signal or the end of its standard input."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import gc
import os
import signal
import stat
import sys
from pathlib import Path

import orjson

from fastdisco.synthetic.cluster import Cluster, Sizes
from fastdisco.synthetic.server import SyntheticServer


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m fastdisco.synthetic", description=__doc__)
    parser.add_argument("--pods", type=int, default=1000, help="%(default)d unless given; the cluster is made to fit them")
    for name in ("nodes", "namespaces", "apps", "services", "ingresses"):
        parser.add_argument(f"--{name}", type=int, default=0, help="0: in proportion to the pods")
    parser.add_argument("--slice-size", type=int, default=100, help="endpoints of an endpoint slice, at most")
    parser.add_argument("--oddities", type=float, default=0.02, help="share of pods that do not simply run")
    parser.add_argument("--seed", type=int, default=0, help="the same seed gives the same cluster, byte for byte")
    parser.add_argument("--objects", default="", metavar="FILE", help="serve these objects: {plural: [object, ...]}")
    parser.add_argument("--history", type=int, default=20_000, help="events of each resource that a watch can ask for")
    parser.add_argument("--port", type=int, default=0, help="0: one that is free")
    parser.add_argument("--token", default="", help="require this bearer token")
    parser.add_argument("--cert-file", default="", help="serve TLS with this certificate")
    parser.add_argument("--key-file", default="", help="its key, unless it is in the same file")
    parser.add_argument("--bookmark-interval", type=float, default=60.0, metavar="SECONDS")
    parser.add_argument("--watch-seconds", type=float, default=0.0, metavar="SECONDS", help="the longest life of a watch")
    parser.add_argument("--no-watch-list", dest="watch_list", action="store_false", help="refuse initial events, as old servers do")
    parser.add_argument("--no-v1", dest="v1", action="store_false", help="serve no v1 of endpointslices and ingresses")
    parser.add_argument("--v1beta1", action="store_true", help="serve v1beta1 of endpointslices and ingresses, too")
    return parser


def _cluster(arguments: argparse.Namespace) -> Cluster:
    if not arguments.objects:
        names = ("pods", "nodes", "namespaces", "apps", "services", "ingresses", "slice_size", "oddities")
        sizes = Sizes(**{name: getattr(arguments, name) for name in names})
        return Cluster.make(sizes, seed=arguments.seed, history=arguments.history)
    objects = orjson.loads(Path(arguments.objects).read_bytes())
    if not isinstance(objects, dict) or not all(
        isinstance(items, list) and all(isinstance(one, dict) for one in items) for items in objects.values()
    ):
        raise ValueError(f"{arguments.objects}: must be {{plural: [object, ...]}}")
    return Cluster.of(objects, history=arguments.history)


def _read_stdin(stopped: asyncio.Event) -> None:
    if not os.read(0, 4096):
        stopped.set()


def _server(arguments: argparse.Namespace, cluster: Cluster) -> SyntheticServer:
    return SyntheticServer(
        cluster,
        token=arguments.token,
        bookmark_interval=arguments.bookmark_interval,
        watch_seconds=arguments.watch_seconds,
        watch_list=arguments.watch_list,
        v1=arguments.v1,
        v1beta1=arguments.v1beta1,
        cert_file=arguments.cert_file,
        key_file=arguments.key_file,
    )


async def _serve(arguments: argparse.Namespace, cluster: Cluster) -> int:
    loop = asyncio.get_running_loop()
    stopped = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopped.set)
    if stat.S_ISFIFO(os.fstat(0).st_mode):  # a parent holds the other end: its death must be ours
        loop.add_reader(0, _read_stdin, stopped)
    try:
        server = _server(arguments, cluster)
    except OSError as error:  # of ssl, too
        sys.stderr.write(f"cannot use the certificate of --cert-file {arguments.cert_file}: {error}\n")
        return 2
    try:
        await server.start(arguments.port)
    except OSError as error:
        sys.stderr.write(f"cannot listen on 127.0.0.1:{arguments.port}: {error}\n")
        return 2
    sys.stdout.write(orjson.dumps({"url": server.url, "pid": os.getpid()}).decode() + "\n")
    sys.stdout.flush()
    await stopped.wait()
    await server.close()
    return 0


def main() -> int:
    """Run the server; 2 for wrong usage."""
    parser = _parser()
    arguments = parser.parse_args()
    if arguments.key_file and not arguments.cert_file:
        parser.error("argument --key-file: needs --cert-file")
    try:
        cluster = _cluster(arguments)
    except (OSError, ValueError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    except KeyboardInterrupt:
        return 130
    gc.freeze()  # hundreds of thousands of entries that no collection needs to visit
    with contextlib.suppress(ImportError):
        from uvloop import EventLoopPolicy

        asyncio.set_event_loop_policy(EventLoopPolicy())
    return asyncio.run(_serve(arguments, cluster))


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # freeing a gigabyte of objects one by one would take a second
