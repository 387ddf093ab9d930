"""What is written after `fastdisco`: flags, their help, and the `KubernetesSDConfig` that they make."""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import NoReturn

from fastdisco import __version__
from fastdisco._export import SYNTAXES
from fastdisco.config import (
    DIALECTS,
    ROLES,
    AttachMetadata,
    Authorization,
    KubernetesSDConfig,
    Namespaces,
    TLSConfig,
    load_sd_config,
)
from fastdisco.errors import ConfigError
from fastdisco.kubeconfig import with_kubeconfig
from fastdisco.sections import parse_yaml

from .flag_values import (
    ATTACHED,
    address,
    attached,
    count,
    external_url,
    mode,
    object_name,
    prefix,
    rate,
    role,
    seconds,
    selector,
    some_seconds,
)
from .log import LEVELS, LOG_FORMATS

STANDARD_INPUT = "-"
"""As the name of a file."""
TARGETS_PODS = 100
RUN_PODS = 1000
"""Sizes of the cluster of a demo."""

_CONNECTION = ("api_server", "kubeconfig", "context", "bearer_token_file", "ca_file", "insecure_skip_tls_verify")
_DISCOVERY = ("role", "namespace", "own_namespace", "selector", "attach_metadata")
# keys of a configuration that flags spell otherwise
_FLAGS = {
    "kubeconfig_file": "--kubeconfig",
    "namespaces": "--namespace",
    "namespaces.own_namespace": "--own-namespace",
    "selectors": "--selector",
}

_DESCRIPTION = "The scrape targets of a Kubernetes cluster, live."
_EPILOG = """\
  fastdisco run --demo                      a synthetic cluster discovered live: see what it does
  fastdisco targets --role pod --demo       the labels of each target, as JSON
  fastdisco explain --config prometheus.yml --job web default/web-0
                                            what the rules of a job do to one object, or why it gives no target
  fastdisco COMMAND --help                  all about a command
"""
_TARGETS_EPILOG = """\
Without --api-server the API server is the one of the pod that this runs in. Exit status: 0, the targets were printed; 1, they were not,
or the server refused some of what they are made of; 2, the flags or the configuration file are wrong; 130, interrupted before the first
sync. A refusal of the server ends the waiting at once; a server that cannot be reached ends it after three attempts, unless --timeout says
how long to go on.
"""
_EXPLAIN_EPILOG = """\
Exit status: 0, the object is known, whether or not it gives targets; 1, it is not, or there was no sync; 2, the flags or the
configuration file are wrong.
"""
_HEALTHCHECK_EPILOG = "Exit status: 0, it is well; 1, it is not, or does not answer."
_CHECK_EPILOG = """\
Exit status: 0, the file can be run; 1, it has mistakes; 2, the flags are wrong. No server is asked.
"""


