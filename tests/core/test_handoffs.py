"""delegation_loop: what goes round between agents, and what only looks like it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from otel_loopguard.core import handoffs
from otel_loopguard.core.handoffs import MAX_AGENTS, MAX_ERRANDS
from otel_loopguard.core.model import MISSING, Kind, Sighting
from otel_loopguard.core.tasks import names
from tests.core.steps import PAGE, SECOND, START, call, make_guard, observe, page, seen, utterances

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from otel_loopguard.core.guard import Guard
    from tests.core.steps import Spoken

TASK = "Please verify whether the invoice 4711 was paid before the end of March."
REWORDED = (
    TASK,
    "Please verify if the invoice 4711 was really paid before the end of March.",
    "Verify please whether invoice 4711 was already paid before the end of March.",
    "Please verify online whether the invoice 4711 was paid before the end of March.",
    "Please verify whether the invoice 4711 was paid in full before the end of March.",
)


def hand(text: object, target: str = "worker", caller: str = "boss") -> Sighting:
    return Sighting(Kind.HANDOFF, target, args=text, agent=caller)


def say(text: str, agent: str) -> Sighting:
    return Sighting(Kind.MODEL, "model", result=text, agent=agent)


def transfer(caller: str, target: str, result: object = "ok") -> Sighting:
    return Sighting(
        Kind.TOOL, "transfer_to_agent", args={"agent_name": target}, result=result, agent=caller
    )


def work(number: int, agent: str = "worker") -> Sighting:
    return call("read", f"page {number}", f"{PAGE}{number}", agent=agent)


def spoken(steps: Sequence[Sighting]) -> list[Spoken]:
    return [each for each in utterances(steps) if each[1] == "delegation_loop"]


# -- the same task again --------------------------------------------------------------------------


def test_the_same_is_asked_again_and_nothing_comes_of_it() -> None:
    assert spoken([hand(text) for text in REWORDED]) == [
        (3, "delegation_loop", "warning"),
        (5, "delegation_loop", "critical"),
    ]


def test_what_the_caller_says_meanwhile_is_no_news() -> None:
    steps: list[Sighting] = []
    for number, text in enumerate(REWORDED[:3]):
        steps += [say(f"{number} of my thoughts", "boss"), hand(text)]
    assert spoken(steps) == [(6, "delegation_loop", "warning")]


def test_where_a_little_comes_of_it_it_takes_longer() -> None:
    steps: list[Sighting] = []
    for number, text in enumerate(REWORDED):
        steps += [hand(text), work(number)]
    assert spoken(steps) == [(7, "delegation_loop", "warning")]


def test_where_much_comes_of_it_it_is_another_errand() -> None:
    steps: list[Sighting] = []
    for number in range(10):
        steps += [hand(TASK), *(work(10 * number + page) for page in range(handoffs.MUCH + 1))]
    assert spoken(steps) == []


def test_a_work_list_that_shrinks_is_progress() -> None:
    items = [f"'item number {number}'" for number in range(8)]
    lists = [f"Please check the stock of {', '.join(items[start:])}." for start in range(7)]
    assert spoken([hand(text) for text in lists]) == []
    assert spoken([hand(lists[0]) for _ in range(3)]) == [(3, "delegation_loop", "warning")]


def test_a_phrase_that_fits_any_task_is_no_task() -> None:
    steps: list[Sighting] = []
    for number in range(10):
        steps += [hand("Please go on with the next item on your list."), work(number)]
    assert spoken(steps) == []
    assert spoken([hand("Please go on.") for _ in range(3)]) == [(3, "delegation_loop", "warning")]


def test_a_call_that_only_names_an_agent_may_ask_about_it() -> None:
    steps: list[Sighting] = []
    for number in range(8):
        board = {"owner": "worker", "status": "in_progress", "note": f"part {number} of the parser"}
        steps += [
            call("update", number, "ok", agent="worker"),
            Sighting(
                Kind.TOOL,
                "list",
                args={"owner": "worker", "status": "in_progress"},
                result=[board],
                agent="boss",
            ),
        ]
    assert spoken(steps) == []


def test_each_agent_has_its_own_errands() -> None:
    steps = [hand(TASK, target) for target in ("legal", "finance", "audit", "archive")]
    assert spoken(steps) == []


def test_a_hand_over_without_a_task_is_one_to_that_agent() -> None:
    hand_over = Sighting(Kind.HANDOFF, "worker", agent="boss")
    assert spoken([hand_over] * 3) == [(3, "delegation_loop", "warning")]
    unknown = [Sighting(Kind.MODEL, "model", agent="worker"), call("read", agent="worker")]
    assert spoken([hand_over, unknown[0]] * 9) == []
    assert spoken([hand_over, unknown[1]._replace(result=MISSING)] * 9) == []


def relay(agents: str, times: int, work_at: int | None = None) -> list[Sighting]:
    steps: list[Sighting] = []
    for number in range(times):
        caller, target = (agents[(number + more) % len(agents)] for more in (0, 1))
        steps.append(hand(f"Reason: {' '.join(PAGE.split()[number : number + 3])}", target, caller))
        if number == work_at:
            steps.append(work(number, target))
    return steps


def test_agents_that_only_hand_over_go_round_whatever_they_say() -> None:
    assert spoken(relay("AB", 12)) == [
        (7, "delegation_loop", "warning"),
        (12, "delegation_loop", "critical"),
    ]
    assert spoken(relay("ABC", 8)) == [(7, "delegation_loop", "warning")]
    assert spoken(relay("AB", 12, work_at=5)) == []
    assert spoken(relay("ABCD", 12)) == [(9, "delegation_loop", "warning")]
    assert spoken(relay("ABCDEFGH", 30)) == []
    star = [way for each in "BCDEF" for way in ("A" + each, each + "A")]
    once = [hand(f"Reason {PAGE[n:][:9]} {n}", way[1], way[0]) for n, way in enumerate(star)]
    assert spoken(once) == []


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(lambda n: page(n)[:300], id="drafts"),
        pytest.param(lambda n: f"I could pay {4_000 + 150 * n} euro for it.", id="numbers"),
        pytest.param(lambda n: f"Have a look at '{'abcdefgh'[n % 8] * 9}'.", id="names"),
        pytest.param(lambda n: " ".join(f"{'bcdfghjklmnp'[n] * 4}{e}" for e in "aeiouy"),
                     id="other words"),
    ],
)  # fmt: skip
def test_what_they_hand_over_may_be_their_work(text: Callable[[int], str]) -> None:
    steps = relay("AB", 12)
    told = [each._replace(args=text(number % 12)) for number, each in enumerate(steps)]
    assert spoken(told[:8]) == []
    sent = [
        Sighting(Kind.TOOL, "send", args={"to": each.action, "text": each.args}, result="ok",
                 agent=each.agent)
        for each in told
    ]  # fmt: skip
    assert spoken(sent[:8]) == []
    assert spoken(told * 3) != []  # by then nothing of it is new


def test_a_word_in_passing_is_nothing_done() -> None:
    passing: list[Sighting] = []
    answers: list[Sighting] = []
    longer: list[Sighting] = []
    for number, step in enumerate(relay("AB", 12)):
        agent = step.agent or ""
        passing += [say(f"Over to you, for the {number}th time.", agent), step]
        answers += [hand(f"What is {number} by 7? {number}", "B", "A"), say(f"{number * 7}", "B")]
        longer += [say(page(number), agent), step]
    assert spoken(passing)[0] == (14, "delegation_loop", "warning")
    assert spoken(answers) == []
    assert spoken(longer) == []


def test_what_is_asked_on_a_schedule_is_waiting() -> None:
    steps = [
        hand(TASK)._replace(start_ns=START + at, end_ns=START + at)
        for at in range(0, 8 * 60 * SECOND, 60 * SECOND)
    ]
    assert spoken(steps) == []
    hurried = [each._replace(start_ns=START, end_ns=START) for each in steps]
    assert spoken(hurried)[0] == (3, "delegation_loop", "warning")


@pytest.mark.parametrize(
    "news",
    [
        call("status", "job", "still running", agent="worker"),
        call("save", "invoice 7", "ok", agent="worker"),
        say("The payment came on the 5th.", "worker"),
        seen(Kind.EFFECT),
    ],
)
def test_what_came_of_it_is_news(news: Sighting) -> None:
    go_on = [hand("Please go on."), hand("Please go on."), news, hand("Please go on.")]
    assert spoken(go_on) == []


@pytest.mark.parametrize(
    "nothing",
    [
        call("read", "gone", "no such page", error="NotFound", agent="worker"),
        call("find", "it", "", agent="worker"),
        say("", "worker"),
    ],
)
def test_failures_and_empty_answers_are_no_news(nothing: Sighting) -> None:
    go_on = [hand("Please go on."), nothing, hand("Please go on."), nothing, hand("Please go on.")]
    assert spoken(go_on) == [(5, "delegation_loop", "warning")]


def test_a_user_turn_starts_over() -> None:
    steps = [hand(TASK), hand(TASK), seen(Kind.USER), hand(TASK), hand(TASK)]
    assert spoken(steps) == []


# -- to and fro -----------------------------------------------------------------------------------


def ping_pong(laps: int, *, texts: bool) -> list[Sighting]:
    steps: list[Sighting] = []
    for lap in range(laps):
        for caller, target in (("writer", "critic"), ("critic", "writer")):
            draft = f"{PAGE} Draft {lap} of the {caller}" if texts else "Let me transfer you."
            steps += [say(draft, caller), transfer(caller, target)]
    return steps


def test_agents_transfer_to_each_other_and_do_nothing() -> None:
    assert spoken(ping_pong(4, texts=False))[0][1:] == ("delegation_loop", "warning")
    assert [each for each in utterances(ping_pong(6, texts=False)) if "hard" in each[1]] == []


def test_a_call_that_only_names_an_agent_hands_nothing_over() -> None:
    board = call("tasks", "x", "no open task", agent="lead")._replace(args={"owner": "worker"})
    steps: list[Sighting] = [work(0), board]
    for number in range(1, 6):
        steps += [board, say(f"{PAGE}{number}", "lead")]
    assert spoken(steps) == []
    assert next(iter(utterances(steps)))[1:] == ("hard_loop", "warning")


def test_agents_take_turns_and_write_something_new() -> None:
    assert utterances(ping_pong(8, texts=True)) == []


def test_a_supervisor_may_hand_over_by_what_it_says() -> None:
    steps = [say('{"next": "coder"}', "supervisor"), say("I need the specification.", "coder")]
    assert spoken(steps * 3) == []
    assert spoken(steps * 4) == [(8, "delegation_loop", "warning")]
    answers = [say(f"{PAGE}{number}", "coder") for number in range(6)]
    assert spoken([step for answer in answers for step in (steps[0], answer)]) == []


def test_a_call_names_an_agent_by_a_value_or_in_the_tools_name() -> None:
    assert names("writer", "transfer_to_writer", ())
    assert names("writer", "delegate", ["task", "writer"])
    assert names("support desk", "ask:support desk", [])
    assert names("Support Desk", "transfer_to_support_desk", [])
    assert names("product-owner", "notify", ["@Product_Owner"])
    assert not names("Support Desk", "transfer_to_support_desks", [])
    assert not names("Adam", "notify", ["Adamant"])
    assert not names("writer", "rewriter", ())
    assert not names("writer", "search", ["a writer of novels"])
    assert not names("a", "transfer_to_a", ())


def test_a_start_and_its_end_are_one_errand() -> None:
    def lap(text: str, answer: str) -> list[Sighting]:
        end = Sighting(Kind.AGENT, "worker", args=text, result=answer, agent="boss")
        return [hand(text), say(answer, "worker"), end]

    steps = [step for text in REWORDED for step in lap(text, "I cannot tell.")]
    assert [at for at, _, _ in spoken(steps)] == [10]
    by_tool = [
        each._replace(kind=Kind.TOOL, action="ask_worker") if each.kind is Kind.AGENT else each
        for each in steps
    ]
    assert [at for at, _, _ in spoken(by_tool)] == [10]


def test_an_answer_is_no_errand() -> None:
    steps = [hand("Look."), say("Nothing there.", "worker"), say("Hm.", "boss")]
    assert {each[0] % 3 for each in spoken(steps * 6)} == {1}


# -- passed on ------------------------------------------------------------------------------------


def start(caller: str, task: object = TASK, result: str = "(started)") -> Sighting:
    return Sighting(Kind.TOOL, "call_agent", args={"message": task}, result=result, agent=caller)


def test_each_agent_passes_the_task_on_to_a_new_one() -> None:
    steps = [start(f"agent {number}") for number in range(12)]
    assert spoken(steps) == [
        (4, "delegation_loop", "warning"),
        (6, "delegation_loop", "critical"),
        (12, "delegation_loop", "critical"),
    ]


def chain(tasks: Sequence[str], *, notes: Sequence[str], work_at: int = -1) -> list[Sighting]:
    """Each agent starts the next one by a tool, which the framework then hands over to."""
    steps = [hand(tasks[0], "agent 0", "main")]
    for number, (task, note) in enumerate(zip(tasks, notes, strict=True)):
        agent, target = f"agent {number}", f"agent {number + 1}"
        started = Sighting(
            Kind.TOOL,
            "start",
            args={"type": "general", "prompt": task},
            result=f"started: {hash(task)}{number}",
            agent=agent,
        )
        if number == work_at:
            steps.append(call("save", f"row {number}", "ok", agent=agent))
        steps += [started, say("It runs in the background.", agent), hand(note, target, agent)]
    return steps


LONGER = (
    "Recherchiere, wie die Wiederholungen in allen Diensten eingestellt sind, und nenne die Zeile.",
    "Finde heraus, wie die Wiederholungen in allen Diensten eingestellt sind; nenne die Zeile.",
    "Recherchiere bitte, wie Wiederholungen in allen Diensten eingestellt sind, nenne eine Zeile.",
)


@pytest.mark.parametrize(
    ("tasks", "notes"),
    [
        pytest.param([TASK] * 5, [TASK] * 5, id="the same text all along"),
        pytest.param([TASK] * 5, ["check it"] * 5, id="the hand-off says something else"),
        pytest.param(list(REWORDED), list(REWORDED), id="reworded each time"),
        pytest.param([LONGER[n % 3] for n in range(5)], [""] * 5, id="reworded in German"),
        pytest.param(
            ["查一下所有服务的重试是怎么配置的, 报告文件和行号。"] * 5, [""] * 5, id="Chinese"
        ),
    ],
)
def test_a_task_is_passed_on_by_tools_and_hand_offs_in_turn(
    tasks: list[str], notes: list[str]
) -> None:
    assert spoken(chain(tasks, notes=notes))[0] == (8, "delegation_loop", "warning")
    assert [at for at, _, _ in spoken(chain(tasks, notes=notes, work_at=2))] == []


def test_who_passes_a_task_on_may_divide_it() -> None:
    parts = [f"{TASK} Only branch {number}." for number in range(9)]
    assert spoken(chain(parts, notes=["go on"] * 9)) == []
    others = [f"Do the {name} part." for name in ("first", "legal", "price", "last", "text")]
    assert spoken(chain(others, notes=others)) == []


def test_messages_that_thank_for_messages() -> None:
    thanks = ("Thank you, noted.", "With pleasure!", "Nothing else from me.", "I stay on call.")
    steps = [hand("Please translate the note.", "Worker", "Lead"), work(1, "Worker")]
    for number in range(9):
        sent = {"session": "@worker" if number % 2 else "lead", "text": thanks[number * 7 % 4]}
        agent, target = ("Lead", "Worker") if number % 2 else ("Worker", "Lead")
        told = Sighting(Kind.TOOL, "send", args=sent, result='{"status":"ok"}', agent=agent)
        steps += [told, say(thanks[number * 5 % 4], target)]
    assert [at <= 18 for at, _, _ in spoken(steps)][:1] == [True]
    steps[10:10] = [work(2, "Lead")]
    assert spoken(steps) == []


def test_tasks_that_get_smaller_are_divided_not_passed_on() -> None:
    steps = [start(f"agent {number}", f"Do part {number} of {TASK}") for number in range(12)]
    assert spoken(steps) == []


def test_agents_that_look_at_the_same_thing_pass_nothing_on() -> None:
    steps = [call("read", TASK, PAGE, agent=f"agent {number}") for number in range(12)]
    assert spoken(steps) == []
    at_once = [say("", f"agent {number}") for number in range(12)]
    steps = [*at_once, *(start(f"agent {number}") for number in range(12))]
    assert spoken(steps) == []


def test_who_gets_a_task_may_do_something_else_first() -> None:
    steps: list[Sighting] = []
    for number in range(6):
        steps += [start(f"agent {number}"), work(number, f"agent {number + 1}")]
    assert spoken(steps) == []


def test_who_works_on_a_task_before_passing_it_on_is_part_of_a_pipeline() -> None:
    steps: list[Sighting] = []
    for number in range(8):
        text = f"{PAGE} part {number}"
        steps += [hand(TASK, f"agent {number + 1}", f"agent {number}")]
        steps += [say(text, f"agent {number + 1}")]
    assert spoken(steps) == []
    brief = [
        each if each.kind is Kind.HANDOFF else each._replace(result="On it.") for each in steps
    ]
    assert spoken(brief)[0] == (7, "delegation_loop", "warning")


def test_nothing_is_passed_on_without_a_task() -> None:
    steps = [
        Sighting(Kind.TOOL, "next", args=args, result="ok", agent=f"agent {number}")
        for number, args in enumerate([{}] * 8)
    ]
    assert spoken(steps) == []


# -- nested runs ----------------------------------------------------------------------------------


def nested(guard: Guard, depth: int, *, linked: bool) -> list[Spoken]:
    """Two agents that ask each other the same, each in a run of its own."""
    found: list[Spoken] = []
    for number in range(depth):
        caller, target = ("legal", "tech") if number % 2 == 0 else ("tech", "legal")
        parent = f"run {number - 1}" if number and linked else None
        step = Sighting(
            Kind.TOOL, f"ask_{target}", args={"message": TASK}, result="(started)", agent=caller
        )
        told = guard.observe(f"run {number}", step._replace(parent=parent))
        found += [
            (number + 1, each.finding.pattern.value, each.finding.severity.label)
            for each in told.utterances
        ]
    return found


def test_runs_that_are_nested_in_each_other_share_what_is_handed_over() -> None:
    assert nested(make_guard(), 7, linked=True) == [
        (4, "delegation_loop", "warning"),
        (6, "delegation_loop", "critical"),
    ]
    assert nested(make_guard(), 7, linked=False) == []


def test_a_parent_that_is_not_known_is_none() -> None:
    told = make_guard().observe("child", start("agent")._replace(parent="nobody"))
    assert told.utterances == ()


# -- bounds ---------------------------------------------------------------------------------------


def test_the_record_of_hand_overs_is_bounded() -> None:
    guard = make_guard()
    observe([hand(f"Do part {n} of {TASK}", f"worker {n}", f"boss {n}") for n in range(99)], guard)
    run = guard._runs.get("run")
    assert run is not None
    assert run.handoffs is not None
    assert len(run.handoffs._errands) == MAX_ERRANDS
    assert len(run.handoffs._agents) == MAX_AGENTS
    run.condense()
    assert run.handoffs is None


def test_a_run_of_one_agent_keeps_no_record() -> None:
    guard = make_guard()
    observe([say("", "one"), work(1, "one"), work(2, "one")], guard)
    run = guard._runs.get("run")
    assert run is not None
    assert run.handoffs is None
