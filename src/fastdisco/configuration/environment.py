"""Variables of the environment inside a configuration file. `${NAME}` and `$1` belong to relabeling and are never touched."""

from __future__ import annotations

import re
from collections.abc import Mapping

from fastdisco.errors import ConfigError

_PERCENT = re.compile(r"%\{(.*?)\}", re.DOTALL)
_PARENTHESES = re.compile(r"\$\(([a-zA-Z_0-9]+)\)")  # as the reloader of prometheus-operator has it


def expand_percent(text: str, environment: Mapping[str, str]) -> str:
    """`%{NAME}` as vmagent expands it: values may hold such themselves, and what is not set stays as it is written."""
    if "%{" not in text:
        return text
    variables = dict(environment)
    for _ in variables:  # a chain of references is no longer than this, and one that bites its tail ends here
        expanded = {name: _percent(value, variables) for name, value in variables.items()}
        if expanded == variables:
            break
        variables = expanded
    return _percent(text, variables)


def expand_parentheses(text: str, environment: Mapping[str, str]) -> str:
    """`$(NAME)`; ConfigError for one that is not set."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in environment:
            line = text.count("\n", 0, match.start()) + 1
            raise ConfigError(f"line {line}: $({match[1]}): no such variable in the environment")
        return environment[match[1]]

    return _PARENTHESES.sub(value, text)


def _percent(text: str, variables: Mapping[str, str]) -> str:
    return _PERCENT.sub(lambda match: variables.get(match[1], match[0]), text) if "%{" in text else text
