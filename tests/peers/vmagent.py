"""vmagent on loopback."""

from tests.peers.scraper import Scraper


class Vmagent(Scraper):
    """Shows as dropped what went minutes ago, too."""

    name = "vmagent"

    def flags(self, address: str) -> list[str]:
        return [
            f"-promscrape.config={self.config}",
            f"-httpListenAddr={address}",
            "-remoteWrite.url=http://127.0.0.1:1/",
            "-promscrape.maxDroppedTargets=1000000",
            "-promscrape.kubernetesSDCheckInterval=1s",  # else its targets follow its own cache every 30 s
            "-promscrape.httpSDCheckInterval=2s",
            "-promscrape.fileSDCheckInterval=1s",
            f"-remoteWrite.tmpDataPath={self.folder / 'data'}",
        ]
