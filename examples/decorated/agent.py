"""An agent without any framework: its functions are decorated. It plays a script by itself."""

import itertools
import os
import time
from collections.abc import Iterator

import shop

import otel_loopguard as loopguard

search_orders, list_orders, export_status, convert_price, read_notes, write_note = (
    loopguard.tool(tool) for tool in shop.TOOLS
)


def script(name: str) -> Iterator[str]:
    """What the agent does, by the name of the model that it would ask."""
    asked, _, tool = name.partition("+tool=")
    kind, _, count = asked.partition("-")
    times = range(int(count)) if count.isdigit() else itertools.count()
    if kind == "loop":
        yield from (search_orders("sample") for _ in times)
    elif kind == "paging":
        of_page = read_notes if tool == "read_notes" else list_orders
        yield from (of_page(page) for page in times)
    elif kind == "poll":
        yield from _until("done", export_status, "export-1")
    elif kind == "retry":
        yield from _until("euros", convert_price, "14 dollars")
    else:
        for n in range(3):
            yield read_notes("Mrs Sample")
            yield write_note(f"called {n} times")


def _until(word: str, tool: object, argument: str) -> Iterator[str]:
    result = ""
    while word not in result:
        result = tool(argument)
        yield result


@loopguard.agent(name="shop")
def work(name: str) -> str:
    result = "nothing"
    for result in script(name):  # noqa: B007 - the last one is the answer
        time.sleep(float(os.environ.get("PAUSE", "0")))
    return result


if __name__ == "__main__":
    print(work(os.environ.get("MODEL", "loop-8")))
