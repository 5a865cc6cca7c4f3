"""Digests: what counts as the same, what does not, and what no value may do to us."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
import io
import json
import math
import sys
import unicodedata
import uuid
from collections import ChainMap, Counter, OrderedDict, UserDict, UserList, deque
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePosixPath
from typing import Any, Generic, NamedTuple, TypeVar

import pydantic
import pydantic.v1
import pytest
from hypothesis import given
from hypothesis import strategies as st

from otel_loopguard.core import canonical as canonical_module
from otel_loopguard.core.canonical import canonical, plain
from otel_loopguard.core.fingerprint import UNKNOWN, Fingerprinter
from otel_loopguard.core.model import MISSING
from otel_loopguard.core.plain import writer
from otel_loopguard.core.reading import Reader, encode
from otel_loopguard.core.texts import is_form_c, sample

PRINTER = Fingerprinter(b"key of the tests")


class Point(NamedTuple):
    x: int
    y: int


class Color(enum.Enum):
    RED = "red"


class Level(enum.IntEnum):
    HIGH = 3


class Tone(str, enum.Enum):
    WARM = "warm"


class Shouting(str):
    __slots__ = ()

    def __str__(self) -> str:
        return "not the content"

    def __len__(self) -> int:
        return 0


@dataclasses.dataclass
class Order:
    item: str
    count: int = 1
    seen_at: float = dataclasses.field(default=0.0, compare=False)


@dataclasses.dataclass(slots=True)
class Slotted:
    item: str
    late: int = dataclasses.field(init=False)


class Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow")
    item: str
    tags: list[str] = []

    @functools.cached_property
    def length(self) -> int:
        return len(self.item)

    @property
    def side_effect(self) -> int:
        raise AssertionError("a property was run")


class OldModel(pydantic.v1.BaseModel):
    item: str


class Plain:
    def __init__(self, **state: object) -> None:
        self.__dict__.update(state)


class WithSlots:
    __slots__ = ("_secret", "unset", "x")

    def __init__(self, x: object, secret: object) -> None:
        self.x = x
        self._secret = secret


class FrozenMap(Mapping[str, object]):
    """A mapping that counts how often it is asked for a value."""

    def __init__(self, **values: object) -> None:
        self._values = values
        self.asked = 0

    def __getitem__(self, key: str) -> object:
        self.asked += 1
        return self._values[key]

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)


class Bag(AbstractSet[object]):
    def __init__(self, *members: object) -> None:
        self._members = members

    def __contains__(self, item: object) -> bool:
        return item in self._members

    def __iter__(self) -> Iterator[object]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)


def key(value: object) -> str | None:
    return PRINTER.of_result(value)[0]


SAME = [
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, {"a": 1.0}),
    ([0], [-0.0]),
    ([10**16], [1e16]),
    ([math.nan], [float("nan")]),
    ([math.inf], [float("inf")]),
    ((1, [2]), [1, (2,)]),
    ([deque([1])], [UserList([1])]),
    (Point(1, 2), [1, 2]),
    (range(3), [0, 1, 2]),
    ({1, 2, 3}, frozenset([3, 2, 1])),
    ({"x", "y"}, Bag("y", "x")),
    ("caf\u00e9", "cafe\u0301"),
    ({"caf\u00e9": "\uac00"}, {"cafe\u0301": "\u1100\u1161"}),
    ({1: "a"}, {"1": "a"}),
    ({None: 1, True: 2, 1.5: 3}, {"null": 1, "true": 2, "1.5": 3}),
    ({Tone.WARM: 1}, {"warm": 1}),
    ({(1, 2): 3}, {"[1,2]": 3}),
    (bytearray(b"abc"), memoryview(b"abc")),
    (Color.RED, [Color.RED][0]),
    ([Color.RED, Level.HIGH, Tone.WARM], ["red", 3, "warm"]),
    ([datetime(2024, 5, 1, 12, tzinfo=timezone.utc)], ["2024-05-01T12:00:00+00:00"]),
    ([date(2024, 5, 1), time(9, 30)], ["2024-05-01", "09:30:00"]),
    ([uuid.UUID(int=1), PurePosixPath("/a/b")], [str(uuid.UUID(int=1)), "/a/b"]),
    ([Decimal("1.50"), Decimal("2.0"), Decimal("NaN")], [1.5, 2, math.nan]),
    (OrderedDict(b=1, a=2), {"a": 2, "b": 1}),
    (Counter("aab"), {"a": 2, "b": 1}),
    (UserDict(a=1), ChainMap({}, {"a": 1})),
    (FrozenMap(a=1, b=[2]), {"b": [2], "a": 1}),
    (Order("pen", 2, seen_at=1.0), {"item": "pen", "count": 2}),
    (Slotted("pen"), {"item": "pen"}),
    (Model(item="pen", extra=1), {"item": "pen", "tags": [], "extra": 1}),
    (OldModel(item="pen"), {"item": "pen"}),
    ([Shouting("content")], ["content"]),
    (Shouting("content"), "content"),
    (Plain(a=1, b=2), Plain(b=2, a=1)),
    (WithSlots(1, 2), WithSlots(1.0, 2)),
    ([ValueError("x", 1)], [ValueError("x", 1)]),
    ([int, len, json.dumps, key, json], [int, len, json.dumps, key, json]),
    ([Plain(a=1).__init__], [Plain(a=2).__init__]),
    ([timedelta(hours=1)], [timedelta(minutes=60)]),
    ([Fraction(2, 4), 1j], [Fraction(1, 2), complex(0, 1.0)]),
    ([10**5000], [10**5000]),
]


@pytest.mark.parametrize(("one", "other"), SAME)
def test_what_users_call_the_same_has_one_digest(one: object, other: object) -> None:
    assert key(one) == key(other) is not None
    assert PRINTER.of_args(one) == PRINTER.of_args(other) is not None


DIFFERENT = [
    ({"a": 1}, {"a": 2}),
    ([True], [1]),
    ([False], [0]),
    ([1], ["1"]),
    (1, "1"),
    (None, "null"),
    ([None], []),
    ([math.nan], ["NaN"]),
    ([math.inf], [-math.inf]),
    (b"abc", "abc"),
    (b"abc", b"abd"),
    ([1, 2], [2, 1]),
    ({1, 2}, [1, 2]),
    ({1, 2}, {1, 3}),
    ("a", "A"),
    ("", " "),
    ({"a": {"b": 1}}, {"a.b": 1}),
    ([[1], 2], [1, [2]]),
    (Order("pen"), Order("pen", 2)),
    (Plain(a=1), Plain(a=2)),
    (Plain(a=1), {"a": 1}),
    (WithSlots(1, 2), WithSlots(1, 3)),
    ([ValueError("x")], [ValueError("y")]),
    ([ValueError("x")], [TypeError("x")]),
    ([10**5000], [10**5000 + 1]),
    ([Decimal("0.1")], [Decimal("0.10000000000000000000000001")]),
    ([1.1], [1.2]),
    ([int], [float]),
]


@pytest.mark.parametrize(("one", "other"), DIFFERENT)
def test_what_users_call_different_has_two_digests(one: object, other: object) -> None:
    keys = key(one), key(other)
    assert None not in keys
    assert keys[0] != keys[1]


def test_digests_are_16_hex_digits_and_depend_on_the_key() -> None:
    digest = PRINTER.of_text("a")
    assert len(digest) == 16
    assert int(digest, 16) >= 0
    assert digest == Fingerprinter(b"key of the tests").of_text("a")
    assert digest != Fingerprinter(b"another key").of_text("a")


def test_a_key_of_any_length_serves_but_not_an_empty_one() -> None:
    assert Fingerprinter(b"k" * 500).of_text("a") != Fingerprinter(b"k" * 501).of_text("a")
    with pytest.raises(ValueError, match="empty"):
        Fingerprinter(b"")


def test_the_key_is_not_shown() -> None:
    assert "secret" not in repr(Fingerprinter(b"secret"))


def test_missing_is_unknown_and_none_is_not() -> None:
    assert PRINTER.of_result(MISSING) == UNKNOWN
    assert PRINTER.of_args(MISSING) is None
    assert PRINTER.of_masked(MISSING) is None
    assert PRINTER.of_args(None) is not None
    assert PRINTER.of_args({}) is not None


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{"a": 1.0, "b": [true]}', {"b": [True], "a": 1}),
        (" \n[1, 2]\t", [1, 2]),
        ('{"line": "one\ntwo"}', {"line": "one\ntwo"}),  # a line break that JSON does not allow
        ('{"a": "\\ud800"}', {"a": "\ud800"}),
    ],
)
def test_arguments_as_json_text_are_what_the_text_says(text: str, value: object) -> None:
    assert PRINTER.of_args(text) == PRINTER.of_args(value)
    assert PRINTER.of_args(Shouting(text)) == PRINTER.of_args(value)


@pytest.mark.parametrize("text", ["1", "true", '"a"', "{a: 1}", '{"a": 1', "[1] x", "[" * 100_000])
def test_other_texts_as_arguments_stay_texts(text: str) -> None:
    assert PRINTER.of_args(text) == PRINTER.of_text(text)


def test_json_text_is_read_up_to_the_limit() -> None:
    printer = Fingerprinter(b"k", max_chars=10)
    assert printer.of_args("[1,    2]") == printer.of_args([1, 2])
    assert printer.of_args("[1,      2]") == printer.of_text("[1,      2]")


def test_a_result_that_is_json_text_stays_text() -> None:
    assert key('{"a": 1}') != key('{"a":1}')


def test_the_size_of_a_text_is_its_length_and_of_others_that_of_their_form() -> None:
    assert PRINTER.of_result("caf\u00e9")[1] == 4
    assert PRINTER.of_result({"a": [1, 2.0]})[1] == len('{"a":[1,2]}')
    assert PRINTER.of_result(["x" * 1_000_000])[1] == pytest.approx(1_000_000, rel=0.001)


# --- what cannot be told -------------------------------------------------------------------------


class Opaque:
    __slots__ = ()


class Fails:
    """Raises, whatever is asked of it."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError

    def __eq__(self, other: object) -> bool:
        raise RuntimeError

    def __hash__(self) -> int:
        raise RuntimeError

    def __bool__(self) -> bool:
        raise RuntimeError