class _Parser(argparse.ArgumentParser):
    """One that tells a mistake in a line, and where to read more."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\nsee {self.prog} --help\n")


def parser() -> argparse.ArgumentParser:
    """All commands; each sets `command`, and `usage`, a function that ends the program with a message."""
    top = _Parser(
        "fastdisco", description=_DESCRIPTION, epilog=_EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False
    )
    top.add_argument("--version", action="version", version=f"fastdisco {__version__}")
    top.set_defaults(command="")
    commands = top.add_subparsers(title="commands", metavar="COMMAND")
    for name, text, epilog, add in (
        ("targets", "print the targets of one discovery as JSON", _TARGETS_EPILOG, _add_targets),
        ("explain", "show what became of one object in one job, rule by rule", _EXPLAIN_EPILOG, _add_explain),
        ("check", "tell what a configuration file would run, and all mistakes in it", _CHECK_EPILOG, _add_check),
        ("run", "discover continuously, and export each job's targets over HTTP and in files", "", _add_run),
        ("healthcheck", "ask a running `fastdisco run` how it is, for probes", _HEALTHCHECK_EPILOG, _add_healthcheck),
    ):
        one = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".", epilog=epilog, allow_abbrev=False)
        add(one)
        one.add_argument("-v", "--verbose", action="count", default=0, help="log to standard error what happens; twice: in detail")
        one.set_defaults(command=name, usage=one.error)
    return top


def sd_config(arguments: argparse.Namespace) -> KubernetesSDConfig:
    """The discovery that `targets` was asked for; a demo has yet to give its `api_server`. ConfigError if a file has a mistake."""
    if arguments.pods is not None and not arguments.demo:
        arguments.usage("argument --pods: not allowed without argument --demo")
    given = [name for name in (*_CONNECTION, *_DISCOVERY) if getattr(arguments, name)]
    if arguments.sd_config:
        if given or arguments.demo:
            other = "--demo" if arguments.demo else f"--{given[0].replace('_', '-')}"
            arguments.usage(f"argument {other}: not allowed with argument --sd-config")
        return load_sd_config(arguments.sd_config) if arguments.sd_config != STANDARD_INPUT else _read_sd_config()
    if not arguments.role:
        arguments.usage("one of the arguments --role and --sd-config is required")
    if arguments.context and not arguments.kubeconfig:
        arguments.usage("argument --context: not allowed without argument --kubeconfig")
    if arguments.demo and (refused := [name for name in given if name in _CONNECTION]):
        arguments.usage(f"argument --{refused[0].replace('_', '-')}: not allowed with argument --demo")
    try:
        return _from_flags(arguments)
    except ConfigError as error:
        arguments.usage(as_flag(error))
        raise


def as_flag(error: ConfigError) -> str:
    """A mistake in a configuration that was made of flags, told by the flag."""
    path, _, reason = str(error).partition(": ")
    name = re.split(r"[.\[]", path)[0]
    flag = _FLAGS.get(path) or _FLAGS.get(name) or f"--{name.replace('_', '-')}"
    return f"argument {flag}: {reason}"


def _read_sd_config() -> KubernetesSDConfig:
    """From standard input; relative file names in it start at the working directory."""
    try:
        loaded, repeated = parse_yaml(sys.stdin.read() if sys.stdin is not None else "")
        if repeated:
            raise ConfigError(repeated[0])
        return KubernetesSDConfig.from_dict(loaded)
    except UnicodeDecodeError as error:
        raise ConfigError(f"standard input: cannot be read: {error}") from None
    except ConfigError as error:
        raise ConfigError(f"standard input: {error}") from None


def _from_flags(arguments: argparse.Namespace) -> KubernetesSDConfig:
    token, ca_file, insecure = arguments.bearer_token_file, arguments.ca_file, arguments.insecure_skip_tls_verify
    try:
        namespaces = Namespaces(tuple(arguments.namespace), arguments.own_namespace)
    except ConfigError as error:
        raise error.within("namespaces") from None
    config = KubernetesSDConfig(
        role=arguments.role,
        kubeconfig_file=arguments.kubeconfig,
        api_server=arguments.api_server,
        namespaces=namespaces,
        selectors=tuple(arguments.selector),
        attach_metadata=AttachMetadata(**dict.fromkeys(arguments.attach_metadata, True)),
        authorization=Authorization(credentials_file=token) if token else None,
        tls_config=TLSConfig(ca_file=ca_file, insecure_skip_verify=insecure) if ca_file or insecure else None,
    )
    return with_kubeconfig(config, context=arguments.context) if arguments.kubeconfig else config


def _add_targets(command: argparse.ArgumentParser) -> None:
    what = command.add_argument_group("what to discover")
    what.add_argument("--role", type=role, metavar="ROLE", help=", ".join(ROLES))
    what.add_argument("--namespace", action="append", default=[], metavar="NAME", help="look in this namespace only; may be repeated")
    what.add_argument("--own-namespace", action="store_true", help="look in the namespace of the pod that this runs in")
    what.add_argument(
        "--selector", action="append", default=[], type=selector, metavar="ROLE:LABEL[;FIELD]",
        help="a label selector, or a field selector, for the objects of one role; may be repeated",
    )  # fmt: skip
    what.add_argument("--attach-metadata", type=attached, default=(), metavar="KIND,...", help=f"{', '.join(ATTACHED)}: add their labels")
    where = command.add_argument_group("where to look")
    where.add_argument("--api-server", default="", metavar="URL")
    where.add_argument("--kubeconfig", default="", metavar="FILE", help="a kubeconfig, in place of the other flags of this group")
    where.add_argument("--context", default="", metavar="NAME", help="of the kubeconfig (default: its current one)")
    where.add_argument("--bearer-token-file", default="", metavar="FILE")
    where.add_argument("--ca-file", default="", metavar="FILE", help="certificates that the API server's is checked against")
    where.add_argument("--insecure-skip-tls-verify", action="store_true", help="do not check the API server's certificate")
    where.add_argument(
        "--sd-config", default="", metavar="FILE",
        help="a kubernetes_sd_config mapping, in place of all flags above; -: read standard input",
    )  # fmt: skip
    _add_demo(command, "discover an embedded synthetic cluster; with --watch it changes", TARGETS_PODS)
    how = command.add_argument_group("how")
    _add_dialect(how)
    _add_timeout(how)
    how.add_argument("--watch", action="store_true", help="go on with a line of JSON per change, until interrupted")


def _add_dialect(to: argparse._ActionsContainer) -> None:
    to.add_argument(
        "--dialect", choices=DIALECTS, default=DIALECTS[0], metavar="NAME",
        help=f"whose labels to make, and rules to run: {', '.join(DIALECTS)} (default: {DIALECTS[0]})",
    )  # fmt: skip


def _add_timeout(to: argparse._ActionsContainer) -> None:
    to.add_argument(
        "--timeout", type=seconds, metavar="SECONDS",
        help="how long to wait for the first sync, such as 30 or 5m: 60 if not given; 0: for ever, whatever the server says",
    )  # fmt: skip


def _add_explain(command: argparse.ArgumentParser) -> None:
    command.add_argument("object", type=object_name, metavar="NAMESPACE/NAME", help="the object; of a node only its NAME")
    command.add_argument("--config", required=True, metavar="FILE", help="a configuration with scrape_configs")
    command.add_argument("--job", required=True, metavar="NAME", help="which job of the file")
    command.add_argument("--json", action="store_true", help="print JSON")
    _add_reading(command)
    _add_timeout(command)


def _add_check(command: argparse.ArgumentParser) -> None:
    command.add_argument("file", metavar="FILE", help="a configuration of Prometheus or vmagent")
    command.add_argument("--output", choices=("text", "json"), default="text", help="how to tell it (default: text)")
    _add_reading(command)


def _add_reading(command: argparse._ActionsContainer) -> None:
    """How a configuration file is read."""
    command.add_argument("--settings", metavar="FILE", help="what only fastdisco has: {defaults: {...}, jobs: {NAME: {...}}}")
    command.add_argument(
        "--dialect", choices=("auto", *DIALECTS), default="auto",
        help="whose configuration it is, and whose labels to make (default: auto, by keys that only one of them accepts)",
    )  # fmt: skip
    command.add_argument("--config.expand-env", dest="expand_env", action="store_true", help="expand $(NAME) in the file")


def _add_run(command: argparse.ArgumentParser) -> None:
    what = command.add_argument_group("what to discover")
    what.add_argument("--config", metavar="FILE", help="a configuration of Prometheus or vmagent, with scrape_configs")
    _add_reading(what)
    what.add_argument("--config.auto-reload", dest="auto_reload", action="store_true", help="reload when the files change")
    what.add_argument(
        "--config.auto-reload-interval", dest="auto_reload_interval", type=some_seconds, default=30.0, metavar="SECONDS",
        help="between two looks at the files (default: 30)",
    )  # fmt: skip
    demo = _add_demo(command, "discover an embedded synthetic cluster that changes", RUN_PODS)
    demo.add_argument("--rate", type=rate, default=20.0, metavar="NUMBER", help="changes of pods per second (default: 20)")
    _add_web(command)
    files = command.add_argument_group("files for file_sd_configs, and state")
    files.add_argument("--file-sd.directory", dest="file_sd_directory", type=Path, metavar="DIRECTORY", help="where to keep a file per job")
    files.add_argument("--file-sd.format", dest="file_sd_format", choices=SYNTAXES, default="json", help="(default: json)")
    files.add_argument(
        "--file-sd.mode", dest="file_sd_mode", type=mode, default=0o644, metavar="MODE", help="who may read them (default: 0644)"
    )
    files.add_argument("--once", action="store_true", help="write the files when all jobs have synced, and exit")
    files.add_argument("--timeout", type=seconds, metavar="SECONDS", help="with --once: how long to wait (default: 60; 0: for ever)")
    files.add_argument("--state", type=Path, metavar="FILE", help="what to serve after a restart until the first sync; kept up to date")
    files.add_argument(
        "--state.max-age", dest="state_max_age", type=seconds, default=600.0, metavar="SECONDS", help="older is not served (default: 10m)"
    )
    log = command.add_argument_group("log")
    log.add_argument("--log.level", dest="log_level", choices=LEVELS, default="info", help="(default: info)")
    log.add_argument("--log.format", dest="log_format", choices=LOG_FORMATS, default="logfmt", help="(default: logfmt)")


def _add_web(command: argparse.ArgumentParser) -> None:
    web = command.add_argument_group("web")
    web.add_argument(
        "--web.listen-address", dest="listen_address", type=address, default=("127.0.0.1", 9809), metavar="HOST:PORT",
        help="where to serve targets, metrics and the page (default: 127.0.0.1:9809; port 0: any free one)",
    )  # fmt: skip
    web.add_argument(
        "--web.config.file", dest="web_config_file", type=Path, metavar="FILE", help="TLS, users and headers, as Prometheus has them"
    )
    web.add_argument(
        "--web.health-address", dest="health_address", type=address, metavar="HOST:PORT",
        help="where to serve /-/healthy and /-/ready alone, without TLS and passwords",
    )  # fmt: skip
    web.add_argument("--web.external-url", dest="external_url", type=external_url, metavar="URL", help="where clients find it")
    web.add_argument(
        "--web.route-prefix", dest="route_prefix", type=prefix, metavar="PATH",
        help="before all paths (default: the path of --web.external-url)",
    )  # fmt: skip
    web.add_argument("--web.enable-lifecycle", dest="enable_lifecycle", action="store_true", help="allow /-/reload from other machines")
    web.add_argument(
        "--web.sync-wait", dest="sync_wait", type=seconds, default=4.0, metavar="SECONDS",
        help="how long a request may be held until the first sync (default: 4)",
    )  # fmt: skip
    web.add_argument(
        "--max-staleness", type=seconds, default=0.0, metavar="SECONDS",
        help="answer 503 after so long without a word from the API server (default: 0, never)",
    )  # fmt: skip


def _add_healthcheck(command: argparse.ArgumentParser) -> None:
    command.add_argument("--ready", action="store_true", help="whether its jobs have synced, not only whether it runs")
    command.add_argument("--job", metavar="NAME", help="with --ready: whether this job has synced")
    command.add_argument(
        "--address", type=address, default=("127.0.0.1", 9809), metavar="HOST:PORT",
        help="that of --web.health-address or --web.listen-address (default: 127.0.0.1:9809)",
    )  # fmt: skip
    command.add_argument("--prefix", type=prefix, default="/", metavar="PATH", help="that of --web.route-prefix")
    command.add_argument("--tls", action="store_true", help="speak TLS, and take every certificate")
    command.add_argument("--timeout", type=some_seconds, default=3.0, metavar="SECONDS", help="(default: 3)")


def _add_demo(command: argparse.ArgumentParser, text: str, pods: int) -> argparse._ArgumentGroup:
    demo = command.add_argument_group("demo")
    demo.add_argument("--demo", action="store_true", help=text)
    demo.add_argument("--pods", type=count, metavar="NUMBER", help=f"of the synthetic cluster (default: {pods})")
    return demo
