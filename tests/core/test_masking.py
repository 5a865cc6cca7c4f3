"""Masking: what is volatile goes, what is progress stays."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from otel_loopguard.core.masking import HEAD, TAIL, mask, mask_parts

HIDDEN = [
    # two moments of the same thing
    ("at 2024-05-01T10:00:00Z", "at 2024-05-01T10:00:07Z"),
    ("at 2024-05-01 10:00:00,123 x", "at 2024-05-02 11:30:59,456 x"),
    ("at 2024-05-01T10:00:00.123456+02:00", "at 2024-05-01T10:00:00.9+02:00"),
    ("2024-05-01 10:00", "2024-05-01 10:01"),
    ("10:00:01 up", "9:59:59 up"),
    ("10:00:01.250 up", "10:00:01.300 up"),
    ("now 1714557600", "now 1714557607"),
    ("now 1714557600123", "now 1714557607456"),
    ("now 1714557600.25", "now 1714557607.5"),
    ("id 550e8400-e29b-41d4-a716-446655440000", "id 6BA7B810-9DAD-11D1-80B4-00C04FD430C8"),
    ("<Page object at 0x7f00aa11bb22>", "<Page object at 0x7f00aa11bc00>"),
    ("built 9f8e7d6c5b", "built a1b2c3d4e5"),
    ("took 12ms", "took 1.5 s"),
    ("in 0.12s", "in 3.4s"),
    ("after 3 seconds", "after 14 seconds"),
    ("400 \u00b5s", "7 \u00b5s"),
    ("sshd[1234]: closed", "sshd[99]: closed"),
    ("pid 1234 ended", "pid 77 ended"),
    ("Process ID 1234", "Process ID 77"),
    ("see /tmp/tmpab12cd_x/out", "see /tmp/tmpq9zz/out"),
    ("see /tmp/tmp.AbCd12XyZ9", "see /tmp/tmp.ZZxx9911aa"),
    ('{"request_id": "abc"}', '{"request_id": "xyz-1"}'),
    ('{"requestId":"a b"}', '{"requestId":"c d"}'),
    ("x-request-id: abc", "x-request-id: def"),
    ("trace_id=abc&n=1", "trace_id=def&n=1"),
    ("{'created_at': 'today'}", "{'created_at': 'yesterday'}"),
    ('{"duration_ms": 12, "n": 1}', '{"duration_ms": 9.5, "n": 1}'),
    ('{"elapsed": 12}', '{"elapsed": 13}'),
    ('{"ts": 1}', '{"ts": 2}'),
    ("pid: 12", "pid: 4000"),
]


@pytest.mark.parametrize(("one", "other"), HIDDEN)
def test_volatile_values_are_hidden(one: str, other: str) -> None:
    assert mask(one) == mask(other)
    assert mask(one) != one


KEPT = [
    "page 3 of 9",
    "18 errors left",
    "37 %",
    "37% done",
    "$12.50",
    "version 1.2.3",
    "v1.2.3s",
    "main.py:123",
    "main.ts:12:5 error",
    "main.py:12:34:56:78",
    "on 2024-05-01",
    "the 10:30 train",
    "42",
    "[1234]",
    "[12] Smith",
    "row[12]",
    "In [12]: x",
    "Process 120 records",
    "in the 1990s",
    "10 sections",
    "5 min left",
    "0x1F",
    "deadbeef",
    "1234567",
    "1234567890",  # a number, too early for a time
    "17145576001",  # eleven digits
    "+1-1714557600",
    "1714557600-1",
    "1714557600.1.2",
    "facade",
    "at /tmp/report12.csv",
    "at /tmp/tmpfiles/a",
    "tmpab12 is a name",
    "id: 12",
    "message: 12",
    "timestamps: 2",
    "outlets: 3",
    "a.ts: 12 errors",
    "10.5.0.1",
    "A1B2C3D4 is an order",
    "n\u00famero 5",
    "",
]


@pytest.mark.parametrize("text", KEPT)
def test_what_may_be_progress_is_kept(text: str) -> None:
    assert mask(text) == text


def test_only_the_volatile_part_goes() -> None:
    line = '10:00:01 job 17 took 12ms, page 3 of 9 {"request_id":"q","left":18}'
    assert mask(line) == '~ job 17 took ~, page 3 of 9 {"~,"left":18}'


def test_of_a_long_text_head_and_tail_are_searched() -> None:
    text = "at 10:00:01 " + "10:00:02 " * 3_000 + "at 10:00:03"
    head, middle, tail = mask_parts(text)
    assert head.startswith("at ~ ~ ~")
    assert tail.endswith(" at ~")
    assert middle == text[HEAD:-TAIL]
    assert mask(text) == f"{head}\n\u2026\n{tail}"


def test_up_to_the_limit_all_is_head() -> None:
    text = "x" * (HEAD + TAIL + 3)
    assert mask_parts(text) == (text, "", "")
    assert mask_parts(text + "x") == ("x" * HEAD, "xxxx", "x" * TAIL)


def test_what_is_left_of_a_long_text_is_not_cut_again() -> None:
    for volatile in ("12s", "12ms", "pid 1234"):
        masked = mask(f"{volatile} " + "x" * 20_000)
        assert mask(masked) == masked


PIECES = st.sampled_from(
    [part for pair in HIDDEN for part in pair]
    + KEPT
    + ["~", "-", ".", ":", ",", '"', "'", "=", " ", "\n", "(", "[", "]", "s", "ms", "Z", "a", "1"]
    + ["request_id", "ts", "pid ", "tmp", " /tmp/", "0x", "1714557600", "12", ":00", "T10:00"]
)
TEXTS = st.text() | st.lists(PIECES, max_size=12).map("".join)


@given(TEXTS)
@example("1714557600-12ms")
@example("1714557600.2024-05-01T10:00")
@example("pid=(12:00:00")
def test_hiding_twice_hides_no_more(text: str) -> None:
    assert mask(mask(text)) == mask(text)


@given(st.lists(TEXTS, min_size=1).map(lambda parts: " ".join(parts * (12_000 // len(parts)))))
def test_hiding_twice_hides_no_more_in_long_texts(text: str) -> None:
    assert mask(mask(text)) == mask(text)


@given(TEXTS)
def test_hiding_never_makes_a_text_longer(text: str) -> None:
    assert len(mask(text)) <= len(text)


@given(st.text(alphabet=st.characters(exclude_characters="0123456789=:", exclude_categories=["N"])))
def test_a_text_without_digits_and_keys_stays(text: str) -> None:
    assert mask(text) == text


@given(TEXTS)
def test_head_middle_and_tail_cover_the_text(text: str) -> None:
    long = text + "y" * (HEAD + TAIL + 9) + text
    head, middle, tail = mask_parts(long)
    assert head == mask(long[:HEAD])
    assert middle == long[HEAD:-TAIL]
    assert tail == mask(long[-TAIL:])