class FailingMap(FrozenMap):
    def __getitem__(self, key: str) -> object:
        raise LookupError(key)


class HostileKey:
    def __hash__(self) -> int:
        return 1

    def __eq__(self, other: object) -> bool:
        raise RuntimeError


class Evil(type):
    def __getattribute__(cls, name: str) -> Any:
        raise RuntimeError(name)


class EvilInstance(metaclass=Evil):
    pass


def numbers() -> Iterator[int]:
    yield 1


async def later() -> None: ...


async def many() -> Any:
    yield 1


def stateful() -> list[Any]:
    stream = io.StringIO("text")
    coroutine = later()
    coroutine.close()
    return [numbers(), iter([1]), map(str, [1]), stream, coroutine, many(), enumerate([1])]


class Cursor:
    """Hands out its content once."""

    def __init__(self) -> None:
        self.rows = [1, 2]

    def __iter__(self) -> Iterator[int]:
        while self.rows:
            yield self.rows.pop()


@pytest.mark.parametrize(
    "make", [object, Opaque, Fails, lambda: FailingMap(a=1), lambda: type.__call__(EvilInstance)]
)
def test_a_value_without_stable_content_is_unknown(make: Callable[[], object]) -> None:
    value = make()
    assert PRINTER.of_result(value) == UNKNOWN
    assert PRINTER.of_args(value) is None
    assert PRINTER.of_masked(value) is None
    assert plain(value) is None


