"""Who works through a list is told the same each time; who asks again names the same things."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from otel_loopguard.core.fingerprint import Fingerprinter
from otel_loopguard.core.model import Kind, Sighting
from otel_loopguard.core.subject import MAX_FIELDS, MAX_WORDS, Named, sleeps, words_in
from tests.core.steps import call, failure, page, seen, utterances

if TYPE_CHECKING:
    from collections.abc import Sequence

PRINTER = Fingerprinter(b"key")
THINGS = [
    *("beacon", "harbour", "ledger", "tariff", "clinic", "turbine", "roster"),
    *("voyage", "coupon", "parcel", "kiosk", "broker", "tenant"),
]
PEOPLE = ["M. Okafor", "L. Brandt", "T. Ueda", "S. Rossi", "Anna Maria Lopez", "P. Novak", "O'Neil"]
CLEAN = "The file was looked at. There is nothing in it to complain about."


def named(*each: object, in_form: bool = False) -> list[bool]:
    """Which of these arguments name another thing than those before."""
    first, *others = map(PRINTER.of_subject, each)
    names = Named(first)
    return [names.another(other, in_form=in_form) for other in others]


def queries(*each: object) -> list[dict[str, object]]:
    return [{"q": one} for one in each]


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(queries(*PEOPLE), id="names"),
        pytest.param(
            queries("王伟", "李娜", "张敏", "刘洋"), id="names in a script without spaces"
        ),
        pytest.param([f'{{"q": "{who}"}}' for who in PEOPLE], id="JSON text"),
        pytest.param([{"path": f"src/{each}.py", "deep": True} for each in THINGS], id="files"),
        pytest.param(queries(*[f"wc -l src/{each}.py" for each in THINGS]), id="one command"),
        pytest.param(
            queries("rm -r build", "chmod +x run.sh", "touch log", "ln -s a b"), id="work"
        ),
        pytest.param(queries("A-1001", "B-2417", "C-3090"), id="ids"),
        pytest.param(PEOPLE, id="no fields"),
    ],
)
def test_each_names_another_thing(args: Sequence[object]) -> None:
    assert all(named(*args))


@pytest.mark.parametrize(
    "args",
    [
        pytest.param(queries("red lease fee", "lease fee in red", "fee, lease"), id="other words"),
        pytest.param(queries(*[f"fetch page {n} of the list" for n in range(9)]), id="numbers"),
        pytest.param(queries(1, 2, 3), id="nothing but numbers"),
        pytest.param(queries("a1", "a2", "a3"), id="names that count up"),
        pytest.param(
            queries("cat a.txt", "sudo cat a.txt", "cat a.txt | head"), id="the same file"
        ),
        pytest.param([{"q": "lease"}, {"q": "fee", "n": 3}, {"text": "rent"}], id="other fields"),
        pytest.param(queries("lease", "lease"), id="the same"),
        pytest.param(
            [{"q": "lease", "requestId": f"req_{each}"} for each in THINGS], id="another request"
        ),
        pytest.param(
            queries("固态电池量产时间", "量产固态电池", "固态电池何时量产"), id="no spaces"
        ),
    ],
)
def test_none_names_another_thing(args: Sequence[object]) -> None:
    assert not any(named(*args))


def test_what_was_named_before_is_nothing_else() -> None:
    assert named(*queries("harbour", "ledger", "harbour", "ledger")) == [True, False, False]


def test_a_form_is_filled_anew() -> None:
    """In the same places other words each time: the first time it may be another wording."""
    inserts = [f"insert into seats the value {each}" for each in THINGS]
    assert named(*queries(*inserts)) == [False, *[True] * (len(THINGS) - 2)]
    assert all(named(*queries(*[f"insert into seats '{each}'" for each in THINGS])))


def test_texts_of_many_words_have_some_in_common() -> None:
    texts = [
        "We met the owner of the mill in the old town and asked her for the key to the gate.",
        "The winter in the hills was long, and nobody of the village came to see the new bridge.",
    ]
    assert all(named(*queries(*texts)))


def test_in_form_only_a_name_is_another_thing() -> None:
    work = queries("rm -r build now", "chmod +x run.sh log", "touch a log file")
    assert not any(named(*work, in_form=True))
    assert named(*queries("M. Okafor", "L. Brandt", "T. Ueda"), in_form=True) == [True, True]


def test_a_subject_is_bounded_and_runs_no_code() -> None:
    many = PRINTER.of_subject({f"f{n}": "a b " * 99 for n in range(99)})
    assert len(many) == MAX_FIELDS
    assert {len(words) for _, words in many} == {MAX_WORDS}
    assert PRINTER.of_subject({1: "a", "q": object()}) == ((hash("q"), ()),)


def test_what_was_named_long_ago_is_remembered_longest() -> None:
    """The table takes no more words from some size on; what it does not know is another thing."""
    names = Named(PRINTER.of_subject({"q": "harbour"}))
    for n in range(40):
        assert names.another(PRINTER.of_subject({"q": page(1000 + n)}))
    assert not names.another(PRINTER.of_subject({"q": "harbour"}))
    assert names.another(PRINTER.of_subject({"q": page(1039)}))


def test_who_tells_a_shell_to_sleep() -> None:
    assert sleeps(PRINTER.of_subject({"command": "sleep 30 && tail log"}))
    assert sleeps(PRINTER.of_subject({"command": "Start-Sleep -Seconds 5"}))
    assert not sleeps(PRINTER.of_subject({"command": "systemctl is-active sleeper"}))


def test_words_in_an_unspaced_script_are_pairs() -> None:
    assert len(words_in("固态电池")) == 3
    assert len(words_in("王")) == 1
    assert words_in(" / -- ") == (0, 0)


def numbered(*each: object) -> list[bool]:
    """Which of these arguments name another thing, where a number may stand for one."""
    first, *others = map(PRINTER.of_subject, each)
    names = Named(first)
    return [names.another(other, by_number=True) for other in others]


IDS = [48213, 48377, 48391, 49020]


@pytest.mark.parametrize(
    "args",
    [
        pytest.param([{"order_id": n} for n in IDS], id="ids"),
        pytest.param([{"order_id": str(n), "deep": True} for n in IDS], id="as texts"),
        pytest.param([{"chapter": n} for n in range(4)], id="chapters"),
        pytest.param([{"at": f"00:{n:02}:30"} for n in range(4)], id="times"),
        pytest.param(
            [{"lat": 48.1 + n / 7, "lon": 9.2 + n / 9} for n in range(4)], id="two at once"
        ),
        pytest.param(queries(*[f"mark order {n} as paid" for n in IDS]), id="in a text"),
        pytest.param([{"day": f"2026-05-{n:02}"} for n in range(8, 14)], id="days"),
        pytest.param(
            queries(*[f"closed on 2026-05-{n:02}" for n in range(8, 14)]), id="days in texts"
        ),
        pytest.param([{"host": f"web{n}", "do": "df -h"} for n in range(8, 13)], id="hosts"),
        pytest.param(queries(*[f"http://n-{n:02}.int/up" for n in range(1, 9)]), id="addresses"),
        pytest.param([{"seat": f"{n}{c}"} for n in range(8, 10) for c in "ABC"], id="seats"),
        pytest.param(queries("978-3-16-148410-0", "978-0-13-235088-4"), id="several in one"),
    ],
)
def test_numbers_that_name_things(args: Sequence[object]) -> None:
    assert all(numbered(*args))


@pytest.mark.parametrize(
    "args",
    [
        pytest.param([{"page": n} for n in range(4)], id="pages"),
        pytest.param([{"Page_Number": n} for n in range(4)], id="pages in another spelling"),
        pytest.param(queries(*[f"fetch page {n} of the list" for n in range(9)]), id="in a text"),
        pytest.param(queries(*[f"select * limit {n}" for n in (100, 200, 500, 1000)]), id="limits"),
        pytest.param([{"id": n, "page": n % 9} for n in IDS], id="one of two counts"),
        pytest.param([{"x": n % 900, "y": n % 700} for n in IDS], id="places"),
        pytest.param([{"id": 7}, {"id": "of 7 8"}, {"id": 7}], id="more words"),
        pytest.param(queries(*[f"grep savings_{n} a.rs" for n in range(9)]), id="a name counts up"),
        pytest.param([{"id": n} for n in (7, 7, 7)], id="the same"),
        pytest.param([{"id": "a"}, {"id": 7}], id="a number for a word"),
    ],
)
def test_numbers_that_do_not(args: Sequence[object]) -> None:
    assert not any(numbered(*args)[1:])


def test_a_number_that_was_there_before_is_nothing_else() -> None:
    assert numbered(*[{"id": n} for n in (1, 2, 1, 2, 3)]) == [True, False, False, True]


LISTS = [
    pytest.param([call("find", who, "[]") for who in PEOPLE], id="nobody is there"),
    pytest.param([call("lint", f"src/{each}.py", CLEAN) for each in THINGS], id="all is well"),
    pytest.param([call("sh", f"rm out/{each}.log", "") for each in THINGS], id="silent commands"),
    pytest.param([failure("head", f"{a}.org", "404") for a in THINGS[:6]], id="dead links"),
    pytest.param(
        [call("replace", f"{a} {b}", CLEAN) for a in "abcd" for b in "abcd"], id="an editor's word"
    ),
    pytest.param(
        [
            Sighting(Kind.TOOL, "order", args={"id": 48213 + 37 * n}, result=CLEAN)
            for n in range(12)
        ],
        id="numbered things",
    ),
    pytest.param(
        [failure("open", each, "denied", error="PermissionError") for each in THINGS[:4]],
        id="doors that are shut",
    ),
]


@pytest.mark.parametrize("steps", LISTS)
def test_a_list_is_worked_through(steps: list[Sighting]) -> None:
    assert utterances(steps) == []


@pytest.mark.parametrize(
    ("steps", "pattern"),
    [
        pytest.param(
            [call("find", text, "[]") for text in ("lease fee", "fee of lease", "the lease fee?")]
            * 2,
            "result_stagnation",
            id="the same question in other words",
        ),
        pytest.param(
            [call("find", who, "[]") for who in PEOPLE[:2] * 4],
            "result_stagnation",
            id="the same names once more",
        ),
        pytest.param(
            [call("find", who, page(7)) for who in PEOPLE],
            "result_stagnation",
            id="the same page for all names",
        ),
        pytest.param(
            [
                Sighting(Kind.TOOL, "list", args={"page": n, "of": "orders"}, result=CLEAN)
                for n in range(12)
            ],
            "result_stagnation",
            id="the same for all pages",
        ),
        pytest.param(
            [failure("head", f"{each}.org", "503") for each in THINGS],
            "retry_storm",
            id="nothing answers",
        ),
    ],
)
def test_what_only_looks_like_a_list(steps: list[Sighting], pattern: str) -> None:
    assert pattern in {name for _, name, _ in utterances(steps)}


def test_what_says_nothing_while_others_bring_news_is_work() -> None:
    def turns(result: str) -> list[Sighting]:
        asks = ("lease fee", "fee of lease", "the lease fee?", "a fee for lease", "lease, fee")
        return [
            step
            for n in range(15)
            for step in (call("move", asks[n % 5] + "!" * n, result), call("look", n, page(n)))
        ]

    assert utterances(turns("")) == []
    assert utterances(turns("no results"))[0][1] == "result_stagnation"


def test_lists_of_any_length_but_not_without_end() -> None:
    names = [call("find", f"{a}{b}{c}", "[]") for a in "abcde" for b in "fghij" for c in "kl"]
    assert utterances(names[:30]) == []
    ((at, pattern, severity),) = utterances(names)
    assert (30 < at < 50, pattern, severity) == (True, "result_stagnation", "warning")


def test_the_thoughts_that_a_tool_is_given_are_its_work() -> None:
    thoughts = [
        Sighting(Kind.TOOL, "think", args={"thought": page(n)}, result="Your thought was noted.")
        for n in range(9)
    ]
    assert utterances(thoughts) == []
    cards = [
        Sighting(Kind.TOOL, "card", args={"list": 3, "title": each}, result="done")
        for each in THINGS
    ]
    assert utterances(cards) == []
    told = [
        Sighting(Kind.TOOL, "sh", args={"cmd": "ls -l", "title": each}, result="noop")
        for each in THINGS
    ]
    assert utterances(told)[0][1] == "hard_loop"


def test_a_user_speaks_between() -> None:
    asks = [step for who in PEOPLE for step in (seen(Kind.USER), call("find", who, "[]"))]
    assert utterances(asks) == []
