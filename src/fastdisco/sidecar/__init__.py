"""What a discovery serves over HTTP: its targets in Prometheus' JSON form, its metrics, its health, and a page that says so."""

from .app import make_app

__all__ = ["make_app"]