@pytest.mark.parametrize("value", stateful(), ids=lambda value: type(value).__name__)
def test_what_hands_out_its_content_once_is_never_asked_for_it(value: object) -> None:
    assert PRINTER.of_result(value) == UNKNOWN
    assert PRINTER.of_args(value) is None
    assert PRINTER.of_args({"stream": value}) is not None
    if isinstance(value, io.StringIO):
        assert value.read() == "text"
    elif isinstance(value, Iterator):
        assert next(value)


def test_an_object_that_is_read_by_iterating_is_left_alone() -> None:
    cursor = Cursor()
    assert PRINTER.of_result(cursor) == UNKNOWN
    assert cursor.rows == [1, 2]


def test_an_async_generator_is_left_alone() -> None:
    async def check() -> None:
        stream = many()
        assert PRINTER.of_result(stream) == UNKNOWN
        assert [item async for item in stream] == [1]

    asyncio.run(check())


def test_among_arguments_an_object_without_content_counts_as_its_type() -> None:
    assert PRINTER.of_args({"q": 1, "c": object()}) == PRINTER.of_args({"q": 1, "c": object()})
    assert PRINTER.of_args({"q": 1, "c": object()}) != PRINTER.of_args({"q": 2, "c": object()})
    assert PRINTER.of_args({"c": object()}) != PRINTER.of_args({"c": Opaque()})
    assert PRINTER.of_args([Fails()]) == PRINTER.of_args([Fails()]) is not None


