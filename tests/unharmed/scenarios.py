"""What the scripted model does for the apps besides its own scenarios: it fails, and it is late."""

from __future__ import annotations

import itertools
import time

from examples.scripted_model import Reply, Scenario, ScriptedModel, Turn, WireError


def _fails(status: int) -> Scenario:
    def scenario(_: Turn) -> Reply:
        raise WireError(status, "scripted_failure", f"the model says {status}")

    return scenario


def _flaky() -> Scenario:
    """Every other request fails."""
    number = itertools.count()

    def scenario(_: Turn) -> Reply:
        if next(number) % 2 == 0:
            raise WireError(500, "scripted_failure", "the model fails now and then")
        return Reply("it works")

    return scenario


def _slow(_: Turn) -> Reply:
    time.sleep(0.6)
    return Reply("at last")


def model() -> ScriptedModel:
    """A scripted model for one run of an app: it counts, so each run needs its own."""
    named = {f"fail-{status}": _fails(status) for status in (400, 429, 500)}
    return ScriptedModel(scenarios={**named, "flaky": _flaky(), "slow": _slow}, log_size=0)
