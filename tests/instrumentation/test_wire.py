"""The readers on what the real SDKs send and receive, and on shapes that nobody promised."""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

import anthropic
import openai
import pytest
from hypothesis import given
from hypothesis import strategies as st
from openai.types.chat import ChatCompletionMessage

from examples.scripted_model import Call, Reply, ScriptedModel, Usage
from otel_loopguard.core.conversation import (
    Answer,
    Ask,
    Conversations,
    LinkKind,
    ModelRequest,
    ModelResponse,
)
from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.model import MISSING
from otel_loopguard.instrumentation.wire import (
    anthropic_messages,
    history,
    openai_chat,
    openai_responses,
)
from tests.model_apis import (
    APIS,
    USER,
    Api,
    Chat,
    Messages,
    Responses,
    anthropic_client,
    openai_client,
)

if TYPE_CHECKING:
    from types import ModuleType

WIRES: dict[type[Api], ModuleType] = {
    Chat: openai_chat,
    Responses: openai_responses,
    Messages: anthropic_messages,
}
READERS = (openai_chat, openai_responses, anthropic_messages)
KEYS = Fingerprinter(b"key")

each_api = pytest.mark.parametrize("api", APIS, ids=lambda api: type(api).__name__)
each_reader = pytest.mark.parametrize("wire", READERS, ids=lambda wire: wire.__name__[-8:])