def test_in_a_result_an_object_without_content_makes_all_unknown() -> None:
    assert PRINTER.of_result([1, object()]) == UNKNOWN
    assert PRINTER.of_result({"row": Opaque()}) == UNKNOWN


def test_among_arguments_an_object_counts_as_its_public_attributes() -> None:
    def args(**state: object) -> str | None:
        return PRINTER.of_args([Plain(**state)])

    assert args(word="a") == args(word="a", _calls=7)
    assert args(word="a") != args(word="b")
    assert args(peer=Plain(a=1)) == args(peer=Plain(a=2))  # one level, no further
    assert args(_calls=1) == args(_calls=2) is not None
    around: list[object] = []
    around.append(around)
    assert args(graph=around) == args(_nothing=1)


def test_a_result_counts_with_everything_that_it_holds() -> None:
    assert key(Plain(word="a", _calls=1)) != key(Plain(word="a", _calls=2))
    assert key(Plain(rows=[Plain(a=1)])) != key(Plain(rows=[Plain(a=2)]))
    assert key(Plain(rows=[object()])) is None


def test_an_object_whose_state_is_in_a_c_type_is_unknown() -> None:
    class Stamped(functools.partial):  # type: ignore[type-arg]
        pass

    stamped = Stamped(print, 1)
    stamped.label = "x"
    assert PRINTER.of_result(stamped) == UNKNOWN


def test_generic_classes_are_read_like_others() -> None:
    item = TypeVar("item")

    class Box(Generic[item]):
        def __init__(self, value: item) -> None:
            self.value = value

    assert key(Box(1)) != key(Box(2))
    assert None not in (key(Box(1)), key(Box(2)))


def test_a_model_is_read_without_running_its_code() -> None:
    asked, other = Model(item="pen"), Model(item="pen")
    assert asked.length == 3
    assert key(asked) == key(other)
    assert key(Model.model_construct(tags=[])) == key({"tags": []})


def test_no_property_is_read_in_search_of_content() -> None:
    def fail(_: object, *__: object) -> object:
        raise AssertionError("a property was run")

    class Covered:
        item = property(fail)
        __dict__ = property(fail)  # type: ignore[assignment]
        __slots__ = ("slot",)

    class Over(Model):
        item = property(fail)  # type: ignore[assignment]

    over = Over.model_construct()
    over.__dict__["item"] = "pen"
    assert key(over) == key({"item": "pen", "tags": []})
    covered = Covered()
    assert PRINTER.of_result(covered) == UNKNOWN
    covered.slot = 1
    assert PRINTER.of_result(covered)[0] is not None


