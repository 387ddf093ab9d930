"""`fastdisco healthcheck`: for probes in containers that have no program for HTTP."""

from __future__ import annotations

import argparse
import http.client
import ssl
from urllib.parse import quote

from fastdisco.errors import FastdiscoError


def run(arguments: argparse.Namespace) -> int:
    """The command, from flags to exit code."""
    if arguments.job is not None and not arguments.ready:
        arguments.usage("argument --job: needs argument --ready")
    host, port = arguments.address
    host = host or "127.0.0.1"
    path = f"{arguments.prefix}/-/{'ready' if arguments.ready else 'healthy'}"
    if arguments.job is not None:
        path += f"?job={quote(arguments.job, safe='')}"
    connection: http.client.HTTPConnection
    if arguments.tls:
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # it asks itself
        connection = http.client.HTTPSConnection(host, port, timeout=arguments.timeout, context=context)
    else:
        connection = http.client.HTTPConnection(host, port, timeout=arguments.timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        text = answer.read(10_000).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        from fastdisco.sidecar.listening import shown  # with the whole server: an answered probe, and there are many, does without

        raise FastdiscoError(f"no answer from {shown(host, port)}: {error}{_hint(error, tls=arguments.tls)}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise FastdiscoError(f"{text or answer.reason} (status code {answer.status})")
    return 0


def _hint(error: Exception, *, tls: bool) -> str:
    """Where somebody is there and does not understand."""
    if tls:
        return " (perhaps it speaks no TLS: leave --tls out)" if isinstance(error, ssl.SSLError) else ""
    return " (perhaps it speaks TLS: try --tls)" if isinstance(error, ConnectionResetError | http.client.BadStatusLine) else ""
