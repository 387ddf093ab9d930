"""The keys of the two peers' configuration files, and which of them only one peer accepts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from fastdisco.relabel_config import VICTORIAMETRICS_ACTIONS

VICTORIAMETRICS, PROMETHEUS = "victoriametrics", "prometheus"


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys of one mapping: those that both accept, and those that only one does."""

    both: frozenset[str]
    victoriametrics: frozenset[str]
    prometheus: frozenset[str]
    inner: Mapping[str, Keys]
    """Of what lies below a key: a mapping, or each mapping of a list."""

    def all(self) -> frozenset[str]:
        return self.both | self.victoriametrics | self.prometheus

    def only(self, key: str) -> str:
        """The dialect of the one peer that accepts it, or empty."""
        return VICTORIAMETRICS if key in self.victoriametrics else PROMETHEUS if key in self.prometheus else ""


def only_one_accepts(keys: Keys, path: str, value: object) -> Iterator[tuple[str, str]]:
    """(dialect, path) of all below that one peer would refuse."""
    if isinstance(value, list):
        for index, item in enumerate(value):
            if isinstance(item, Mapping):  # YAML's aliases can make a list that holds itself
                yield from only_one_accepts(keys, f"{path}[{index}]", item)
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            place = f"{path}{'.' if path else ''}{key}"
            dialect = keys.only(key)
            if dialect:
                yield dialect, place
            elif key in keys.inner:
                yield from only_one_accepts(keys.inner[key], place, inner)
            elif (keys is RULE and _is_vmagent_rule(key, inner)) or (keys is DISCOVERY and (key, inner) == ("role", "endpointslices")):
                yield VICTORIAMETRICS, place


def _is_vmagent_rule(key: str, value: object) -> bool:
    """Whether a key that both have has a value that only one understands."""
    if key == "action":
        return isinstance(value, str) and value.lower() in VICTORIAMETRICS_ACTIONS
    return key == "regex" and isinstance(value, list)


def other_kinds(job: Mapping[str, object]) -> tuple[str, ...]:
    """The keys of a job that find targets elsewhere than in Kubernetes; the tables have not all, for peers get new ones all the time."""
    return tuple(
        key
        for key in job
        if (str(key).endswith("_sd_configs") or key in ("static_configs", "vultr_configs")) and key != "kubernetes_sd_configs"
    )


def _keys(both: str, victoriametrics: str = "", prometheus: str = "", inner: Mapping[str, Keys] = MappingProxyType({})) -> Keys:
    return Keys(frozenset(both.split()), frozenset(victoriametrics.split()), frozenset(prometheus.split()), inner)


RULE = _keys("action source_labels separator target_label regex modulus replacement", "if match labels")

_REFS = {"authorization": _keys("", prometheus="credentials_ref"), "basic_auth": _keys("", prometheus="username_ref password_ref")}
_TLS = _keys("", prometheus="max_version ca_ref cert_ref key_ref")
_OAUTH2 = _keys(
    "",
    "headers",
    "client_secret_ref client_certificate_key_id client_certificate_key client_certificate_key_file client_certificate_key_ref grant_type "
    "signature_algorithm iss audience claims no_proxy proxy_from_environment proxy_connect_header",
    {"tls_config": _TLS},
)
_CLIENT = "authorization basic_auth bearer_token bearer_token_file oauth2 tls_config follow_redirects proxy_url"
_PROMETHEUS_CLIENT = "enable_http2 no_proxy proxy_from_environment proxy_connect_header http_headers"
_CLIENT_INNER = {"tls_config": _TLS, "oauth2": _OAUTH2, **_REFS}

DISCOVERY = _keys(
    f"role api_server kubeconfig_file namespaces selectors attach_metadata {_CLIENT}",
    "headers",
    _PROMETHEUS_CLIENT,
    {"attach_metadata": _keys("node namespace", prometheus="deployment job cronjob"), **_CLIENT_INNER},
)
_OTHER_KIND = _keys("", prometheus="refresh_interval")  # vmagent has flags for that
_SHARED_KINDS = (
    "azure consul digitalocean dns docker dockerswarm ec2 eureka file gce hetzner http kuma linode marathon nomad openstack ovhcloud "
    "puppetdb"
).split()
_PROMETHEUS_KINDS = ("aws ecs elasticache ionos lightsail msk nerve oci outscale rds scaleway serverset stackit triton uyuni vultr").split()

JOB = _keys(
    "job_name scrape_interval scrape_timeout metrics_path honor_labels honor_timestamps scheme params relabel_configs "
    "metric_relabel_configs sample_limit label_limit enable_compression kubernetes_sd_configs static_configs "
    f"{_CLIENT} {' '.join(f'{kind}_sd_configs' for kind in _SHARED_KINDS)}",
    "max_scrape_size headers disable_compression disable_keepalive stream_parse scrape_align_interval scrape_offset series_limit "
    "no_stale_markers proxy_authorization proxy_basic_auth proxy_bearer_token proxy_bearer_token_file proxy_oauth2 proxy_tls_config "
    "proxy_headers consulagent_sd_configs yandexcloud_sd_configs vultr_configs",
    "track_timestamps_staleness scrape_protocols fallback_scrape_protocol scrape_native_histograms scrape_classic_histograms "
    "always_scrape_classic_histograms convert_classic_histograms_to_nhcb scrape_failure_log_file body_size_limit target_limit "
    "label_name_length_limit label_value_length_limit native_histogram_bucket_limit native_histogram_min_bucket_factor "
    "keep_dropped_targets metric_name_validation_scheme metric_name_escaping_scheme extra_scrape_metrics "
    f"{_PROMETHEUS_CLIENT} {' '.join(f'{kind}_sd_configs' for kind in _PROMETHEUS_KINDS)}",
    {
        "kubernetes_sd_configs": DISCOVERY,
        "relabel_configs": RULE,
        "metric_relabel_configs": RULE,
        **_CLIENT_INNER,
        **{f"{kind}_sd_configs": _OTHER_KIND for kind in _SHARED_KINDS},
    },
)
GLOBAL = _keys(
    "label_limit sample_limit scrape_interval scrape_timeout external_labels",
    "relabel_configs metric_relabel_configs",
    "scrape_protocols evaluation_interval rule_query_offset query_log_file query_max_series query_max_samples_read query_max_duration "
    "scrape_failure_log_file body_size_limit target_limit label_name_length_limit label_value_length_limit keep_dropped_targets "
    "metric_name_validation_scheme metric_name_escaping_scheme scrape_native_histograms convert_classic_histograms_to_nhcb "
    "always_scrape_classic_histograms extra_scrape_metrics",
)
TOP = _keys(
    "global scrape_configs scrape_config_files",
    prometheus="runtime alerting rule_files storage tracing remote_write remote_read otlp",
    inner={"global": GLOBAL, "scrape_configs": JOB},
)
