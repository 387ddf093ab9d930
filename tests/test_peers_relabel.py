"""Relabeling beside vmagent: the same pods, the same random rules, the same targets."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings

from fastdisco.errors import ConfigError
from fastdisco.regexes import Runs
from fastdisco.relabel_config import load_rules
from fastdisco.rules import compile_rule
from fastdisco.synthetic import SyntheticProcess
from fastdisco.target_labels import TargetDefaults, default_labels, stored_labels
from tests.peers.programs import need, until
from tests.peers.scraper import RULES, kubernetes
from tests.peers.vmagent import Vmagent
from tests.relabel_reference import relabel
from tests.relabel_rig import Object, Pods, pod
from tests.rule_strategies import KEYS, VALUES, Rule, rules
from tests.test_rules import FULL

JOBS = int(os.environ.get("FASTDISCO_RELABEL_JOBS", "150"))
SEED = int(os.environ.get("FASTDISCO_RELABEL_SEED", "1"))
# What a random rule may have made of the labels that say where and how to scrape is set right, and the address kept for comparison.
LAST: list[Rule] = [
    {"source_labels": ["__address__"], "target_label": "m_address"},
    {"target_label": "__scheme__", "replacement": "http"},
    {"target_label": "__metrics_path__", "replacement": "/metrics"},
    {"target_label": "__scrape_interval__", "replacement": "1d"},
    {"target_label": "__scrape_timeout__", "replacement": "10s"},
    dict(RULES[-1]),
]

Pairs = tuple[tuple[str, str], ...]


def pods(count: int) -> list[Object]:
    choose = random.Random(7)
    return [
        pod(
            f"p{number}",
            {key: choose.choice(VALUES) for key in choose.sample(KEYS, choose.randrange(5))},
            choose.choice(["web", "db", "a"]),
            ports=choose.choice([(), (), (80,), (80, 8080)]),
            ip=f"127.0.1.{number + 1}",
        )

        for number in range(count)
    ]


def random_rules(count: int) -> list[list[Rule]]:
    """The same for the same seed; without those whose outcome in vmagent is an accident."""
    found: list[list[Rule]] = []

    @seed(SEED)
    @settings(max_examples=count, database=None, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck))
    @given(rules())
    def gather(made: list[Rule]) -> None:
        found.append(made)

    gather()
    return found


def is_steady(before: Mapping[str, str], made: Sequence[Rule]) -> bool:
    """Whether the outcome depends neither on when vmagent's list of labels moves in memory, nor on how it sorts names that repeat."""
    outcome = relabel(before, made, "victoriametrics")
    names = Counter(name for name, _ in outcome.labels or ())
    moved = any(rule.get("action") == "labelmap" for rule in made)
    rooms = (0, 1, 2, 4) if moved else ()
    return max(names.values(), default=1) == 1 and all(relabel(before, made, "victoriametrics", room=room) == outcome for room in rooms)


def pairs(labels: Mapping[str, str]) -> Pairs:
    return tuple(sorted(labels.items()))


class Ours:
    """What fastdisco makes of one job."""

    def __init__(self, heart: Pods, job: str, made: Sequence[Rule]) -> None:
        defaults = default_labels(job, TargetDefaults(scrape_interval="1d"), "victoriametrics")
        relabeling = heart.relabeling(made, defaults)
        self.active = {pairs(stored_labels(labels)) for labels in heart.survivors(relabeling)}
        self.dropped: set[Pairs] = set()
        self.equal: set[Pairs] = set()
        """Targets whose final labels another target has, too: vmagent shows all but one of them among the dropped."""
        finals: dict[Pairs, list[Pairs]] = {}
        for labels in heart.labels():
            before = pairs(defaults | dict(labels))
            _, ending = relabeling.steps_of(labels)
            if isinstance(ending, (int, str)):
                self.dropped.add(before)
            else:
                finals.setdefault(pairs(stored_labels(ending)), []).append(before)
        self.equal.update(*(all_ for all_ in finals.values() if len(all_) > 1))
        assert self.active == set(finals)

    def difference(self, active: set[Pairs], dropped: set[Pairs]) -> str:
        left = [
            ("active only in fastdisco", self.active - active),
            ("active only in vmagent", active - self.active),
            ("dropped only by fastdisco", self.dropped - dropped),
            ("dropped only by vmagent", dropped - self.dropped - self.equal),
        ]
        return "; ".join(f"{len(found)} {what}, such as {dict(min(found))}" for what, found in left if found)[:2000]


