"""What became of an object in a job: each rule in order, with the labels before and after it, or why there is no target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from .target_labels import stored_labels

if TYPE_CHECKING:
    from ._labels import Labels
    from ._relabel import Relabeling
    from .relabel_config import RelabelConfig

LabelList = list[tuple[str, str]]
"""Labels in the order in which rules see them; a name may stand twice after a renaming."""


@dataclass(frozen=True, slots=True)
class ExplainedRule:
    """One rule at work."""

    rule: RelabelConfig
    before: LabelList
    after: LabelList
    """Empty if the rule has dropped the target."""


@dataclass(frozen=True, slots=True)
class ExplainedTarget:
    """One target of the object, from its discovered labels to its final ones."""

    discovered: dict[str, str]
    rules: tuple[ExplainedRule, ...]
    """Up to the one that dropped it."""
    dropped: str
    """Why it was dropped, such as `rule 3: drop`; empty: it is kept."""
    labels: dict[str, str]
    """What the scraper gets; empty if it is dropped."""
    stored: dict[str, str]
    """What the samples are stored with."""


@dataclass(frozen=True, slots=True)
class Explanation:
    """One object, as one configuration of the job sees it."""

    role: str
    namespace: str
    name: str
    known: bool
    """Whether there is such an object; it may still give no target, or be left out by a selector."""
    reason: str
    """Why there is no target; empty if there are some."""
    targets: tuple[ExplainedTarget, ...] = ()


def explain_target(labels: Labels, relabeling: Relabeling | None) -> ExplainedTarget:
    """`labels` are the discovered ones; without rules they are final."""
    discovered = dict(labels)
    if relabeling is None:
        return ExplainedTarget(discovered, (), "", discovered, stored_labels(discovered))
    steps, ending = relabeling.steps_of(labels)
    rules = tuple(ExplainedRule(rule.config, before, after) for rule, before, after in steps)
    if isinstance(ending, int):
        return ExplainedTarget(discovered, rules, f"rule {ending + 1}: {rules[-1].rule.action}", {}, {})
    if isinstance(ending, str):
        return ExplainedTarget(discovered, rules, ending, {}, {})
    return ExplainedTarget(discovered, rules, "", dict(ending), stored_labels(ending))
