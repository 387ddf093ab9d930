"""Prometheus on loopback."""

from tests.peers.scraper import Scraper


class Prometheus(Scraper):
    """Brings changes up to date every five seconds."""

    name = "prometheus"

    def flags(self, address: str) -> list[str]:
        return [f"--config.file={self.config}", f"--web.listen-address={address}", f"--storage.tsdb.path={self.folder / 'data'}"]
