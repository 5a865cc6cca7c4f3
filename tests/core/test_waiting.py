"""Who waits asks again; who asks for something that never comes, or starts it anew, does not."""

from __future__ import annotations

import json

import pytest

from otel_loopguard.core.masking import is_clock
from otel_loopguard.core.model import Kind, Outcome, Sighting
from otel_loopguard.core.outcome import classify
from tests.core.steps import PAGE, SECOND, START, call, page, seen, utterances

IDS = ["cat-9cnga", "dog-6ezur", "owl-dvyop", "hen-9k0h9", "elk-m7qkh", "ant-rhj4z", "bee-4k6i5"]


def laps(*lap: Sighting, times: int) -> list[Sighting]:
    return list(lap) * times


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([call("job_status", 7, "Kopiert wird Teil 3.")] * 8, id="a tool for that"),
        pytest.param([call("sh", "sleep 30; tail -2 log", "epoch 3")] * 8, id="a shell sleeps"),
        pytest.param(
            laps(call("build", 7, "Building, with three warnings."), call("wait", 9), times=8),
            id="a wait between",
        ),
        pytest.param([call("checks", 7, "build\tpending\t0\nlint\tpass\t9s")] * 8, id="a table"),
        pytest.param([call("run", 7, "in_progress")] * 8, id="a word of a machine"),
        pytest.param(
            [
                step
                for n in range(8)
                for step in (
                    seen(Kind.MODEL, result="The build still goes on, so I will wait for it."),
                    call("run", 7, {"status": "running", "part": n}),
                )
            ],
            id="who says so each time",
        ),
    ],
)
def test_who_waits_is_left_alone(steps: list[Sighting]) -> None:
    assert utterances(steps) == []


@pytest.mark.parametrize(
    ("steps", "at"),
    [
        pytest.param([call("job_status", 7, page(1))] * 9, 3, id="a page is no state"),
        pytest.param([call("sh", "tail -2 sleeper.log", "epoch 3")] * 9, 3, id="nobody sleeps"),
        pytest.param([call("job_status", 7, "Teil 3")] * 19, 10, id="too long"),
        pytest.param(
            [
                call("sh", "scan", {"status": "running", "text": f"runs as session {i}"})
                for i in IDS
            ],
            6,
            id="each time another job",
        ),
        pytest.param(
            laps(
                call("sh", "cat state", {"wave": 4, "status": "pending"}),
                *[call("sh", n, page(n)) for n in range(4)],
                times=6,
            ),
            20,
            id="one of five looks at a state",
        ),
    ],
)
def test_who_does_not_wait(steps: list[Sighting], at: int) -> None:
    assert utterances(steps)[0][0] == at


def test_a_job_whose_request_has_an_id_is_still_one() -> None:
    asks = [
        call("job", 7, {"status": "running", "request_id": each, "of": "the job that you began"})
        for each in IDS
    ]
    assert utterances(asks) == []


def click(number: object, shot: str, **more: object) -> Sighting:
    shown = {"ok": True, "url": "https://a.example/", "title": "The start page of the shop"}
    return call("click", 3, json.dumps({**shown, "nodes": number, "shot": shot, **more}))


NODES = [187, 186, 189, 187, 190, 186, 188, 187, 189]


def test_a_number_that_only_wavers_is_no_news() -> None:
    steps = [click(number, f"s_{n}b{n}e.png") for n, number in enumerate(NODES)]
    told = utterances(steps)
    assert {(pattern, severity) for _, pattern, severity in told} == {("hard_loop", "warning")}
    assert told[0][0] <= 7


@pytest.mark.parametrize(
    "steps",
    [
        pytest.param([click(180 + n, "s_1.png") for n in range(9)], id="it grows"),
        pytest.param([click(n * 3 % 7 * 90, "s_1.png") for n in range(9)], id="it leaps"),
        pytest.param([click(n / 7 + 3, "s_1.png") for n in NODES], id="a measure"),
        pytest.param(
            [call("price", "a", {"cents": number}) for number in NODES], id="all there is"
        ),
        pytest.param(
            [
                click(number, "s_1.png", of=["ab", "cde", "f"][: n % 3])
                for n, number in enumerate(NODES)
            ],
            id="other things too",
        ),
    ],
)
def test_numbers_that_are_news(steps: list[Sighting]) -> None:
    assert utterances(steps) == []


CLOCKS = ["2026-05-13 09:41:{}", '{{"now": "2026-05-13T09:41:{}Z"}}', "Current time: 09:41:{} UTC"]