async def theirs(vmagent: Vmagent, names: Sequence[str]) -> dict[str, tuple[set[Pairs], set[Pairs]]]:
    data = await vmagent.shown()
    found: dict[str, tuple[set[Pairs], set[Pairs]]] = {name: (set(), set()) for name in names}
    for target in data["activeTargets"]:
        found[target["scrapePool"]][0].add(pairs(target["labels"]))
    for target in data["droppedTargets"]:
        found[target["discoveredLabels"]["job"]][1].add(pairs(target["discoveredLabels"]))
    return found


@pytest.mark.slow
@pytest.mark.peers("vmagent")
async def test_random_rules_give_the_targets_of_vmagent(tmp_path: Path) -> None:
    """Many jobs with random rules over the same pods: the final labels of what is kept, and the first labels of what is not."""
    objects = pods(40)
    heart = Pods()
    heart.put_all(objects)
    discovered = heart.discovered()
    assert len(discovered) > 40
    jobs: dict[str, list[Rule]] = {}
    for number, made in enumerate(random_rules(JOBS)):
        every = [*made, *LAST]
        defaults = default_labels(f"j{number}", TargetDefaults(scrape_interval="1d"), "victoriametrics")
        if all(is_steady(defaults | labels, every) for labels in discovered):
            jobs[f"j{number}"] = every
    assert len(jobs) > JOBS * 0.75
    async with SyntheticProcess(objects={"pods": objects}) as server:
        config: dict[str, Any] = {"role": "pod", "api_server": server.url}
        ours = {name: Ours(heart, name, made) for name, made in jobs.items()}
        left: dict[str, str] = {}
        async with Vmagent(tmp_path, kubernetes(dict.fromkeys(jobs, config)), jobs) as vmagent:

            async def agree() -> bool:
                shown = await theirs(vmagent, list(jobs))
                left.clear()
                left.update({name: found for name, job in ours.items() if (found := job.difference(*shown[name]))})
                return not left

            try:
                await until(agree, timeout=40, what="equal targets", every=1.0)
            except TimeoutError:
                pytest.fail("\n".join(f"{json.dumps(jobs[name])}: {found}" for name, found in [*left.items()][:5]), pytrace=False)
    kept = sum(len(job.active) for job in ours.values())
    assert kept > len(discovered) * len(jobs) / 10, "too few targets are left for the comparison to mean much"


def load(folder: Path, made: Sequence[Rule]) -> bool:
    """Whether vmagent loads a file with these rules."""
    file = folder / "scrape.yml"
    file.write_text(json.dumps({"scrape_configs": [{"job_name": "j", "relabel_configs": made}]}))
    return subprocess.run([need("vmagent"), "-dryRun", f"-promscrape.config={file}"], capture_output=True, check=False).returncode == 0


@pytest.mark.peers("vmagent")
def test_what_vmagent_refuses_makes_no_sense_here(tmp_path: Path) -> None:
    whole: list[Rule] = [{"action": action, **fields} for action, fields in FULL.items()]
    assert load(tmp_path, whole)
    wrong: list[Rule] = [{key: value for key, value in rule.items() if key != left_out} for rule in whole for left_out in rule]
    wrong += [{**rule, "regex": "(.*)", "match": "*"} for rule in whole]
    mistakes: list[Rule] = [{"regex": "("}, {"if": "{"}, {"if": '{a=~"("}'}, {"labels": {"a": "b"}}]
    wrong += [rule | mistake for rule in whole for mistake in mistakes]
    wrong += [{"action": "keep_if_equal", "source_labels": ["a"]}, {"action": "graphite", "match": "*", "labels": {}}, {"action": "keeps"}]
    refused = 0
    for rule in wrong:
        try:
            for config in load_rules([rule]):
                compile_rule(config, "victoriametrics", Runs())
        except ConfigError:
            refused += 1
        else:
            assert load(tmp_path, [rule]), rule
    assert refused > 80