def test_a_dataclass_that_keeps_a_field_behind_a_property_counts_with_what_it_holds() -> None:
    @dataclasses.dataclass
    class Hidden:
        item: str

        def _get(self) -> str:
            return self._item

        def _set(self, item: str) -> None:
            self._item = item

    Hidden.item = property(Hidden._get, Hidden._set)  # type: ignore[assignment]
    assert key(Hidden("pen")) == key(Hidden("pen")) is not None
    assert key(Hidden("pen")) != key(Hidden("ink"))


def test_two_keys_that_json_writes_alike_are_unknown() -> None:
    assert PRINTER.of_result({1: "a", "1": "b"}) == UNKNOWN


def test_keys_with_code_of_their_own_raise_nothing() -> None:
    assert PRINTER.of_args({HostileKey(): 1}) is not None
    assert PRINTER.of_result({HostileKey(): 1}) == UNKNOWN
    assert PRINTER.of_result({Shouting("b"): 1, Shouting("a"): 2}) == PRINTER.of_result(
        {"a": 2, "b": 1}
    )


def test_interrupts_of_the_host_pass() -> None:
    class Interrupting(FrozenMap):
        def __getitem__(self, key: str) -> object:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        PRINTER.of_result(Interrupting(a=1))


def test_a_value_that_changes_while_it_is_read_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Growing(UserDict[str, object]):
        def __getitem__(self, key: str) -> object:
            self.data[key + "x"] = 1
            return 1

    assert PRINTER.of_result(Growing(a=1)) == UNKNOWN

    def out_of_stack(_: object) -> str:
        raise RecursionError

    monkeypatch.setattr(canonical_module, "encode", out_of_stack)
    assert PRINTER.of_result({"a": [1]}) == UNKNOWN

    def changed(_: object) -> str:
        given_.clear()
        return ""

    given_: dict[str, object] = {"a": "one", "b": "two"}
    monkeypatch.setattr(canonical_module, "quote", changed)
    assert PRINTER.of_args(given_) is None


# --- limits --------------------------------------------------------------------------------------


def test_lone_surrogates_have_a_digest() -> None:
    assert key("\ud800") != key("\udfff")
    assert key({"\ud800": "\udfff"}) is not None


def test_a_cycle_is_unknown() -> None:
    ring: list[object] = []
    ring.append(ring)
    table: dict[str, object] = {}
    table["self"] = [table, table]
    assert PRINTER.of_result(ring) == UNKNOWN
    assert PRINTER.of_args(table) is None


def test_the_same_part_twice_is_no_cycle() -> None:
    part = [1]
    assert key([part, part]) == key([[1], [1]])


@pytest.mark.parametrize("leaf", [1, math.nan, object], ids=["plain", "nan", "type"])
def test_depth_is_limited_alike_on_both_ways(leaf: object) -> None:
    printer = Fingerprinter(b"k", max_depth=4)
    assert printer.of_result([[[[leaf]]]])[0] is not None
    assert printer.of_result([[[[[leaf]]]]]) == UNKNOWN


@pytest.mark.parametrize("empty", [[], (), {}, set()], ids=["list", "tuple", "dict", "set"])
def test_what_is_empty_is_a_level_too(empty: object) -> None:
    printer = Fingerprinter(b"k", max_depth=2)
    assert printer.of_result([empty])[0] is not None
    assert printer.of_result([[empty]]) == UNKNOWN
    assert Fingerprinter(b"k", max_depth=0).of_result(empty) == UNKNOWN


@pytest.mark.parametrize("leaf", [1, math.nan, object], ids=["plain", "nan", "type"])
def test_nodes_are_limited_alike_on_both_ways(leaf: object) -> None:
    printer = Fingerprinter(b"k", max_nodes=4)
    assert printer.of_result([1, [leaf]])[0] is not None
    assert printer.of_result([1, [leaf, 1]]) == UNKNOWN


