"""Whatever a configuration file holds, it is read, or its mistakes are told; and files like those that people have are read again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fastdisco.configuration import Configuration, ConfigurationError, changed, compare, load_configuration, unmade_labels
from fastdisco.configuration.peer_keys import DISCOVERY, GLOBAL, JOB, RULE, TOP, Keys
from fastdisco.configuration.settings import ENGINE_KEYS

SCALARS = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 5), st.floats(allow_nan=False), st.text(max_size=5),
    st.sampled_from(["pod", "node", "10s", "1m", "a", "x", "http", "https", "keep", "drop", "labelmap", "(", "__meta_kubernetes_pod_(.+)"]),
)  # fmt: skip
VALUES = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)), max_leaves=5
)


def sections(keys: Keys, **known: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings with some of the keys, most of them with any value at all."""
    names = st.sampled_from([*sorted(keys.all()), *known, "nonsense"])
    return st.lists(names, max_size=6, unique=True).flatmap(
        lambda chosen: st.fixed_dictionaries({name: known.get(name, VALUES) for name in chosen})
    )


RULES = st.lists(sections(RULE), max_size=3)
NAMES = st.lists(st.sampled_from(["a", "B", 5]), max_size=2)
DISCOVERIES = st.lists(
    sections(DISCOVERY, role=st.sampled_from(["pod", "node", "pods"]), namespaces=st.fixed_dictionaries({"names": NAMES})), max_size=2
)
JOBS = st.lists(
    sections(
        JOB,
        job_name=st.sampled_from(["a", "b", "c"]),
        kubernetes_sd_configs=st.one_of(VALUES, DISCOVERIES),
        relabel_configs=st.one_of(VALUES, RULES),
    ),
    max_size=4,
)
DOCUMENTS = sections(TOP, **{"global": sections(GLOBAL, relabel_configs=RULES), "scrape_configs": st.one_of(VALUES, JOBS)})
# Such as people have: most of it is right.
GOOD_RULES = st.fixed_dictionaries(
    {"target_label": st.sampled_from(["x", "y"])},
    optional={
        "source_labels": st.lists(st.sampled_from(["__address__", "__meta_kubernetes_pod_name", "__meta_kubernetes_nod_name"]), max_size=2),
        "regex": st.sampled_from(["a|b", "(.+)", 5, ["a", "b"]]),
        "replacement": st.sampled_from(["$1", 80, True]),
        "if": st.just('{a="b"}'),
    },
)
GOOD_JOBS = st.fixed_dictionaries(
    {
        "job_name": st.sampled_from(["a", "b", "c", 5]),
        "kubernetes_sd_configs": st.lists(
            st.fixed_dictionaries(
                {"role": st.sampled_from(["pod", "node", "endpointslices"])},
                optional={"attach_metadata": st.just({"node": True}), "bearer_token": st.just("hush"), "enable_http2": st.booleans()},
            ),
            min_size=1,
            max_size=2,
        ),
    },
    optional={"relabel_configs": st.lists(GOOD_RULES, max_size=3), "scrape_interval": st.sampled_from(["10s", "1m", 5]), "params": VALUES},
)
GOOD_DOCUMENTS = st.fixed_dictionaries(
    {"scrape_configs": st.lists(GOOD_JOBS, max_size=3, unique_by=lambda job: str(job["job_name"]))},
    optional={"global": st.fixed_dictionaries({}, optional={"relabel_configs": st.lists(GOOD_RULES, max_size=1)}), "rule_files": VALUES},
)


def read(file: Path, text: str, **options: Any) -> Configuration | ConfigurationError:
    file.write_text(text)
    try:
        return load_configuration(file, **options)
    except ConfigurationError as error:
        return error


@pytest.mark.parametrize("dialect", ["auto", "prometheus"])
def test_every_document_is_read_or_its_mistakes_are_told(dialect: str, tmp_path: Path) -> None:
    """Each with its file; and what was read can be shown, checked and compared."""

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.one_of(GOOD_DOCUMENTS, DOCUMENTS, VALUES))
    def check(document: Any) -> None:
        file = tmp_path / "scrape.yml"
        found = read(file, json.dumps(document), dialect=dialect)
        assert not changed(found)
        if isinstance(found, ConfigurationError):
            assert found.mistakes
            assert all(mistake.startswith(f"{file}: ") for mistake in found.mistakes)
            return
        assert compare(found, found).kept == tuple(job.job_name for job in found.jobs)
        assert "hush" not in found.text
        assert len(yaml.safe_load(found.text)["scrape_configs"]) == len(found.jobs)
        for job in found.jobs:
            unmade_labels(job)

    check()


def test_any_text_is_read_or_its_mistakes_are_told(tmp_path: Path) -> None:
    """YAML or not; aliases that lead to themselves, too."""

    @settings(max_examples=100, deadline=None)
    @given(st.text(alphabet="ab: -[]{}&*!|>'\"%\n#0?", max_size=40))
    def check(text: str) -> None:
        read(tmp_path / "scrape.yml", text)

    check()
    for text in ("&a [*a]", "scrape_configs: &a [*a]", "&a {scrape_configs: *a}", "scrape_configs: [&a {job_name: *a, params: *a}]"):
        assert isinstance(read(tmp_path / "scrape.yml", text), ConfigurationError)


def test_any_settings_are_read_or_their_mistakes_are_told(tmp_path: Path) -> None:
    """Beside a configuration that has none."""
    jobs = st.fixed_dictionaries({}, optional=dict.fromkeys((*ENGINE_KEYS, "dialect", "disable_sharding", "nonsense"), VALUES))
    documents = st.fixed_dictionaries({}, optional={"defaults": jobs, "jobs": st.dictionaries(st.sampled_from("ab"), jobs)})

    @settings(max_examples=100, deadline=None)
    @given(st.one_of(documents, VALUES))
    def check(document: Any) -> None:
        (tmp_path / "settings.yml").write_text(json.dumps(document))
        text = "scrape_configs: [{job_name: a, kubernetes_sd_configs: [{role: pod}]}]"
        read(tmp_path / "scrape.yml", text, settings=tmp_path / "settings.yml")

    check()