@pytest.mark.parametrize("text", CLOCKS)
def test_who_asks_what_time_it_is_hears_news(text: str) -> None:
    assert is_clock(text.format(10))
    assert utterances([call("clock", "UTC", text.format(10 + 3 * n)) for n in range(10)]) == []


@pytest.mark.parametrize(
    "text", ["Nothing new as of 09:41:{}; the office is shut.", "done at 09:41:{}, 3 rows are left"]
)
def test_what_says_more_than_the_time(text: str) -> None:
    assert not is_clock(text.format(10))
    times = [call("look", "x", text.format(10 + 3 * n)) for n in range(12)]
    assert utterances(times)[0][1] == "hard_loop"


def test_a_state_in_a_column() -> None:
    assert classify("web-0  0/1  Pending", deep=True) is Outcome.PENDING
    assert classify("the pending order was paid", deep=True) is Outcome.OK


def test_waits_of_long_ago_count_no_more() -> None:
    waits = [call("job", 7, {"status": "queued"})]
    work = [call("read", n, page(n), start_ns=START, end_ns=START) for n in range(12)]
    assert utterances([*waits, *work, *[call("look", 1, page(99))] * 3])[0][1] == "hard_loop"


def user(text: object) -> Sighting:
    return Sighting(Kind.USER, "user", args=text)


@pytest.mark.parametrize(
    "text",
    [
        "Run the test 12 times, I want to know whether it is flaky.",
        "Starte den Test bitte 12 mal",
        "Lance le test 12 fois",
        "Starte den Test zwölfmal",
        "Lance le test douze fois",
        "运行这个测试12次",
        "bench it 12x please",
    ],
)
def test_what_the_user_asks_for_so_many_times(text: str) -> None:
    runs = [call("sh", "pytest -q", f"1 passed in 0.{n:02}s") for n in range(20, 40)]
    assert utterances([user(text), *runs[:12]]) == []
    assert 13 < utterances([user(text), *runs])[0][0] < 17
    assert utterances([user(text), user("go on"), *runs])[0][0] < 12


@pytest.mark.parametrize(
    "text",
    ["Run the test of issue 12.", "It failed at 12:30", "12 monkeys", None, {"n": "12 times"}],
)
def test_what_no_user_asks_for(text: object) -> None:
    assert utterances([user(text), *[call()] * 9])[0][:2] == (4, "hard_loop")


@pytest.mark.parametrize(
    "text",
    [
        "put 4 apples into the cart",
        "Leg vier Äpfel in den Korb",
        "把4个苹果放进购物车",
        "quatre pommes",
    ],
)
def test_so_many_things_as_the_user_wants(text: str) -> None:
    adds = [call("add", "apple", {"ok": True})] * 9
    assert utterances([user(text), *adds])[0][:2] == (6, "hard_loop")
    ids = [call("draw", "a boat", f"https://a.example/i/{n:08x}.png") for n in range(70001, 70006)]
    assert utterances([user(text), *ids]) == []


@pytest.mark.parametrize(
    "text", ["see #4", "4% of it", "at 4:30", "of 2026-04-04", "v4", "40 apples", "it costs 0.4"]
)
def test_numbers_that_are_not_of_things(text: str) -> None:
    assert utterances([user(text), *[call("add", "apple", {"ok": True})] * 9])[0][0] == 4


def test_of_many_things_at_once_nobody_is_only_told_that_it_is_done() -> None:
    adds = [call("add", "apple", {"ok": True})] * 9
    assert utterances([user("we meet at 9 then"), *adds])[0][:2] == (6, "hard_loop")


def test_a_page_is_no_thing_that_is_wanted() -> None:
    pages = [call("draw", "a boat", f"{PAGE} at 10:00:{n:02}") for n in range(9)]
    assert utterances([user("the 9 newest"), *pages])[0][:2] == (6, "hard_loop")


def test_what_is_wanted_is_made_and_not_only_looked_at() -> None:
    assert utterances([user("list the 4 newest"), *[call()] * 9])[0][:2] == (4, "hard_loop")


def tail(told: str) -> list[Sighting]:
    """A feed that says something new (a letter), or that there is nothing new (a dot)."""
    news = {each: f"node {each}{each} is on the new release now" for each in told}
    return [call("feed", "a", "(no line has come)" if each == "." else news[each]) for each in told]