def test_deep_nesting_is_unknown_and_raises_nothing() -> None:
    value: object = 1
    for _ in range(100_000):
        value = [value]
    assert PRINTER.of_result(value) == UNKNOWN
    deep_limit = Fingerprinter(b"k", max_depth=10**9, max_nodes=10**9)
    assert deep_limit.of_result([value, object]) == UNKNOWN
    while isinstance(value, list):  # or freeing it would need the stack
        value = value.pop()


def test_a_large_mapping_is_not_visited_beyond_the_limit() -> None:
    small = FrozenMap(**{f"k{i}": i for i in range(100)})
    large = FrozenMap(**{f"k{i}": i for i in range(100_000)})
    assert PRINTER.of_result(small)[0] is not None
    assert PRINTER.of_result(large) == UNKNOWN
    assert large.asked <= PRINTER.max_nodes + 1


def test_many_containers_are_not_visited_beyond_the_limit() -> None:
    inner = [FrozenMap(**{f"k{i}": i for i in range(1_000)}) for _ in range(100)]
    assert PRINTER.of_result(inner) == UNKNOWN
    assert sum(part.asked for part in inner) <= PRINTER.max_nodes + 1_001


def test_a_sequence_without_end_is_given_up() -> None:
    class Endless(UserList[int]):
        def __iter__(self) -> Iterator[int]:
            while True:
                yield 1

    assert PRINTER.of_result(Endless()) == UNKNOWN


@pytest.mark.parametrize("wrap", [lambda x: x, lambda x: {"a": x}, lambda x: [x.encode()]])
def test_a_long_text_counts_by_length_head_tail_and_samples(wrap: Any) -> None:
    text = "a" * 10_000_000
    base = key(wrap(text))
    assert base is not None
    assert key(wrap(text + "a")) != base
    assert key(wrap("b" + text[1:])) != base
    assert key(wrap(text[:-1] + "b")) != base
    assert key(wrap(text[:5_000_000] + "b" * 700_000 + text[5_700_000:])) != base
    assert key(wrap("a" * 10_000_000)) == base


def test_up_to_the_limit_every_character_counts() -> None:
    text = "a" * PRINTER.max_chars
    middle = PRINTER.max_chars // 2 + 7
    changed = text[:middle] + "b" + text[middle + 1 :]
    assert key(text) != key(changed)
    assert key([text]) != key([changed])


def test_texts_that_are_too_much_together_are_sampled_in_the_order_of_keys() -> None:
    parts = {f"k{i}": chr(97 + i) * 100_000 for i in range(6)}
    mixed = dict(reversed(list(parts.items())))
    assert key(parts) == key(mixed) is not None
    assert key(parts) != key(parts | {"k5": "x" * 100_000})
    assert PRINTER.of_result(parts)[1] == pytest.approx(600_000, rel=0.01)


def test_without_an_order_texts_that_are_too_much_are_unknown() -> None:
    texts = [chr(97 + i) * 100_000 for i in range(4)]
    assert PRINTER.of_result(set(texts)) == UNKNOWN
    assert PRINTER.of_result(dict.fromkeys(texts, 1)) == UNKNOWN
    assert PRINTER.of_result(set(texts[:2]))[0] is not None


def test_hex_for_whole_numbers_that_are_too_long_to_write_in_tens() -> None:
    assert canonical([10**5000]) == f'["#{10**5000:x}"]'
    assert canonical([10**4000]) == f"[{10**4000}]"
    before = sys.get_int_max_str_digits()
    sys.set_int_max_str_digits(1_000)
    try:
        assert canonical([10**4000]) is None
    finally:
        sys.set_int_max_str_digits(before)


# --- properties ----------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(alphabet="e\u0301\u00e9\u1100\u1161\uac00\ud800a", max_size=6)
    | st.sampled_from([1e16, 1.0, -0.0, "1.0,", "1e+16", '"', "\\", "\x00"])
)
JSON_LIKE = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text(max_size=4), inner, max_size=5)
    ),
    max_leaves=20,
)


def the_long_way(value: object) -> str | None:
    try:
        return encode(Reader(10**6, 10**4, 32, named=False).reduce(value))
    except Exception as error:
        assert type(error).__name__ == "UnknownValueError"  # noqa: PT017
        return None


