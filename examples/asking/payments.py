"""An agent that pays a bill again and again: the second time somebody is asked.

It plays its script by itself, without any model: it looks how far the bill is, and pays it.
"""

import otel_loopguard as loopguard
from otel_loopguard.breaking import Progress, terminal

paid: list[str] = []


@loopguard.tool(poll=True)
def bill_status(bill: str) -> str:
    """To be told the same five times is to wait, and no loop."""
    return f"The bill {bill} is being looked at by the accounts department, as it was before."


@loopguard.tool(irreversible=True, max_repeats=1)
def pay(bill: str) -> str:
    """Once is what it may be called with one bill; more than that needs a yes."""
    paid.append(bill)
    return f"The bill {bill} was paid."


def step(progress: Progress) -> None:
    if progress.iteration <= 5:
        bill_status("b-17")
    else:
        print(pay("b-17"))


def main() -> None:
    result = loopguard.run_guarded(step, name="payer", max_iterations=12, escalate=terminal())
    print(f"{result.stop_reason.value}: {len(paid)} payments in {result.iterations_used} steps")


if __name__ == "__main__":
    main()
