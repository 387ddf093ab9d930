"""What the server writes down: every request, what is in flight, and the sockets."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

_LONGEST = 100_000


class Books:
    """Requests in the order of their arrival, and counts with their maxima; the oldest are dropped beyond 100,000."""

    def __init__(self) -> None:
        self.requests: list[dict[str, Any]] = []
        self.in_flight: Counter[str] = Counter()
        self.max_in_flight: Counter[str] = Counter()
        self.sockets: dict[int, dict[str, Any]] = {}
        self.open_sockets = 0
        self.max_open_sockets = 0
        self._socket_ids = 0

    def opened(self) -> int:
        """Write down a new socket and give it a number."""
        self._socket_ids += 1
        self.sockets[self._socket_ids] = {"opened": time.time(), "closed": None, "by": ""}
        self.open_sockets += 1
        self.max_open_sockets = max(self.max_open_sockets, self.open_sockets)
        if len(self.sockets) > _LONGEST:
            self.sockets.pop(next(iter(self.sockets)))
        return self._socket_ids

    def closed(self, number: int, by: str) -> None:
        """Write down the end of a socket, and which side ended it: `client` or `server`."""
        if number in self.sockets:
            self.open_sockets -= 1
            self.sockets[number].update(closed=time.time(), by=by)

    def discard(self, number: int) -> None:
        """Leave a socket out of the books: it is one of those that read or control them."""
        if self.sockets.pop(number, None) is not None:
            self.open_sockets -= 1

    def begin(
        self, verb: str, socket: int, method: str, target: str, path: str, query: dict[str, str], headers: dict[str, str]
    ) -> dict[str, Any]:
        """Write down a request; the record is completed by `end`."""
        record: dict[str, Any] = {
            "time": time.time(),
            "verb": verb,
            "method": method,
            "target": target,
            "path": path,
            "query": query,
            "headers": headers,
            "socket": socket,
            "status": None,
            "ended": None,
        }
        self.requests.append(record)
        if len(self.requests) > _LONGEST:
            del self.requests[: _LONGEST // 10]
        self.in_flight[verb] += 1
        self.max_in_flight[verb] = max(self.max_in_flight[verb], self.in_flight[verb])
        return record

    def end(self, record: dict[str, Any]) -> None:
        """Write down that a request was answered or given up."""
        record["ended"] = time.time()
        self.in_flight[record["verb"]] -= 1

    def clear(self) -> None:
        """Forget the requests, the closed sockets and the maxima; what is in flight still counts."""
        self.requests.clear()
        self.sockets = {number: socket for number, socket in self.sockets.items() if socket["closed"] is None}
        self.max_in_flight = Counter(self.in_flight)
        self.max_open_sockets = self.open_sockets

    def report(self) -> dict[str, Any]:
        """Everything, ready for JSON."""
        return {
            "requests": self.requests,
            "in_flight": dict(self.in_flight),
            "max_in_flight": dict(self.max_in_flight),
            "open_sockets": self.open_sockets,
            "max_open_sockets": self.max_open_sockets,
            "sockets": {str(number): socket for number, socket in self.sockets.items()},
        }
