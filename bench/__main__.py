"""The command `fastdisco-bench`."""

from __future__ import annotations

import argparse
import compileall
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path

import fastdisco
from fastdisco.cli.ending import sigterm_interrupts

from .cases import UNITS, Case
from .machine import machine, versions
from .peers import PEERS, Peer, peer
from .plan import Plan, Sizes
from .progress import display
from .report import as_json
from .stages import STAGES

_USED_BY = {"jobs": "jobs", "services": "endpoints"}  # flags for one stage


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",") if name.strip()]
    for name in names:
        if name not in STAGES:
            raise argparse.ArgumentTypeError(f"no stage is called {name!r}; there are {', '.join(STAGES)}")
    if not names:
        raise argparse.ArgumentTypeError("no stage is named")
    return list(dict.fromkeys(names))


def _peer(text: str) -> Peer:
    try:
        return peer(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"must be a whole number above 0, not {text!r}")
    return int(text)


def parser() -> argparse.ArgumentParser:
    """The flags."""
    made = argparse.ArgumentParser(prog="fastdisco-bench", description="Measures fastdisco on synthetic clusters, beside its peers.")
    made.add_argument("--stages", type=_names, default=list(STAGES), metavar="A,B", help=f"of {', '.join(STAGES)}; default: all")
    made.add_argument(
        "--pods", type=_count, metavar="N",
        help="pods in each stage, but N/4 to 2N in `growth`, and no second, larger case in `jobs`; default: as the floors say",
    )  # fmt: skip
    made.add_argument("--jobs", type=_count, metavar="N", help="jobs in the stage `jobs`")
    made.add_argument("--services", type=_count, metavar="N", help="services in the stage `endpoints`")
    made.add_argument(
        "--peer", type=_peer, action="append", default=[], dest="peers", metavar="NAME[=PATH]",
        help=f"run {' or '.join(PEERS)} through the same stages; repeatable",
    )  # fmt: skip
    made.add_argument("--encoding", choices=["json"], default="json", help="in which lists and watches are asked for")
    made.add_argument(
        "--quick", action="store_true",
        help="small sizes, once each; a minute on two cores, with both peers about four; floors for large sizes are left out",
    )  # fmt: skip
    made.add_argument("--seed", type=int, default=0, help="of the synthetic clusters")
    made.add_argument("--json", type=Path, metavar="FILE", help="keep everything, with versions and machine")
    return made


def _sizes(arguments: argparse.Namespace) -> Sizes:
    sizes = Sizes.quick() if arguments.quick else Sizes()
    if arguments.pods:
        sizes = replace(Sizes.of_pods(arguments.pods), repeats=sizes.repeats, seconds=sizes.seconds, burst=sizes.burst)
    if arguments.jobs:
        sizes = replace(sizes, jobs=arguments.jobs)
    return replace(sizes, services=arguments.services) if arguments.services else sizes


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the stages; 1 if something failed or an answer was wrong, 2 for wrong usage. A floor that is missed is said, not punished.

    A signal ends what was started, too.
    """
    arguments = parser().parse_args(argv)
    for flag, stage in _USED_BY.items():
        if getattr(arguments, flag) and stage not in arguments.stages:
            parser().error(f"--{flag}: only the stage {stage} uses it, which --stages leaves out")
    if arguments.json is not None and not arguments.json.absolute().parent.is_dir():
        parser().error(f"--json: there is no directory {arguments.json.absolute().parent}")
    try:
        with sigterm_interrupts():
            return _measure(arguments)
    except KeyboardInterrupt:
        return 130


def _measure(arguments: argparse.Namespace) -> int:
    cases: list[Case] = []
    began = time.time()
    _compile_modules()
    plan = Plan(_sizes(arguments), arguments.peers, arguments.seed)
    with display(len(arguments.stages)) as shown:
        plan.say = shown.say
        for name in arguments.stages:
            found = list(STAGES[name](plan))
            cases += found
            shown.show(found)
            if arguments.json is not None:  # after each stage: a whole run takes long
                arguments.json.write_text(json.dumps(_kept(plan, cases, began), indent=1) + "\n")
    _close(plan, cases)
    return 1 if any(case.failures for case in cases) else 0


def _compile_modules() -> None:
    """An installed package has its bytecode. In a checkout it may be missing, or old: then each run would begin with the compiler."""
    for folder in (Path(fastdisco.__file__).parent, Path(__file__).parent):
        compileall.compile_dir(folder, quiet=2)  # nothing where it is there; a folder that must not be written stays as it is


def _close(plan: Plan, cases: Sequence[Case]) -> None:
    missed = [f"{case.stage}: {case.name}: {floor.figure}: {floor}" for case in cases for floor, met in case.verdicts() if met is False]
    for one in missed:
        print(f"missed: {one}")
    for compared in plan.peers:
        if compared.remark:
            print(compared.remark)


def _kept(plan: Plan, cases: Sequence[Case], began: float) -> dict[str, object]:
    return {
        "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(began)),
        "seconds": time.time() - began,
        "machine": machine(),
        "versions": versions(),
        "peers": {one.name: {"path": str(one.path), "version": one.version, "remark": one.remark} for one in plan.peers},
        "seed": plan.seed,
        "encoding": "json",
        "units": UNITS,
        "sizes": asdict(plan.sizes),
        "cases": [as_json(case) for case in cases],
    }


if __name__ == "__main__":
    sys.exit(main())
