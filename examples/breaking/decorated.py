"""An agent without any framework: its functions are decorated, and it plays a script by itself.

What it took besides: one `except`, for OTEL_LOOPGUARD_ACTION=break.
"""

import os

import shop

import otel_loopguard as loopguard

search_orders = loopguard.tool(shop.search_orders)


@loopguard.agent(name="shop")
def work(model: str, found: list[str]) -> str:
    """Search again and again; a model called `nudge` stops when it is told that it need not."""
    kind, _, times = model.partition("-")
    for _ in range(int(times)):
        found.append(search_orders("sample"))
        if kind == "nudge" and "not made" in found[-1]:
            break
    return f"Finished after {len(found)} turns."


def main() -> None:
    found: list[str] = []
    try:
        print(work(os.environ.get("MODEL", "loop-8"), found))
    except loopguard.DeadlockError as stop:
        print(f"{stop}; all {len(found)} results so far are there")


if __name__ == "__main__":
    main()