@given(JSON_LIKE)
def test_the_short_way_writes_what_the_long_way_writes(value: object) -> None:
    assert canonical(value) == the_long_way(value)


@given(JSON_LIKE)
def test_without_the_encoder_in_c_values_are_written_alike(value: object) -> None:
    assert writer(None)(value) == encode(value)


def shuffled(value: object) -> object:
    """The same value, made differently: keys the other way round, lists as tuples, other floats."""
    if isinstance(value, dict):
        return OrderedDict((k, shuffled(v)) for k, v in reversed(value.items()))
    if isinstance(value, (list, tuple)):
        return tuple(shuffled(v) for v in value)
    if type(value) is int and abs(value) < 2**53:
        return float(value)
    return unicodedata.normalize("NFD", value) if isinstance(value, str) else value


@given(JSON_LIKE)
def test_a_value_made_differently_has_the_same_digest(value: object) -> None:
    assert key([value]) == key([shuffled(value)])


@given(JSON_LIKE)
def test_json_text_has_the_digest_of_the_value(value: object) -> None:
    assert PRINTER.of_args(json.dumps([value])) == PRINTER.of_args([value])


@given(JSON_LIKE, JSON_LIKE)
def test_equal_digests_mean_equal_values(one: object, other: object) -> None:
    if key(one) == key(other) and key(one) is not None:
        assert canonical(one) == canonical(other)


@given(st.sets(st.text() | st.integers()))
def test_sets_have_no_order(value: set[object]) -> None:
    assert key(value) == key(Bag(*reversed(list(value))))


@given(st.text(), st.integers(1, 50))
def test_a_sample_is_bounded_and_of_a_short_text_the_text(text: str, room: int) -> None:
    taken = sample(text, room)
    assert len(taken) <= max(len(text) + 20, room + 40)
    if len(text) <= room:
        assert taken == unicodedata.normalize("NFC", text)


def test_characters_that_are_taken_to_be_form_c_are() -> None:
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if is_form_c(character):
            assert unicodedata.is_normalized("NFC", character), hex(code)
            assert unicodedata.combining(character) == 0, hex(code)
    # and none of them joins the character before it
    for text in ("e\u0301", "\u1100\u1161", "\uac00\u11a8", "\u304b\u3099", "\u09c7\u09be"):
        assert not is_form_c(text)


# --- masked --------------------------------------------------------------------------------------


def test_a_masked_digest_hides_what_is_volatile() -> None:
    one = PRINTER.of_masked("at 2024-05-01T10:00:00Z: 3 errors")
    assert one == PRINTER.of_masked("at 2024-05-01T10:00:07Z: 3 errors") is not None
    assert one != PRINTER.of_masked("at 2024-05-01T10:00:07Z: 4 errors")
    assert PRINTER.of_masked(Shouting("took 12ms")) == PRINTER.of_masked("took 13ms")


def test_without_anything_volatile_there_is_no_masked_digest() -> None:
    assert PRINTER.of_masked("3 errors left") is None
    assert PRINTER.of_masked({"errors": 3}) is None


def test_structures_are_masked_inside_of_their_texts_too() -> None:
    def masked(stamp: str, said: str = "a") -> str | None:
        inner = json.dumps({"request_id": stamp, "said": said})
        return PRINTER.of_masked({"log": f"x\n{stamp} start\t{stamp} end", "body": inner})

    assert masked("10:00:01") == masked("10:00:02") is not None
    assert masked("10:00:01") != masked("10:00:01", "b")


def test_the_middle_of_a_long_text_counts_as_it_is() -> None:
    def log(head: str, middle: str) -> str:
        return f"at {head}\n" + "x" * 9_000 + middle + "x" * 9_000

    base = PRINTER.of_masked(log("10:00:01", "a"))
    assert base == PRINTER.of_masked(log("10:00:02", "a"))
    assert base != PRINTER.of_masked(log("10:00:02", "b"))
