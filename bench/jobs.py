"""The scrape jobs that everybody runs, as plain data that the engine and its peers both read."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

CLOSED = "127.0.0.1:1"
"""Where the last rule sends every scrape: a port on loopback that nobody listens on."""

_COPIED = {
    "__meta_kubernetes_namespace": "namespace",
    "__meta_kubernetes_pod_name": "pod",
    "__meta_kubernetes_pod_ready": "ready",
    "__meta_kubernetes_pod_annotation_example_com_revision": "revision",
    "__address__": "address",
}


@dataclass(frozen=True, slots=True)
class Job:
    """A scrape job of one role; with `app` it keeps the pods of that application alone."""

    name: str
    role: str = "pod"
    app: str = ""
    ready: bool = False
    """Whether it keeps ready pods alone."""

    def rules(self) -> list[dict[str, Any]]:
        """Its relabeling rules as YAML has them; targets that differ stay apart, and the last rule makes their addresses harmless."""
        rules: list[dict[str, Any]] = []
        if self.app:
            rules.append({"action": "keep", "source_labels": ["__meta_kubernetes_pod_label_app"], "regex": self.app})
        if self.ready:
            rules.append({"action": "keep", "source_labels": ["__meta_kubernetes_pod_ready"], "regex": "true"})
        rules.append({"action": "labelmap", "regex": "__meta_kubernetes_pod_label_(.+)"})
        rules += [{"source_labels": [source], "target_label": target} for source, target in _COPIED.items()]
        return [*rules, {"target_label": "__address__", "replacement": CLOSED}]

    def discovery(self, url: str) -> dict[str, Any]:
        """Its `kubernetes_sd_config`."""
        return {"role": self.role, "api_server": url}
