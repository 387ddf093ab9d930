"""A throw-away Kubernetes API server on loopback with nothing behind it: objects stay as they are created."""

import asyncio
import base64
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self

import aiohttp

from bench.peers.program import free_port
from tests.peers.programs import Program, need

Object = dict[str, Any]

PREFIXES = {
    "endpointslices": "/apis/discovery.k8s.io/v1",
    "ingresses": "/apis/networking.k8s.io/v1",
    "replicasets": "/apis/apps/v1",
    "jobs": "/apis/batch/v1",
}
CLUSTER_WIDE = {"nodes", "namespaces"}
WITH_STATUS = {"nodes", "pods", "services", "ingresses"}  # `status` is ignored on the object itself and written through its own path
TOKEN = "admin-token"
WEAK_TOKEN = "weak-token"


def path(plural: str, namespace: str = "", name: str = "") -> str:
    """The API path of a list, or of one object."""
    inside = f"/namespaces/{namespace}" if namespace and plural not in CLUSTER_WIDE else ""
    return f"{PREFIXES.get(plural, '/api/v1')}{inside}/{plural}" + (f"/{name}" if name else "")


def path_of(plural: str, item: Object) -> str:
    return path(plural, item["metadata"].get("namespace", ""), item["metadata"]["name"])


class ApiServer:
    """etcd and kube-apiserver, started and stopped together or the API server alone; TOKEN may do everything, WEAK_TOKEN nothing."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self.url = f"https://127.0.0.1:{self.port}"
        self.etcd_url = f"http://127.0.0.1:{free_port()}"
        peer_url = f"http://127.0.0.1:{free_port()}"
        self.etcd = Program(
            need("etcd"),
            *("--data-dir", folder / "etcd", "--unsafe-no-fsync"),
            *("--listen-client-urls", self.etcd_url, "--advertise-client-urls", self.etcd_url),
            *("--listen-peer-urls", peer_url, "--initial-advertise-peer-urls", peer_url, "--initial-cluster", f"default={peer_url}"),
            log=folder / "etcd.log",
        )
        self.api = self._api_program(self.port)
        self.http: aiohttp.ClientSession | None = None
        self._calls = self.url  # where this class itself calls: another server, while the one that tests talk to is stopped

    def _api_program(self, port: int) -> Program:
        """Admission plugins that would need controllers to undo what they do are off. Requests of tests are not to wait for fair queues."""
        folder = self.folder
        return Program(
            need("kube-apiserver"),
            *("--etcd-servers", self.etcd_url, "--cert-dir", folder / "certs"),
            *("--bind-address", "127.0.0.1", "--secure-port", str(port)),
            *("--service-cluster-ip-range", "10.96.0.0/12,fd00:96::/112", "--service-account-issuer", "https://kubernetes.default.svc"),
            *("--service-account-key-file", folder / "sa.pub", "--service-account-signing-key-file", folder / "sa.key"),
            *("--token-auth-file", folder / "tokens.csv", "--authorization-mode", "RBAC"),
            *("--disable-admission-plugins", "ServiceAccount,TaintNodesByCondition,NamespaceLifecycle"),
            *("--enable-priority-and-fairness=false", "--shutdown-delay-duration=0s"),
            log=folder / f"api-{port}.log",
        )

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / "tokens.csv").write_text(f"{TOKEN},admin,admin,system:masters\n{WEAK_TOKEN},weak,weak\n")
        await asyncio.to_thread(self._make_keys)
        self.http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(ssl=False, force_close=True), headers={"Authorization": f"Bearer {TOKEN}"}
        )
        try:
            await self.etcd.start(self._etcd_ready, timeout=60)
            await self.start_api()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.api.kill()
        await self.etcd.kill()
        if self.http is not None:
            await self.http.close()

    async def start_api(self) -> None:
        """Returns when it is ready and has made the namespace `default`."""
        await self.api.start(self._api_ready, timeout=120)

    async def stop_api(self) -> None:
        """The API server alone; etcd keeps the objects. Open watches would hold it back for a minute, so it is killed in the end."""
        await self.api.stop(grace=3.0)

    @asynccontextmanager
    async def out_of_sight(self) -> AsyncIterator[None]:
        """The API server is stopped, and calls from here go through another one on the same etcd, of which its clients see nothing."""
        await self.stop_api()
        other = free_port()
        program = self._api_program(other)
        self._calls = f"https://127.0.0.1:{other}"
        try:
            await program.start(self._api_ready, timeout=120)
            yield
        finally:
            await program.kill()
            self._calls = self.url
        await self.start_api()

    async def compact(self) -> None:
        """Makes etcd forget all versions but the newest."""
        head = await self._etcd("/v3/kv/range", {"key": base64.b64encode(b"/").decode(), "limit": "1"})
        await self._etcd("/v3/kv/compaction", {"revision": head["header"]["revision"], "physical": True})

    async def list(self, plural: str) -> list[Object]:
        """All objects as the server has them at its newest version."""
        items: list[Object] = (await self._call("GET", path(plural)))["items"]
        return items

    async def create(self, plural: str, item: Object) -> Object:
        """Creates it, its status included."""
        made = await self._call("POST", path(plural, item["metadata"].get("namespace", "")), item)
        return await self._write_status(plural, made, item)

    async def replace(self, plural: str, item: Object) -> Object:
        """Replaces the object of that name, its status included."""
        old = await self._call("GET", path_of(plural, item))
        version = {"resourceVersion": old["metadata"]["resourceVersion"]}
        made = await self._call("PUT", path_of(plural, item), {**item, "metadata": {**item["metadata"], **version}})
        return await self._write_status(plural, made, item)

    async def delete(self, plural: str, item: Object) -> None:
        """Deletes it at once, as there is no kubelet to wait for."""
        await self._call("DELETE", path_of(plural, item) + "?gracePeriodSeconds=0")

    async def _write_status(self, plural: str, made: Object, item: Object) -> Object:
        if plural not in WITH_STATUS or "status" not in item:
            return made
        return await self._call("PUT", path_of(plural, item) + "/status", {**made, "status": item["status"]})

    async def _call(self, method: str, where: str, body: Object | None = None) -> Object:
        assert self.http is not None
        async with self.http.request(method, self._calls + where, json=body) as answer:
            if answer.status >= 300:
                raise RuntimeError(f"{method} {where}: {answer.status} {await answer.text()}")
            result: Object = await answer.json()
            return result

    async def _etcd(self, where: str, body: Object) -> Object:
        assert self.http is not None
        async with self.http.post(self.etcd_url + where, json=body, raise_for_status=True) as answer:
            result: Object = await answer.json()
            return result

    async def _etcd_ready(self) -> bool:
        return await self._answers(f"{self.etcd_url}/readyz")

    async def _api_ready(self) -> bool:
        return await self._answers(f"{self._calls}/readyz") and await self._answers(f"{self._calls}{path('namespaces', '', 'default')}")

    async def _answers(self, url: str) -> bool:
        assert self.http is not None
        try:
            async with self.http.get(url) as answer:
                return answer.status == 200
        except aiohttp.ClientError:
            return False

    def _make_keys(self) -> None:
        private, public = self.folder / "sa.key", self.folder / "sa.pub"
        openssl = need("openssl")
        subprocess.run([openssl, "genrsa", "-out", private, "2048"], check=True, capture_output=True)
        subprocess.run([openssl, "rsa", "-in", private, "-pubout", "-out", public], check=True, capture_output=True)