def test_what_changes_by_itself_may_be_the_same_for_a_while() -> None:
    assert utterances(tail("a..bc.d.e...fg....h")) == []
    dice = [call("die", 6, {"eyes": int(n)}) for n in "15251562553455222555"]
    assert utterances(dice) == []


def test_what_changes_by_itself_and_then_never_again() -> None:
    assert utterances(tail("a..b.c.d..........."))[0][:2] == (18, "hard_loop")


@pytest.mark.parametrize(
    ("steps", "at"),
    [
        pytest.param(tail("abcdefg...."), 10, id="pages up to the last"),
        pytest.param(tail("a..b...."), 7, id="it changed too seldom to tell"),
        pytest.param(
            [
                step
                for n, text in enumerate("abababa")
                for step in (call("test", "x", f"FAILED: test {text} of 12"), call("edit", n, "ok"))
            ]
            + [call("test", "x", "FAILED: test b of 12")] * 4,
            17,
            id="it did not change by itself",
        ),
    ],
)
def test_what_does_not_change_by_itself(steps: list[Sighting], at: int) -> None:
    assert utterances(steps)[0][:2] == (at, "hard_loop")


def test_keys_are_pressed_and_pages_scrolled_again_and_again() -> None:
    assert utterances([call("press_key", "Down", "ok")] * 9) == []
    assert utterances([call("press_key", "Down", "")] * 9) == []
    assert (
        utterances([call("press_key", each, "") for each in ["Up", *["Down"] * 7, "Enter"]]) == []
    )
    assert utterances([call("press_key", "Down", page(1))] * 9)[0][0] == 3
    assert utterances([call("type_text", "Down", "ok")] * 9)[0][0] == 3


def watch(seconds: int, times: int = 9, result: str = "[]") -> list[Sighting]:
    """Somebody looks, says so, and looks again after so many seconds."""
    steps: list[Sighting] = []
    for n in range(times):
        now = START + n * (seconds + 2) * 10**9
        says = "There is nothing new in the feed so far, I will look at it again later."
        steps += [
            call("feed", "a", result, start_ns=now, end_ns=now + 10**9),
            seen(Kind.MODEL, result=says, start_ns=now + 10**9, end_ns=now + 2 * 10**9),
        ]
    return steps


def test_who_looks_again_after_a_while_may_say_so() -> None:
    assert utterances(watch(60)) == []
    assert utterances(watch(2)) != []


def test_who_looks_again_at_regular_times_may_do_so_for_long() -> None:
    assert utterances(watch(300, 30)) == []
    assert utterances(watch(30, 30))[0][:2] == (29, "hard_loop")
    assert utterances(watch(300, 30, PAGE))[0][:2] == (11, "hard_loop")


def test_who_listens_for_long_waits() -> None:
    def listen(seconds: int, result: str) -> list[Sighting]:
        return [
            call("receive", "jobs", result, start_ns=at, end_ns=at + seconds * SECOND)
            for at in range(START, START + 9 * (seconds + 2) * SECOND, (seconds + 2) * SECOND)
        ]

    assert utterances(listen(30, "[]")) == utterances(listen(30, "nothing came in 30 s")) == []
    assert utterances(listen(2, "[]"))[0][:2] == (3, "hard_loop")
    ends = [each._replace(start_ns=0) for each in listen(30, "[]")]
    assert utterances(ends)[0][:2] == (3, "hard_loop")
    assert utterances(listen(30, PAGE))[0][:2] == (3, "hard_loop")


RUNS = call("start", "./migrate", {"process": "p-1", "status": "running"})
LINE = call("output", "p-1", "Migrating the table of orders (which is a large one)")


def test_what_another_tool_has_begun_takes_a_while() -> None:
    assert utterances([RUNS, *[LINE] * 6]) == []


@pytest.mark.parametrize(
    ("steps", "at"),
    [
        pytest.param(
            [call("start", "./migrate", "It is done: 12 tables"), *[LINE] * 6], 4, id="done"
        ),
        pytest.param([RUNS, call("read", "x"), *[LINE] * 6], 5, id="something else came first"),
        pytest.param([RUNS, *[call("output", "p-1")] * 6], 4, id="a page says enough"),
        pytest.param([RUNS, *[LINE] * 12], 9, id="not for ever"),
        pytest.param([RUNS, RUNS, *[LINE] * 6], 5, id="it was waited for already"),
    ],
)
def test_what_nobody_waits_for(steps: list[Sighting], at: int) -> None:
    assert utterances(steps)[0][:2] == (at, "hard_loop")
