"""What a discovery serves to others: targets over HTTP and in files, metrics, health, and a page that says so."""

from .app import make_app, make_health_app
from .service import Service, ServiceOptions

__all__ = ["Service", "ServiceOptions", "make_app", "make_health_app"]