@pytest.fixture
def bodies(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The bodies that the SDKs post, as a wrapper of `post` sees them."""
    seen: list[Any] = []
    for sdk in (openai, anthropic):
        post = sdk._base_client.SyncAPIClient.post

        def spy(self: Any, *args: Any, post: Any = post, **kwargs: Any) -> Any:
            seen.append(kwargs["body"])
            return post(self, *args, **kwargs)

        monkeypatch.setattr(sdk._base_client.SyncAPIClient, "post", spy)
    return seen


@dataclass
class Loop:
    """A hand-written agent: it reads a response with the reader and writes its history itself."""

    api: Api
    client: Any
    streamed: bool
    model: str
    history: list[Any] = field(default_factory=lambda: [USER])

    @property
    def wire(self) -> ModuleType:
        return WIRES[type(self.api)]

    def ask(self, **more: Any) -> ModelResponse:
        request = {**self.api.request(self.model, self.history), **more}
        if not self.streamed:
            return self.wire.read_response(self.api.plain(self.client, request))
        reader = self.wire.StreamReader()
        for event in self.api.plain(self.client, {**request, "stream": True}):
            reader.feed(event)
        return reader.response()

    def write(self, response: ModelResponse, result: str) -> None:
        calls = response.asks
        if isinstance(self.api, Chat):
            said = [
                {
                    "id": a.call_id,
                    "type": "function",
                    "function": {"name": a.name, "arguments": a.args},
                }
                for a in calls
            ]
            message = {"role": "assistant", "content": response.text, "tool_calls": said}
            results = [
                {"role": "tool", "tool_call_id": a.call_id, "content": result} for a in calls
            ]
            self.history += [message, *results]
        elif isinstance(self.api, Responses):
            for a in calls:
                call = {"call_id": a.call_id, "name": a.name, "arguments": a.args}
                output = {"call_id": a.call_id, "output": result}
                self.history.append({"type": "function_call", **call})
                self.history.append({"type": "function_call_output", **output})
        else:
            blocks = [
                {"type": "tool_use", "id": a.call_id, "name": a.name, "input": as_object(a.args)}
                for a in calls
            ]
            results = [
                {"type": "tool_result", "tool_use_id": a.call_id, "content": result} for a in calls
            ]
            self.history.append({"role": "assistant", "content": blocks})
            self.history.append({"role": "user", "content": results})


def as_object(args: object) -> object:
    return json.loads(args) if isinstance(args, str) else args


def client_for(api: Api, server: ScriptedModel) -> Any:
    return anthropic_client(server) if isinstance(api, Messages) else openai_client(server)


@each_api
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
@pytest.mark.parametrize("model", ["loop-4", "loop-4+think", "loop-4+same-id", "parallel-2x4"])
def test_a_loop_is_one_conversation(
    api: Api, streamed: bool, model: str, bodies: list[Any]
) -> None:
    conversations = Conversations(KEYS, keep_args=True)
    runs, seen, asked = set(), [], []
    with ScriptedModel() as server, client_for(api, server) as client:
        loop = Loop(api, client, streamed, model)
        for now in range(1, 6):
            response = loop.ask()
            link = conversations.request(loop.wire.read_request(bodies[-1]), now)
            conversations.response(link.chain, response, now)
            runs.add(link.chain.run)
            seen += link.answered
            if not response.asks:
                break
            asked.append(response.asks)
            loop.write(response, "nothing")
    assert len(runs) == 1
    assert link.chain.ended
    assert {len(asks) for asks in asked} == {2 if model.startswith("parallel") else 1}
    assert [s.ask and s.ask.call_id for s in seen] == [a.call_id for asks in asked for a in asks]
    assert all(s.first_time and s.answer.result == "nothing" for s in seen)
    assert {s.ask.name for s in seen if s.ask} == {"search"}
    assert len({s.pending.uid for s in seen}) == len(seen)
    assert len({s.pending.round for s in seen}) == len(asked)
    assert all(s.pending.asked_ns for s in seen)


@each_api
@pytest.mark.parametrize("streamed", [False, True], ids=["plain", "stream"])
def test_interleaved_loops_with_the_same_ids_stay_apart(
    api: Api, streamed: bool, bodies: list[Any]
) -> None:
    conversations = Conversations(KEYS, keep_args=True)
    runs: dict[int, set[str]] = {0: set(), 1: set(), 2: set()}
    with ScriptedModel() as server, client_for(api, server) as client:
        loops = [Loop(api, client, streamed, "loop-3+same-id") for _ in runs]
        for nth, loop in enumerate(loops):
            loop.history = [{"role": "user", "content": f"task {nth}"}]
        for now, nth in enumerate([0, 1, 2, 2, 1, 0, 1, 0, 2], start=1):
            response = loops[nth].ask()
            link = conversations.request(loops[nth].wire.read_request(bodies[-1]), now)
            conversations.response(link.chain, response, now)
            runs[nth].add(link.chain.run)
            loops[nth].write(response, "nothing")
    assert [len(run) for run in runs.values()] == [1, 1, 1]
    assert len(set.union(*runs.values())) == 3
    assert conversations.ambiguous == 0


REPLY = Reply(
    "Let me see. ",
    (Call("search", {"query": "x", "page": 1}, "c1"), Call("search", '{"page": ', "c2")),
    "Hm.",
    Usage(input=100, output=20, cached=30, reasoning=5),
)


@each_api
def test_a_stream_says_the_same_as_a_plain_response(api: Api) -> None:
    reply = replace(REPLY, calls=REPLY.calls[:1]) if isinstance(api, Messages) else REPLY
    more = {"stream_options": {"include_usage": True}} if isinstance(api, Chat) else {}
    with (
        ScriptedModel(scenarios={"m": lambda _: reply}) as server,
        client_for(api, server) as client,
    ):
        plain = Loop(api, client, streamed=False, model="m").ask()
        streamed = Loop(api, client, streamed=True, model="m").ask(**more)
    for response in (plain, streamed):
        assert response.id
        assert response.complete
        assert (response.model, response.text, response.thought) == ("m", reply.text, "Hm.")
        tokens = response.input_tokens, response.output_tokens, response.cache_read_tokens
        assert tokens == (100, 20, 30)
        assert [(a.call_id, a.name) for a in response.asks] == [
            (call.id, call.name) for call in reply.calls
        ]
    keys = [[KEYS.of_args(ask.args) for ask in r.asks] for r in (plain, streamed)]
    assert keys[0] == keys[1]
    assert keys[0][0] == KEYS.of_args({"query": "x", "page": 1})
    assert plain.finish == streamed.finish
    assert plain.finish in {"tool_calls", "completed", "tool_use"}


@each_api
@pytest.mark.parametrize("events", [0, 1, 3])
def test_a_stream_that_was_left_early_is_not_complete(api: Api, events: int) -> None:
    with (
        ScriptedModel(scenarios={"m": lambda _: REPLY}) as server,
        client_for(api, server) as client,
    ):
        request = {**api.request("m", [USER]), "stream": True}
        reader = WIRES[type(api)].StreamReader()
        with api.plain(client, request) as stream:
            for event in itertools.islice(stream, events):
                reader.feed(event)
    response = reader.response()
    assert not response.complete
    assert (response.id is not None) is (events > 0)


@each_api
def test_history_may_hold_what_the_sdk_returned(api: Api, bodies: list[Any]) -> None:
    """As objects or as dicts, the last assistant message is what the response was."""
    reply = replace(REPLY, calls=REPLY.calls[:1])
    with (
        ScriptedModel(scenarios={"m": lambda _: reply}) as server,
        client_for(api, server) as client,
    ):
        raw = api.plain(client, api.request("m", [USER]))
        response = WIRES[type(api)].read_response(raw)
        as_dicts = api.next_history([USER], api.read(raw), "found")
        if isinstance(api, Responses):
            as_objects = [USER, *raw.output, *as_dicts[-1:]]
        elif isinstance(api, Chat):
            as_objects = [USER, raw.choices[0].message, *as_dicts[-1:]]
        else:
            as_objects = [USER, {"role": "assistant", "content": raw.content}, *as_dicts[-1:]]
        for messages in (as_dicts, as_objects):
            api.plain(client, api.request("m", messages))
    for body in bodies[-2:]:
        request = WIRES[type(api)].read_request(body)
        assert request.answers == (Answer("c1", None, "found"),)
        assert request.last_assistant == (response.text, response.asks)
        assert request.asked == response.asks
        assert request.offers_tools
        assert (request.offered, request.forced) == (frozenset({"search"}), False)
        assert not request.user_turn
        assert request.head == "8 Find it."


class TestServerSideHistory:
    def link(self, conversations: Conversations, body: Any, wire: ModuleType, raw: Any) -> Any:
        link = conversations.request(wire.read_request(body), 1)
        conversations.response(link.chain, wire.read_response(raw), 1)
        return link

    @pytest.mark.parametrize("way", ["previous_response_id", "conversation", "conversation id"])
    def test_responses(self, way: str, bodies: list[Any]) -> None:
        conversations = Conversations(KEYS, keep_args=True)
        api = Responses()
        with ScriptedModel() as server, openai_client(server) as client:
            kept = client.conversations.create().id
            named = {"conversation": {"id": kept}, "conversation id": kept}
            more: dict[str, Any] = {"conversation": named[way]} if way in named else {}
            request = api.request("loop-2", "Find it.")  # type: ignore[arg-type]
            raw = client.responses.create(**request, **more)
            first = self.link(conversations, bodies[-1], openai_responses, raw)
            for _ in range(2):
                call = raw.output[0]
                more = more if way in named else {"previous_response_id": raw.id}
                raw = client.responses.create(
                    **api.request("loop-2", api.answers(api.read(raw), "found")), **more
                )
                link = self.link(conversations, bodies[-1], openai_responses, raw)
                assert (link.kind, link.chain) == (LinkKind.CONTINUED, first.chain)
                (seen,) = link.answered
                assert seen.ask == Ask(call.call_id, "search", call.arguments)
                assert seen.first_time

    def test_an_anthropic_thread(self, bodies: list[Any]) -> None:
        conversations = Conversations(KEYS, keep_args=True)
        request = Messages().request("loop-2", [USER])
        with ScriptedModel() as server, anthropic_client(server) as client:
            raw = client.beta.messages.create(**request, thread={"type": "create"})
            first = self.link(conversations, bodies[-1], anthropic_messages, raw)
            for _ in range(2):
                block = raw.content[0]
                result = {"type": "tool_result", "tool_use_id": block.id, "content": "found"}
                raw = client.beta.messages.create(
                    model="loop-2",
                    max_tokens=100,
                    messages=[{"role": "user", "content": [result]}],
                    thread={"type": "continue", "previous_message_id": raw.id},
                )
                link = self.link(conversations, bodies[-1], anthropic_messages, raw)
                assert (link.kind, link.chain) == (LinkKind.CONTINUED, first.chain)
                assert [seen.ask for seen in link.answered] == [
                    Ask(block.id, "search", block.input)
                ]
                assert not link.chain.one_shot


def chat(*messages: object, **more: object) -> ModelRequest:
    return openai_chat.read_request({"messages": list(messages), **more})


def responses(*items: object, **more: object) -> ModelRequest:
    return openai_responses.read_request({"input": list(items), **more})


def messages(*sent: object, **more: object) -> ModelRequest:
    return anthropic_messages.read_request({"messages": list(sent), **more})


def chat_call(call_id: str, text: str | None = None) -> dict[str, Any]:
    function = {"name": "f", "arguments": "{}"}
    return {
        "role": "assistant",
        "content": text,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def chat_result(call_id: str, content: object = "r") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def item_call(call_id: str) -> dict[str, Any]:
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def item_result(call_id: str) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": call_id, "output": "r"}


def f(call_id: str | None) -> Ask:
    return Ask(call_id, "f", "{}")


class TestChatMessages:
    def test_only_results_after_the_last_assistant_message(self) -> None:
        request = chat(
            USER, chat_call("a", "Hm."), chat_result("a"), chat_call("b", "So."), chat_result("b")
        )
        assert request.answers == (Answer("b", None, "r"),)
        assert tuple(request.earlier) == ()

    def test_system_messages_are_passed_over(self) -> None:
        system = {"role": "system", "content": "Be brief."}
        developer = {"role": "developer", "content": "Be brief."}
        request = chat(system, developer, USER, chat_call("a"), system, chat_result("a"), developer)
        assert request.answers == (Answer("a", None, "r"),)
        assert (request.head, request.user_turn, request.size) == ("8 Find it.", False, 7)

    def test_a_user_message_after_the_results(self) -> None:
        request = chat(USER, chat_call("a"), chat_result("a"), USER)
        assert (request.answers, request.user_turn) == ((Answer("a", None, "r"),), True)

    def test_parallel_calls_in_messages_of_their_own(self) -> None:
        request = chat(USER, chat_call("a"), chat_result("a"), chat_call("b"), chat_result("b"))
        assert request.asked == (f("b"),)
        assert tuple(request.earlier) == ((f("a"), Answer("a", None, "r")),)

    def test_earlier_calls_end_at_a_user_message_and_at_a_bound(self) -> None:
        pairs = [m for n in range(100) for m in (chat_call(f"{n}"), chat_result(f"{n}"))]
        assert len(tuple(chat(USER, *pairs).earlier)) == history.MAX_EARLIER
        request = chat(USER, *pairs[:2], USER, *pairs[2:4])
        assert (request.asked, tuple(request.earlier)) == ((f("1"),), ())

    def test_legacy_functions(self) -> None:
        asked = {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "f", "arguments": "{}"},
        }
        answered = {"role": "function", "name": "f", "content": "r"}
        request = chat(USER, asked, answered, functions=[{"name": "f"}], function_call="auto")
        assert (request.asked, request.answers) == ((f(None),), (Answer(None, "f", "r"),))
        assert (request.offers_tools, request.offered, request.forced) == (True, {"f"}, False)
        assert chat(USER, functions=[{"name": "f"}], function_call={"name": "f"}).forced

    def test_custom_tools(self) -> None:
        custom = {"id": "a", "type": "custom", "custom": {"name": "sql", "input": "select 1"}}
        request = chat(
            USER,
            {"role": "assistant", "tool_calls": [custom]},
            chat_result("a"),
            tools=[{"type": "custom", "custom": {"name": "sql"}}],
        )
        assert (request.asked, request.offered) == ((Ask("a", "sql", "select 1"),), {"sql"})

    def test_content_in_parts(self) -> None:
        text = [{"type": "text", "text": "one "}, {"type": "text", "text": "two"}]
        image = [{"type": "text", "text": "one"}, {"type": "image_url", "image_url": {"url": "u"}}]
        request = chat(
            {"role": "user", "content": text},
            chat_call("a") | {"content": text},
            chat_result("a", text),
            chat_result("b", image),
            chat_result("c", None),
        )
        assert request.head == "7 one two"
        assert request.last_assistant == ("one two", (f("a"),))
        assert [answer.result for answer in request.answers] == ["one two", image, None]

    def test_a_refusal_is_what_was_said(self) -> None:
        message = ChatCompletionMessage(role="assistant", content=None, refusal="No.")
        assert chat(USER, message, USER).last_assistant == ("No.", ())

    def test_all_choices_ask(self) -> None:
        choices = [{"message": chat_call(c), "finish_reason": "tool_calls"} for c in "ab"]
        assert openai_chat.read_response({"choices": choices}).asks == (f("a"), f("b"))

    def test_all_choices_ask_in_a_stream_and_the_first_one_speaks(self) -> None:
        reader = openai_chat.StreamReader()
        for nth in (1, 0):
            call = {"index": 0, "id": "ab"[nth], "function": {"name": "f", "arguments": "{}"}}
            delta = {"content": f"I am {nth}.", "tool_calls": [call]}
            reader.feed({"choices": [{"index": nth, "delta": delta, "finish_reason": "stop"}]})
        response = reader.response()
        assert (response.text, response.asks) == ("I am 0.", (f("a"), f("b")))

    def test_a_legacy_call_in_a_stream(self) -> None:
        reader = openai_chat.StreamReader()
        for piece in ({"name": "f", "arguments": ""}, {"arguments": "{"}, {"arguments": "}"}):
            reader.feed({"choices": [{"index": 0, "delta": {"function_call": piece}}]})
        assert reader.response().asks == (f(None),)

    def test_a_call_without_arguments_has_none(self) -> None:
        for arguments in ("", None, "{}"):
            call = {"id": "a", "function": {"name": "f", "arguments": arguments}}
            message = {"role": "assistant", "tool_calls": [call]}
            assert chat(USER, message).asked == (f("a"),)


class TestResponseItems:
    def test_one_response_is_several_items(self) -> None:
        said = {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Hm."}],
        }
        reasoning = {"type": "reasoning", "summary": [], "id": "rs"}
        request = responses(
            USER,
            reasoning,
            said,
            item_call("a"),
            item_call("b"),
            item_result("a"),
            item_result("b"),
        )
        assert request.last_assistant == ("Hm.", (f("a"), f("b")))
        assert [answer.call_id for answer in request.answers] == ["a", "b"]
        assert not request.user_turn

    def test_what_the_server_did_in_between_does_not_part_a_response(self) -> None:
        said = {"type": "message", "role": "assistant", "content": "Hm."}
        search = {"type": "web_search_call", "id": "ws", "status": "completed"}
        request = responses(USER, said, search, item_call("a"), item_result("a"))
        assert request.last_assistant == ("Hm.", (f("a"),))

    def test_each_call_followed_by_its_output(self) -> None:
        request = responses(
            USER, item_call("a"), item_result("a"), item_call("b"), item_result("b")
        )
        assert (request.asked, tuple(request.earlier)) == (
            (f("b"),),
            ((f("a"), Answer("a", None, "r")),),
        )

    @pytest.mark.parametrize(
        ("kind", "said", "name"),
        [
            ("custom_tool_call", {"name": "sql", "input": "select 1"}, "sql"),
            ("shell_call", {"action": "select 1"}, "shell"),
            ("local_shell_call", {"action": "select 1"}, "local_shell"),
            ("apply_patch_call", {"operation": "select 1"}, "apply_patch"),
        ],
    )
    def test_other_calls_that_the_client_answers(
        self, kind: str, said: dict[str, Any], name: str
    ) -> None:
        request = responses(
            USER,
            {"type": kind, "call_id": "a", **said},
            {"type": f"{kind}_output", "call_id": "a", "output": "r"},
        )
        assert request.asked == (Ask("a", name, "select 1"),)
        assert request.answers == (Answer("a", None, "r"),)

    def test_what_the_server_did_itself_asks_nobody(self) -> None:
        search = {"type": "web_search_call", "id": "ws", "status": "completed"}
        response = openai_responses.read_response({"output": [search], "status": "completed"})
        assert (response.asks, response.complete) == ((), True)

    def test_a_text_input_is_a_user_message(self) -> None:
        request = openai_responses.read_request({"input": "Find it."})
        assert (request.head, request.user_turn, request.size) == ("8 Find it.", True, 1)

    @pytest.mark.parametrize(
        ("status", "finish", "complete"),
        [("completed", "completed", True), ("incomplete", "max_output_tokens", True)]
        + [(status, status, False) for status in ("failed", "in_progress", "cancelled")],
    )
    def test_how_it_ended(self, status: str, finish: str, complete: bool) -> None:
        details = {"reason": "max_output_tokens"} if status == "incomplete" else None
        response = openai_responses.read_response(
            {"status": status, "incomplete_details": details, "output": [item_call("a")]}
        )
        assert (response.finish, response.complete) == (finish, complete)


class TestAnthropicMessages:
    def asked(self, *ids: str) -> dict[str, Any]:
        blocks = [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in ids]
        return {"role": "assistant", "content": [{"type": "thinking", "thinking": "Hm."}, *blocks]}

    def result(self, call_id: str, content: object = "r", **more: Any) -> dict[str, Any]:
        return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}

    def test_several_results_in_one_message_with_text_after_them(self) -> None:
        for text in ([], [{"type": "text", "text": "Be brief."}]):
            results = [self.result("a"), self.result("b", is_error=True)]
            request = messages(
                USER, self.asked("a", "b"), {"role": "user", "content": results + text}
            )
            assert request.answers == (
                Answer("a", None, "r"),
                Answer("b", None, "r", is_error=True),
            )
            assert request.user_turn is bool(text)
            assert request.last_assistant == ("", (Ask("a", "f", {}), Ask("b", "f", {})))

    def test_results_in_several_messages(self) -> None:
        sent = [{"role": "user", "content": [self.result(c)]} for c in "ab"]
        request = messages(USER, self.asked("a", "b"), *sent)
        assert [answer.call_id for answer in request.answers] == ["a", "b"]

    def test_result_blocks(self) -> None:
        text, image = {"type": "text", "text": "r"}, {"type": "image", "source": {}}
        content = [self.result("a", [text, text]), self.result("b", [text, image])]
        request = messages(USER, self.asked("a", "b"), {"role": "user", "content": content})
        assert [answer.result for answer in request.answers] == ["rr", [text, image]]

    def test_tools_that_the_server_runs_ask_nobody(self) -> None:
        block = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
        response = anthropic_messages.read_response({"role": "assistant", "content": [block]})
        assert response.asks == ()

    def test_cached_input_is_input(self) -> None:
        usage = {
            "input_tokens": 1,
            "cache_read_input_tokens": 20,
            "cache_creation_input_tokens": 300,
        }
        response = anthropic_messages.read_response({"role": "assistant", "usage": usage})
        assert (response.input_tokens, response.cache_read_tokens) == (321, 20)
        assert response.cache_write_tokens == 300


class TestTools:
    FUNCTION: ClassVar = {"type": "function", "function": {"name": "f"}}
    FLAT: ClassVar = {"type": "function", "name": "f"}

    @pytest.mark.parametrize(
        ("request_", "forced"),
        [
            (chat(USER, tools=[FUNCTION], tool_choice={**FUNCTION}), True),
            (chat(USER, tools=[FUNCTION], tool_choice="required"), False),
            (chat(USER, tools=[FUNCTION], tool_choice="auto"), False),
            (chat(USER, tools=[FUNCTION]), False),
            (responses(USER, tools=[FLAT], tool_choice={**FLAT}), True),
            (
                responses(USER, tools=[FLAT], tool_choice={"type": "allowed_tools", "tools": []}),
                False,
            ),
            (
                messages(USER, tools=[{"name": "f"}], tool_choice={"type": "tool", "name": "f"}),
                True,
            ),
            (messages(USER, tools=[{"name": "f"}], tool_choice={"type": "any"}), False),
        ],
    )
    def test_a_choice_that_names_one_tool_forces_it(
        self, request_: ModelRequest, forced: bool
    ) -> None:
        assert (request_.offers_tools, request_.forced) == (True, forced)
        assert request_.offered == {"f"}

    @pytest.mark.parametrize(
        "request_",
        [
            chat(USER),
            chat(USER, tools=[]),
            chat(USER, tools=None),
            chat(USER, tools=openai.omit, tool_choice=openai.omit),
            chat(USER, tools=openai.NOT_GIVEN),
            chat(USER, tools=[FUNCTION], tool_choice="none"),
            messages(USER, tools=[{"name": "f"}], tool_choice={"type": "none"}),
            messages(USER, tools=anthropic.NOT_GIVEN),
        ],
    )
    def test_no_tools(self, request_: ModelRequest) -> None:
        assert (request_.offers_tools, request_.offered, request_.forced) == (False, None, False)

    @pytest.mark.parametrize(
        ("tools", "offered"),
        [
            ([FLAT, {"type": "web_search"}], {"f", "web_search"}),
            ([FLAT, {"type": "mcp", "server_label": "s"}], None),
            ([FLAT, {"type": "namespace", "name": "n", "tools": []}], None),
            ([FLAT, {}], None),
            ([{"type": "function", "name": str(n)} for n in range(2000)], None),
            (iter([FLAT]), None),
        ],
    )
    def test_names_are_only_told_where_all_are_known(self, tools: Any, offered: Any) -> None:
        request = responses(USER, tools=tools)
        assert (request.offers_tools, request.offered) == (True, offered)


class TestOddInput:
    @each_reader
    def test_iterators_are_not_consumed(self, wire: ModuleType) -> None:
        sent, tools = iter([USER]), iter([{"name": "f"}])
        request = wire.read_request({"messages": sent, "input": sent, "tools": tools})
        assert (request.last_assistant, request.head, request.size) == (MISSING, None, 0)
        assert request.offers_tools
        assert list(sent) == [USER]
        assert len(list(tools)) == 1

    @each_reader
    def test_a_history_without_an_answer_is_read_up_to_a_bound(self, wire: ModuleType) -> None:
        class Counted(list[Any]):
            reads = 0

            def __getitem__(self, at: Any) -> Any:
                self.reads += 1
                return super().__getitem__(at)

        sent = Counted([USER] * 100_000)
        request = wire.read_request({"messages": sent, "input": sent})
        assert request.size == 100_000
        assert request.last_assistant is MISSING
        assert sent.reads <= history.MAX_WALK + history.MAX_EARLIER

    @each_reader
    def test_a_long_first_message_is_cut_and_its_length_counts(self, wire: ModuleType) -> None:
        heads = [
            wire.read_request({key: [{"role": "user", "content": "x" * length}]}).head
            for key in ("messages", "input")
            for length in (1_000_000, 1_000_001)
            if (key == "input") is (wire is openai_responses)
        ]
        assert len(set(heads)) == 2
        assert all(len(head) < 3_000 for head in heads)

    @pytest.mark.parametrize("pieces", [10, 2_000])
    def test_a_stream_is_kept_up_to_a_bound(self, pieces: int) -> None:
        reader = openai_chat.StreamReader()
        call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "y" * 1_000}}
        delta = {"content": "x" * 1_000, "tool_calls": [call]}
        for _ in range(pieces):
            reader.feed({"choices": [{"index": 0, "delta": delta}]})
        reader.feed({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
        response = reader.response()
        whole = pieces == 10
        assert response.complete is whole
        assert response.text == ("x" * 10_000 if whole else None)
        assert response.asks == (Ask("a", "f", "y" * 10_000 if whole else MISSING),)

    def test_an_anthropic_stream_is_kept_up_to_a_bound(self) -> None:
        reader = anthropic_messages.StreamReader()
        block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
        reader.feed({"type": "content_block_start", "index": 0, "content_block": block})
        delta = {"type": "input_json_delta", "partial_json": "y" * 1_000}
        for _ in range(2_000):
            reader.feed({"type": "content_block_delta", "index": 0, "delta": delta})
        reader.feed({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
        response = reader.response()
        assert (response.complete, response.asks) == (False, (Ask("a", "f", MISSING),))

    @each_reader
    def test_a_stream_of_very_many_calls(self, wire: ModuleType) -> None:
        reader = wire.StreamReader()
        for nth in range(1_000):
            call = {"index": nth, "id": f"{nth}", "function": {"name": "f", "arguments": "{}"}}
            reader.feed({"choices": [{"index": 0, "delta": {"tool_calls": [call]}}]})
            reader.feed({"type": "response.output_item.done", "item": item_call(f"{nth}")})
            block = {"type": "tool_use", "id": f"{nth}", "name": "f", "input": {}}
            reader.feed({"type": "content_block_start", "index": nth, "content_block": block})
        assert len(reader.response().asks) == history.MAX_CALLS

    @each_reader
    def test_an_error_body_is_no_response(self, wire: ModuleType) -> None:
        for obj in (None, "text", b"bytes", {}, {"error": {"message": "m"}}, object()):
            assert wire.read_response(obj) == ModelResponse(complete=False)


WORDS = [
    "assistant",
    "user",
    "tool",
    "function",
    "system",
    "message",
    "reasoning",
    "function_call",
    "function_call_output",
    "tool_use",
    "tool_result",
    "text",
    "thinking",
    "content_block_start",
    "content_block_delta",
    "message_start",
    "message_delta",
    "response.completed",
    "response.output_item.done",
    "none",
    "auto",
]
NAMES = [
    "messages",
    "input",
    "role",
    "content",
    "type",
    "tool_calls",
    "function",
    "custom",
    "name",
    "arguments",
    "id",
    "call_id",
    "output",
    "tool_call_id",
    "tool_use_id",
    "choices",
    "delta",
    "index",
    "usage",
    "finish_reason",
    "message",
    "text",
    "thinking",
    "summary",
    "item",
    "response",
    "block",
    "content_block",
    "partial_json",
    "tools",
    "tool_choice",
    "thread",
    "conversation",
    "model",
    "prompt_tokens",
    "prompt_tokens_details",
    "function_call",
    "functions",
    "is_error",
    "stop_reason",
]
leaves = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from([*WORDS, b"bytes", openai.omit, object()])
    | st.text(max_size=3)
    | st.builds(iter, st.just([]))
)
anything = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES), inner, max_size=6)
        | st.tuples(inner, inner)
    ),
    max_leaves=20,
)
objects = st.dictionaries(st.sampled_from(NAMES), anything, max_size=8)


@each_reader
@given(body=objects, parts=st.lists(objects, max_size=5), events=st.lists(anything, max_size=5))
def test_no_shape_makes_a_reader_raise(
    wire: ModuleType, body: dict[str, Any], parts: list[Any], events: list[Any]
) -> None:
    requests = [body, body | {"messages": parts, "input": parts}]
    read = [wire.read_request(request) for request in requests]
    responses_ = [wire.read_response(obj) for obj in (*requests, *parts, *events)]
    reader = wire.StreamReader()
    for event in (*parts, *events):
        reader.feed(event)
    conversations = Conversations(KEYS, keep_args=True)
    for request, response in itertools.product(read, [*responses_, reader.response()]):
        link = conversations.request(request, 1)
        conversations.response(link.chain, response, 1)
        assert len(link.answered) >= len(request.answers)
