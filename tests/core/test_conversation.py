"""Which request continues which conversation; each case beside the one that goes the other way."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    invariant,
    precondition,
    rule,
)

from otel_loopguard.core.conversation import (
    Answer,
    Ask,
    Chain,
    Conversations,
    Link,
    LinkKind,
    ModelRequest,
    ModelResponse,
)
from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.model import MISSING

NEW, CONTINUED, FOLLOW_UP, AMBIGUOUS = LinkKind


def make(**options: Any) -> Conversations:
    runs = map(str, itertools.count(1))
    options = {"keep_args": True, **options}
    return Conversations(Fingerprinter(b"key"), new_run=lambda: next(runs), **options)


@dataclass
class Script:
    """A client that keeps its history: user and assistant messages and results, in order."""

    conversations: Conversations
    head: str = "find the bug"
    history: list[Any] = field(default_factory=list)
    chain: Chain | None = None
    now: int = 1

    def __post_init__(self) -> None:
        self.history = self.history or [self.head]

    def request(self, **changes: Any) -> ModelRequest:
        history = self.history
        at = max((i for i, m in enumerate(history) if isinstance(m, ModelResponse)), default=-1)
        after = history[at + 1 :]
        last = history[at] if at >= 0 else None
        request = ModelRequest(
            "openai",
            offers_tools=True,
            answers=tuple(m for m in after if isinstance(m, Answer)),
            last_assistant=MISSING if last is None else (last.text or "", last.asks),
            user_turn=any(isinstance(m, str) for m in after),
            head=history[0] if isinstance(history[0], str) else None,
            size=len(history),
        )
        return request._replace(**changes)

    def send(self, hint: Chain | None = None, **changes: Any) -> Link:
        self.now += 1
        link = self.conversations.request(self.request(**changes), self.now, hint)
        self.chain = link.chain
        return link

    def hear(self, *asks: Ask, text: str | None = None, **more: Any) -> ModelResponse:
        """The model answers; the client puts it into its history."""
        assert self.chain is not None
        response = ModelResponse(text=text, asks=asks, **more)
        self.conversations.response(self.chain, response, self.now)
        self.history.append(response)
        return response

    def result(self, call_id: str | None, result: str = "nothing", name: str | None = None) -> None:
        self.history.append(Answer(call_id, name, result))

    def fork(self) -> Script:
        return Script(self.conversations, self.head, [*self.history], self.chain, self.now)


def ask(call_id: str | None = "c1", query: str = "x", name: str = "search") -> Ask:
    return Ask(call_id, name, f'{{"q": "{query}"}}')


def asked(conversations: Conversations, *asks: Ask, head: str = "find the bug") -> Script:
    """A conversation whose first response asks for something."""
    script = Script(conversations, head)
    script.send()
    script.hear(*asks)
    return script


def firsts(link: Link) -> list[tuple[str | None, bool]]:
    return [(a.answer.call_id, a.first_time) for a in link.answered]


class TestCalls:
    def test_the_answer_to_a_call_continues_its_run(self) -> None:
        script = asked(make(), ask())
        first = script.chain
        script.result("c1", "found")
        link = script.send()
        assert (link.kind, link.chain) == (CONTINUED, first)
        (seen,) = link.answered
        assert seen.ask == ask()
        assert seen.first_time
        assert (seen.pending.uid, seen.pending.asked_ns) == ("c1", 2)

    def test_a_request_without_history_is_a_new_run_even_with_a_hint(self) -> None:
        conversations = make()
        script = asked(conversations, ask())
        other = Script(conversations)
        assert other.send(hint=script.chain).kind is NEW
        assert other.chain is not script.chain

    @pytest.mark.parametrize("changed", [ask("c2"), ask(query="y"), ask(name="fetch")])
    def test_id_name_and_arguments_have_to_agree(self, changed: Ask) -> None:
        conversations = make()
        mine = asked(conversations, ask())
        stranger = Script(conversations, "another task", ["another task"])
        stranger.history += [ModelResponse(asks=(changed,)), Answer(changed.call_id, None, "r")]
        link = stranger.send()
        assert link.kind is NEW
        assert link.chain is not mine.chain

    def test_arguments_agree_whatever_their_spelling(self) -> None:
        script = asked(make(), Ask("c1", "search", '{"a": 1, "b": 2}'))
        mine = script.chain
        script.history[-1] = ModelResponse(asks=(Ask("c1", "search", {"b": 2, "a": 1}),))
        script.result("c1")
        assert script.send().chain is mine

    def test_arguments_too_large_for_a_digest_leave_the_id(self) -> None:
        huge = Ask("c1", "write", {"rows": list(range(200_000))})
        assert Fingerprinter(b"key").of_args(huge.args) is None
        script = asked(make(), huge)
        mine = script.chain
        script.result("c1")
        assert script.send().chain is mine

    def test_parallel_answers_are_one_round(self) -> None:
        script = asked(make(), ask("c1"), ask("c2", "y"))
        script.result("c2")
        script.result("c1")
        link = script.send()
        assert firsts(link) == [("c2", True), ("c1", True)]
        assert link.answered[0].ask == ask("c2", "y")
        assert len({seen.pending.round for seen in link.answered}) == 1

    def test_the_rounds_of_two_responses_differ(self) -> None:
        script = asked(make(), ask("c1"))
        rounds = []
        for nth in (1, 2):
            script.result(f"c{nth}")
            rounds += [seen.pending.round for seen in script.send().answered]
            script.hear(ask(f"c{nth + 1}"))
        assert len(set(rounds)) == 2

    def test_parallel_answers_in_several_requests_are_each_seen_once(self) -> None:
        script = asked(make(), ask("c1"), ask("c2", "y"))
        script.result("c1")
        assert firsts(script.send()) == [("c1", True)]
        script.result("c2")
        link = script.send()
        assert (link.kind, firsts(link)) == (CONTINUED, [("c1", False), ("c2", True)])

    def test_an_answer_after_another_response_still_finds_its_call(self) -> None:
        script = asked(make(), ask("c1"), ask("c2", "y"))
        script.result("c1")
        script.send()
        script.hear(text="the second result is missing")
        script.result("c2")
        link = script.send()
        assert firsts(link) == [("c2", True)]
        assert link.answered[0].ask == ask("c2", "y")
        assert firsts(script.send()) == [("c2", False)]

    def test_parallel_calls_written_as_one_message_each(self) -> None:
        script = asked(make(), ask("c1"), ask("c2", "y"))
        mine = script.chain
        script.history[-1:] = [ModelResponse(asks=(ask("c2", "y"),)), Answer("c2", None, "r2")]
        earlier = ((ask("c1"), Answer("c1", None, "r1")),)
        link = script.send(earlier=earlier)
        assert link.chain is mine
        assert firsts(link) == [("c1", True), ("c2", True)]
        assert firsts(script.send(earlier=earlier)) == [("c2", False)]

    def test_earlier_rounds_are_not_taken_for_parallel_calls(self) -> None:
        script = asked(make(), ask("c1"))
        script.result("c1")
        script.send()
        script.hear(ask("c2", "y"))
        script.result("c2")
        assert firsts(script.send(earlier=((ask("c1"), Answer("c1", None, "r")),))) == [
            ("c2", True)
        ]

    def test_one_message_each_with_a_call_left_out_and_rounds_before(self) -> None:
        script = asked(make(), *(ask(f"c{n}", str(n)) for n in range(4)))
        script.history[-1:] = [ModelResponse(asks=(ask("c3", "3"),)), Answer("c3", None, "r3")]
        others = ((ask("c2", name="fetch"), Answer("c2", None, "of another round")),)
        nearest_first = ["c1", "c0", "b1", "b0"]
        pairs = tuple((ask(c, c[1]), Answer(c, None, "r")) for c in nearest_first)
        link = script.send(earlier=pairs + others)
        assert firsts(link) == [("c0", True), ("c1", True), ("c3", True)]

    def test_unanswered_calls_are_not_invented(self) -> None:
        script = asked(make(), ask("c1"), ask("c2", "y"))
        script.result("c2")
        assert firsts(script.send()) == [("c2", True)]

    def test_calls_without_ids_are_answered_by_name(self) -> None:
        script = asked(make(), ask(None), ask(None, name="fetch"))
        script.result(None, name="fetch")
        script.result(None, name="search")
        link = script.send()
        assert [seen.ask for seen in link.answered] == [ask(None, name="fetch"), ask(None)]
        assert len({seen.pending.uid for seen in link.answered}) == 2

    def test_a_result_for_a_call_that_nobody_asked_for_counts_once(self) -> None:
        script = asked(make(), ask("c1"))
        script.result("c9")
        link = script.send()
        assert (firsts(link), link.answered[0].ask) == ([("c9", True)], None)
        assert firsts(script.send()) == [("c9", False)]

    def test_another_result_under_an_id_that_was_answered_is_another_call(self) -> None:
        script = asked(make(), ask("call_0"))
        script.result("call_0", "r1")
        first = script.send().answered[0].pending
        script.hear(text="a response whose call was not seen")
        script.result("call_0", "r2")
        (seen,) = script.send().answered
        assert seen.first_time
        assert seen.pending.uid != first.uid

    def test_neither_id_nor_digest_is_no_evidence(self) -> None:
        script = asked(make(), Ask(None, "write", {"rows": list(range(200_000))}))
        mine = script.chain
        script.result(None, name="write")
        assert script.send(hint=mine).chain is not mine


class TestRepeatedIds:
    """Some servers number the calls of each response anew."""

    def test_the_first_message_tells_equal_calls_apart(self) -> None:
        conversations = make()
        a = asked(conversations, ask("call_0"), head="task a")
        b = asked(conversations, ask("call_0"), head="task b")
        runs = a.chain, b.chain
        for script in (b, a):
            script.result("call_0", f"for {script.head}")
        assert (b.send().chain, a.send().chain) == (runs[1], runs[0])
        assert conversations.ambiguous == 0

    def test_the_hint_tells_equal_conversations_apart(self) -> None:
        conversations = make()
        a, b = asked(conversations, ask("call_0")), asked(conversations, ask("call_0"))
        runs = a.chain, b.chain
        a.result("call_0")
        b.result("call_0")
        assert b.send(hint=runs[1]).chain is runs[1]
        assert a.send(hint=runs[0]).chain is runs[0]

    def test_without_either_it_is_a_new_run_and_counted(self) -> None:
        conversations = make()
        a, b = asked(conversations, ask("call_0")), asked(conversations, ask("call_0"))
        runs = a.chain, b.chain
        a.result("call_0")
        link = a.send()
        assert link.kind is AMBIGUOUS
        assert link.chain not in runs
        assert conversations.ambiguous == 1

    def test_a_hint_that_does_not_match_chooses_nothing(self) -> None:
        conversations = make()
        a, b = asked(conversations, ask("call_0")), asked(conversations, ask("call_0"))
        other = asked(conversations, ask("call_0", "y"))
        a.result("call_0")
        link = a.send(hint=other.chain)
        assert link.kind is AMBIGUOUS
        assert link.chain is not b.chain

    def test_equal_conversations_in_lockstep_on_one_thread(self) -> None:
        conversations = make()
        a, b = asked(conversations, ask("call_0")), asked(conversations, ask("call_0"))
        runs = {a.chain, b.chain}
        hint = b.chain
        linked = []
        for script in (a, b):
            script.result("call_0")
            hint = script.send(hint=hint).chain
            linked.append(hint)
        assert set(linked) == runs

    def test_the_first_message_outweighs_the_hint(self) -> None:
        conversations = make()
        a = asked(conversations, ask("call_0"), head="task a")
        b = asked(conversations, ask("call_0"), head="task b")
        run = a.chain
        a.result("call_0")
        assert a.send(hint=b.chain).chain is run

    def test_a_stranger_with_the_same_call_is_not_taken_in(self) -> None:
        conversations = make()
        mine = asked(conversations, ask("call_0"), head="task a")
        asked(conversations, ask("call_0", "y"), head="task b")
        stranger = Script(conversations, "task c")
        stranger.history += [ModelResponse(asks=(ask("call_0"),)), Answer("call_0", None, "r")]
        assert stranger.send().chain is not mine.chain

    def test_the_same_call_again_is_answered_again(self) -> None:
        script = asked(make(), ask("call_0"))
        mine, uids = script.chain, set()
        for _ in range(20):
            script.result("call_0", "the same")
            link = script.send()
            assert link.chain is mine
            assert firsts(link) == [("call_0", True)]
            uids.add(link.answered[0].pending.uid)
            script.hear(ask("call_0"))
        assert len(uids) == 20

    def test_parallel_calls_with_one_id_keep_their_order(self) -> None:
        script = asked(make(), ask("0", "x"), ask("0", "y"))
        script.result("0", "rx")
        script.result("0", "ry")
        link = script.send()
        assert [seen.ask for seen in link.answered] == [ask("0", "x"), ask("0", "y")]
        assert len({seen.pending.uid for seen in link.answered}) == 2


class TestCompacted:
    """Old messages dropped or summed up, the trailing ones kept."""

    def test_a_call_id_of_its_own_is_enough(self) -> None:
        script = asked(make(), ask("c1"))
        mine = script.chain
        script.result("c1")
        script.history[0] = "summary of what happened"
        assert script.send().chain is mine

    def test_the_new_first_message_counts_from_then_on(self) -> None:
        conversations = make()
        a = asked(conversations, ask("call_0"), head="task a")
        b = asked(conversations, ask("call_0"), head="task b")
        run = a.chain
        a.result("call_0")
        a.history[0] = "summary"
        assert a.send(hint=run).chain is run
        a.hear(ask("call_0", "y"))
        a.result("call_0")
        b.send()
        b.hear(ask("call_0", "y"))
        assert a.send().chain is run

    def test_a_repeated_id_needs_the_hint(self) -> None:
        conversations = make()
        a = asked(conversations, ask("call_0"), head="task a")
        b = asked(conversations, ask("call_0"), head="task b")
        a.result("call_0")
        b.result("call_0")
        run = a.chain
        a.history[0], b.history[0] = "summary of a", "summary of b"
        assert b.send().kind is AMBIGUOUS
        assert a.send(hint=run).chain is run

    def test_a_text_needs_the_hint(self) -> None:
        for hinted in (True, False):
            script = Script(make())
            script.send()
            script.hear(text="It is in line 7.")
            mine = script.chain
            script.history[0] = "summary"
            script.history.append("mend it")
            link = script.send(hint=mine if hinted else None)
            assert (link.chain is mine) is hinted


class TestSentAgain:
    def test_the_same_request_twice_is_the_same_run_and_its_answers_count_once(self) -> None:
        script = asked(make(), ask())
        mine = script.chain
        script.result("c1")
        assert firsts(script.send()) == [("c1", True)]
        again = script.send()
        assert (again.kind, again.chain, firsts(again)) == (CONTINUED, mine, [("c1", False)])
        script.fork().hear(ask("c2"))
        late = script.send()
        assert (late.chain, firsts(late)) == (mine, [("c1", False)])

    def test_after_a_failure_the_result_may_be_cut_shorter(self) -> None:
        script = asked(make(), ask())
        mine = script.chain
        script.result("c1", "far too long")
        script.send()
        script.history[-1] = Answer("c1", None, "short")
        link = script.send()
        assert (link.chain, firsts(link)) == (mine, [("c1", False)])

    def test_another_result_after_the_run_went_on_is_a_fork(self) -> None:
        script = asked(make(), ask())
        mine, other = script.chain, script.fork()
        script.result("c1", "found")
        script.send()
        script.hear(ask("c2"))
        other.result("c1", "not found")
        link = other.send()
        assert (link.kind, link.source) == (NEW, mine)
        assert firsts(link) == [("c1", True)]
        other.hear(ask("d2"))
        for branch, run in ((script, mine), (other, link.chain)):
            branch.result("c2" if branch is script else "d2")
            assert branch.send().chain is run

    def test_a_fork_sent_again_stays_a_fork(self) -> None:
        script = asked(make(), ask())
        other = script.fork()
        script.result("c1", "found")
        script.send()
        script.hear(ask("c2"))
        other.result("c1", "not found")
        fork = other.send().chain
        again = other.send()
        assert (again.chain, firsts(again)) == (fork, [("c1", False)])

    def test_of_several_responses_to_one_request_one_goes_on(self) -> None:
        script = asked(make(), ask())
        mine = script.chain
        script.result("c1")
        branches = []
        for nth in range(3):
            script.send()
            branches.append(script.fork())
            branches[-1].hear(ask(f"b{nth}", "y"))
            branches[-1].result(f"b{nth}")
        runs = [branch.send().chain for branch in branches]
        assert runs[0] is mine
        assert len({run.run for run in runs}) == 3

    def test_a_first_request_that_got_no_response_is_sent_again(self) -> None:
        script = Script(make())
        mine = script.send().chain
        assert script.send(hint=mine).chain is mine
        assert script.send().chain is not mine

    def test_the_same_task_after_a_failure_on_the_way_is_another_run(self) -> None:
        script = asked(make(), ask())
        script.result("c1")
        mine = script.send().chain
        fresh = Script(script.conversations)
        link = fresh.send(hint=mine)
        assert (link.kind, link.chain is mine) == (NEW, False)

    def test_the_same_task_after_its_response_is_another_run(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.fork().hear(text="done")
        assert script.send(hint=mine).chain is not mine


class TestUserTurns:
    def test_a_user_turn_after_the_answer_is_a_follow_up_of_the_run(self) -> None:
        script = asked(make(), ask())
        mine = script.chain
        script.result("c1")
        script.send()
        script.hear(text="It is in line 7.")
        assert mine is not None
        assert mine.ended
        script.history.append("mend it")
        link = script.send()
        assert (link.kind, link.chain, link.reopened) == (FOLLOW_UP, mine, True)
        assert not mine.ended
        again = script.send()
        assert (again.kind, again.chain, again.reopened) == (CONTINUED, mine, False)

    def test_a_remark_beside_the_results_is_no_user_turn(self) -> None:
        script = asked(make(), ask())
        script.result("c1")
        script.history.append("remember to be brief")
        link = script.send()
        assert (link.kind, link.reopened, firsts(link)) == (CONTINUED, False, [("c1", True)])

    def test_a_user_turn_in_place_of_the_results_is_one(self) -> None:
        script = asked(make(), ask())
        mine = script.chain
        script.history.append("stop")
        link = script.send()
        assert (link.kind, link.chain, link.answered) == (FOLLOW_UP, mine, ())

    def test_an_empty_answer_is_gone_on_from(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.hear(finish="length")
        script.history.append("go on")
        assert script.send().chain is mine

    def test_white_space_around_the_text_does_not_matter(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.hear(text="Done.\n")
        script.history[-1] = ModelResponse(text=" Done.")
        script.history.append("more")
        assert script.send().chain is mine

    def test_two_conversations_that_both_said_ok(self) -> None:
        conversations = make()
        scripts = [Script(conversations, f"task {nth}") for nth in range(2)]
        runs = [script.send().chain for script in scripts]
        for script in scripts:
            script.hear(text="OK")
            script.history.append("go on")
        assert [script.send().chain for script in scripts] == runs
        stranger = Script(conversations, "task 3", ["task 3", ModelResponse(text="OK"), "go on"])
        assert stranger.send().chain not in runs

    def test_one_said_ok_and_a_stranger_too(self) -> None:
        conversations = make()
        script = Script(conversations)
        script.send()
        script.hear(text="OK")
        stranger = Script(conversations, "task 2", ["task 2", ModelResponse(text="OK"), "go on"])
        assert stranger.send().kind is NEW
        assert stranger.chain is not script.chain

    def test_a_paused_turn_is_no_answer(self) -> None:
        script = Script(make())
        chain = script.send().chain
        script.hear(text="searching", finish="pause_turn")
        assert not chain.ended
        link = script.send()
        assert (link.kind, link.chain) == (CONTINUED, chain)


class TestServerSide:
    """The history is kept by the server: the request says only what is new."""

    def sent(self, script: Script, hint: Chain | None = None, **named: Any) -> Link:
        new = [m for m in script.history if isinstance(m, (Answer, str))][-1:]
        only = Script(script.conversations, history=new, now=script.now)
        link = only.send(hint, **named)
        script.chain = link.chain
        return link

    def test_by_the_id_of_the_response(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.hear(ask("call_0"), id="resp_1")
        script.result("call_0")
        link = self.sent(script, previous_id="resp_1")
        assert (link.kind, link.chain) == (CONTINUED, mine)
        assert [seen.ask for seen in link.answered] == [ask("call_0")]
        assert firsts(self.sent(script, previous_id="resp_1")) == [("call_0", False)]

    def test_another_id_is_another_run(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.hear(ask("call_0"), id="resp_1")
        script.result("call_0")
        link = self.sent(script, previous_id="resp_9", hint=mine)
        assert link.chain is not mine
        assert firsts(link) == [("call_0", True)]
        assert self.sent(script, previous_id="resp_9").chain is link.chain

    def test_a_user_turn_by_the_id_of_the_response(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.hear(text="done", id="msg_1")
        script.history.append("more")
        link = self.sent(script, previous_id="msg_1")
        assert (link.kind, link.chain, link.reopened) == (FOLLOW_UP, mine, True)

    def test_tools_need_not_be_named_again(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.hear(ask("c1"), id="msg_1")
        script.result("c1")
        link = self.sent(script, previous_id="msg_1", offers_tools=False)
        assert (link.chain, link.chain.one_shot) == (mine, False)

    def test_by_the_conversation(self) -> None:
        conversations = make()
        scripts = [Script(conversations) for _ in range(2)]
        runs = [s.send(conversation_id=f"conv_{n}").chain for n, s in enumerate(scripts)]
        for nth, script in reversed([*enumerate(scripts)]):
            script.hear(ask("call_0"))
            script.result("call_0")
            link = self.sent(script, conversation_id=f"conv_{nth}")
            assert (link.kind, link.chain) == (CONTINUED, runs[nth])
            assert [seen.ask for seen in link.answered] == [ask("call_0")]

    def test_by_the_conversation_whose_response_was_not_seen(self) -> None:
        script = Script(make())
        mine = script.send(conversation_id="conv").chain
        script.result("c1")
        assert self.sent(script, conversation_id="conv").chain is mine

    def test_arguments_are_kept_if_that_is_wanted_and_they_are_short(self) -> None:
        for keep_args, length, kept in (
            (True, 10, True),
            (True, 1_000_000, False),
            (False, 10, False),
        ):
            script = Script(make(keep_args=keep_args))
            script.send()
            script.hear(Ask("c1", "write", "x" * length), id="resp_1")
            script.result("c1")
            (seen,) = self.sent(script, previous_id="resp_1").answered
            assert seen.ask is not None
            assert (seen.ask.args is MISSING) is not kept
            assert seen.pending.args is MISSING
            assert seen.pending.args_key is not None


class TestStreams:
    """A response that was never completed: the next request tells of it all the same."""

    def test_the_next_request_of_the_same_caller_goes_on(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.history += [ModelResponse(asks=(ask(),)), Answer("c1", None, "r")]
        link = script.send(hint=mine)
        assert (link.kind, link.chain, firsts(link)) == (CONTINUED, mine, [("c1", True)])
        assert link.answered[0].ask == ask()
        assert firsts(script.send()) == [("c1", False)]

    def test_part_of_it_may_have_been_noted(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.hear(Ask("c1", "search", '{"q": '), complete=False)
        script.history[-1] = ModelResponse(asks=(ask(),))
        script.result("c1")
        link = script.send(hint=mine)
        assert (link.chain, firsts(link)) == (mine, [("c1", True)])

    def test_a_text_that_was_cut_is_unknown_not_empty(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.hear(complete=False)
        script.history[-1:] = [ModelResponse(), "go on"]
        assert script.send().chain is not mine

    def test_a_text_answer_then_a_user_turn(self) -> None:
        script = Script(make())
        mine = script.send().chain
        script.history += [ModelResponse(text="half an answ"), "go on"]
        link = script.send(hint=mine)
        assert (link.kind, link.chain) == (FOLLOW_UP, mine)

    @pytest.mark.parametrize("why", ["no hint", "another task", "the response was seen"])
    def test_anything_less_is_a_new_run(self, why: str) -> None:
        script = Script(make())
        mine = script.send().chain
        if why == "the response was seen":
            script.fork().hear(text="something else")
        if why == "another task":
            script.history[0] = "another task"
        script.history += [ModelResponse(asks=(ask(),)), Answer("c1", None, "r")]
        link = script.send(hint=None if why == "no hint" else mine)
        assert (link.kind, firsts(link)) == (NEW, [("c1", True)])


class TestOneShots:
    @pytest.mark.parametrize("kind", [{"forced": True}, {"offers_tools": False}])
    def test_extractions_are_no_agents_and_push_none_out(self, kind: dict[str, bool]) -> None:
        conversations = make(max_chains=8)
        agent = asked(conversations, ask())
        run = agent.chain
        for nth in range(50):
            script = Script(conversations, f"text {nth}")
            assert script.send(**kind).chain.one_shot
            script.hear(ask(f"e{nth}"))
        agent.result("c1")
        link = agent.send()
        assert link.chain is run
        assert not link.chain.one_shot

    def test_one_that_is_answered_becomes_an_agent(self) -> None:
        script = Script(make())
        mine = script.send(forced=True).chain
        script.hear(ask())
        script.result("c1")
        assert script.send().chain is mine
        assert not mine.one_shot

    def test_one_that_goes_on_without_tools_does_not(self) -> None:
        script = Script(make())
        mine = script.send(offers_tools=False).chain
        script.hear(text="hello")
        script.history.append("and now?")
        assert script.send(offers_tools=False).chain is mine
        assert mine.one_shot


class TestBounds:
    def test_the_longest_idle_makes_room_and_is_reported(self) -> None:
        conversations = make(max_chains=2)
        a, b, c = (Script(conversations, f"task {n}") for n in range(3))
        first = a.send().chain
        second = b.send().chain
        a.hear(ask())
        assert c.send().evicted == (second,)
        a.result("c1")
        assert a.send().chain is first
        b.chain = second
        b.hear(ask("c2"))
        b.result("c2")
        assert b.send(hint=second).chain is not second

    def test_idle_ones_expire_and_are_reported_once(self) -> None:
        conversations = make(ttl_ns=100)
        a, b = Script(conversations, "a"), Script(conversations, "b", now=60)
        runs = a.send(conversation_id="conv").chain, b.send().chain
        assert conversations.expire(102) == []
        assert conversations.expire(103) == [runs[0]]
        assert conversations.expire(103) == []
        assert a.send(conversation_id="conv").chain is not runs[0]

    def test_drain_gives_all_back(self) -> None:
        conversations = make()
        runs = [Script(conversations, str(n)).send(forced=n == 1).chain for n in range(3)]
        assert {chain.run for chain in conversations.drain()} == {chain.run for chain in runs}
        assert conversations.drain() == []

    def test_nothing_is_left_behind(self) -> None:
        conversations = make(max_chains=4)
        for nth in range(40):
            script = Script(conversations, f"task {nth}")
            script.send(conversation_id=f"conv_{nth}", forced=nth % 2 == 0)
            for step in range(30):
                script.hear(ask(f"c{nth}.{step}", str(step)), id=f"r{nth}.{step}", text=f"{step}")
                script.result(f"c{nth}.{step}")
                script.send()
        assert len(conversations._points._index) < 4 * 16 * 6
        conversations.drain()
        assert conversations._points._index == {}
        assert conversations._named == {}

    def test_a_response_with_very_many_calls(self) -> None:
        script = asked(make(), *(ask(f"c{n}", str(n)) for n in range(500)))
        for nth in range(500):
            script.result(f"c{nth}")
        link = script.send()
        assert len(link.answered) == 500
        assert len(script.chain.points[-1].calls) < 500  # type: ignore[union-attr]


class TestClaims:
    def key(self, query: str = "x") -> str | None:
        return Fingerprinter(b"key").of_args({"q": query})

    def test_a_shown_call_is_not_seen_again(self) -> None:
        conversations = make()
        script = asked(conversations, ask("c1"), ask("c2", "y"))
        call = conversations.claim("search", self.key(), script.chain)
        assert call is not None
        assert (call.chain, call.call_id) == (script.chain, "c1")
        script.result("c1")
        script.result("c2")
        assert firsts(script.send()) == [("c1", False), ("c2", True)]

    def test_a_call_that_was_only_looked_for_is_seen_in_its_answer(self) -> None:
        conversations = make()
        script = asked(conversations, ask("c1"), ask("c2", "y"))
        shown = conversations.claim("search", self.key("y"), script.chain)
        for key in (self.key(), self.key("y")):
            assert conversations.claim("search", key, script.chain, shows=False) is not None
        assert shown is not None
        assert shown.shown
        script.result("c1")
        script.result("c2")
        assert firsts(script.send()) == [("c1", True), ("c2", False)]

    def test_other_arguments_or_another_tool_are_no_claim(self) -> None:
        conversations = make()
        script = asked(conversations, ask("c1"))
        assert conversations.claim("search", self.key("y"), script.chain) is None
        assert conversations.claim("fetch", self.key(), script.chain) is None
        assert conversations.claim("search", None, script.chain) is None

    def test_an_answered_call_is_over(self) -> None:
        conversations = make()
        script = asked(conversations, ask("c1"))
        script.result("c1")
        script.send()
        assert conversations.claim("search", self.key(), script.chain) is None

    def test_the_calls_of_a_response_that_was_thrown_away_are_over(self) -> None:
        conversations = make()
        script = Script(conversations)
        script.send()
        script.send(hint=script.chain)
        script.fork().hear(ask("c1", "thrown away"))
        script.hear(ask("c2"))
        script.result("c2")
        script.send()
        assert conversations.claim("search", self.key("thrown away"), script.chain) is None

    def test_equal_parallel_calls_are_claimed_in_order_and_a_retry_again(self) -> None:
        conversations = make()
        script = asked(conversations, ask("c1"), ask("c2"))
        claims = [conversations.claim("search", self.key(), script.chain) for _ in range(3)]
        assert [claim.call_id for claim in claims if claim] == ["c1", "c2", "c1"]

    def test_by_id_where_the_hook_knows_it(self) -> None:
        conversations = make()
        script = asked(conversations, ask("c1"), ask("c2"))
        for key in (self.key(), None):
            call = conversations.claim("search", key, script.chain, "c2")
            assert call is not None
            assert call.call_id == "c2"
        assert conversations.claim("search", self.key("y"), script.chain, "c2") is None

    def test_the_hint_chooses_among_conversations(self) -> None:
        conversations = make()
        a, b = asked(conversations, ask("call_0")), asked(conversations, ask("call_0"))
        assert conversations.claim("search", self.key(), None) is None
        call = conversations.claim("search", self.key(), a.chain)
        assert call is not None
        assert call.chain is a.chain
        assert b.chain is not a.chain

    def test_without_a_hint_the_only_one_that_waits(self) -> None:
        conversations = make()
        script = asked(conversations, ask("c1"))
        call = conversations.claim("search", self.key(), None)
        assert call is not None
        assert call.chain is script.chain


class Interleaved(RuleBasedStateMachine):
    """Many conversations take turns, in any order, without hints: each stays its own run."""

    scripts = Bundle("scripts")
    repeated_ids = False

    def __init__(self) -> None:
        super().__init__()
        self.conversations = make(max_chains=10_000)
        self.ids = itertools.count()
        self.heads = itertools.count()
        self.runs: dict[str, str] = {}

    def check(self, script: Script, owner: Chain, link: Link) -> None:
        assert link.chain is owner
        assert [seen.answer for seen in link.answered] == list(script.request().answers)

    def asks(self, names: list[str]) -> list[Ask]:
        return [
            Ask(f"call_{nth}" if self.repeated_ids else f"id{next(self.ids)}", name, "{}")
            for nth, name in enumerate(names)
        ]

    @rule(target=scripts)
    def begin(self) -> Script:
        head = f"task {next(self.heads)}" if self.repeated_ids else "the same task"
        script = Script(self.conversations, head)
        link = script.send()
        assert link.kind is NEW
        assert link.chain.run not in self.runs
        self.runs[link.chain.run] = head
        return script

    @rule(
        target=scripts,
        script=consumes(scripts),
        names=st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=3),
        given=st.permutations([0, 1, 2]),
        dropped=st.booleans(),
        result=st.sampled_from(["same", "other"]),
    )
    def tools(
        self, script: Script, names: list[str], given: list[int], dropped: bool, result: str
    ) -> Script:
        owner = script.chain
        assert owner is not None
        asks = self.asks(names)
        script.hear(*asks)
        order = [asks[nth] for nth in given if nth < len(asks)]
        for call in order[: len(order) - 1] if dropped else order:
            script.result(call.call_id, result)
        link = script.send()
        self.check(script, owner, link)
        assert all(seen.first_time for seen in link.answered)
        assert len({seen.pending.uid for seen in link.answered}) == len(link.answered)
        return script

    @rule(target=scripts, script=consumes(scripts))
    def again(self, script: Script) -> Script:
        owner = script.chain
        assert owner is not None
        if len(script.history) > 1:
            link = script.send()
            self.check(script, owner, link)
            assert not any(seen.first_time for seen in link.answered)
        return script

    @precondition(lambda self: self.repeated_ids)
    @rule(target=scripts, script=consumes(scripts), text=st.sampled_from(["OK", "Done."]))
    def follow_up(self, script: Script, text: str) -> Script:
        owner = script.chain
        assert owner is not None
        script.hear(text=text)
        script.history.append("go on")
        link = script.send()
        self.check(script, owner, link)
        assert link.kind is FOLLOW_UP
        return script

    @precondition(lambda self: not self.repeated_ids)
    @rule(target=scripts, script=consumes(scripts))
    def compact(self, script: Script) -> Script:
        owner = script.chain
        assert owner is not None
        (call,) = self.asks(["a"])
        response = script.hear(call)
        script.history[:] = ["summary", response, Answer(call.call_id, None, "same")]
        self.check(script, owner, script.send())
        return script

    @invariant()
    def nothing_was_ambiguous(self) -> None:
        assert self.conversations.ambiguous == 0


class InterleavedWithRepeatedIds(Interleaved):
    repeated_ids = True


for machine in (Interleaved, InterleavedWithRepeatedIds):
    machine.TestCase.settings = settings(max_examples=60, stateful_step_count=30, deadline=None)

TestInterleaved = Interleaved.TestCase
TestInterleavedWithRepeatedIds = InterleavedWithRepeatedIds.TestCase
