"""The words that point at something said before, side by side in several languages.

All are in lower case. A further language is further entries here, nothing else.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class Pointer(NamedTuple):
    """One way to point at something.

    Attributes:
        words: matches the words; a group `noun` is what is pointed at, if it is said.
        item: which item of a list is meant, from 1 on (-1 for the last); 0 if no item.
    """

    words: re.Pattern[str]
    item: int = 0


def _spaced(words: str) -> re.Pattern[str]:
    return re.compile(rf"(?<!\w)(?:{words})(?!\w)", re.IGNORECASE)


_ORDINALS: Final = (
    (1, "first", "erste[nrs]?", "premi(?:er|ère)", "primer[oa]?", "第一"),
    (2, "second", "zweite[nrs]?", "deuxième|seconde?", "segund[oa]", "第二"),
    (3, "third", "dritte[nrs]?", "troisième", "tercer[oa]?", "第三"),
    (4, "fourth", "vierte[nrs]?", "quatrième", "cuart[oa]", "第四"),
    (5, "fifth", "fünfte[nrs]?", "cinquième", "quint[oa]", "第五"),
    (-1, "last|latter", "letzte[nrs]?", "derni(?:er|ère)", "últim[oa]", "最后一"),
)

POINTERS: Final = (
    *(
        Pointer(
            re.compile(
                rf"(?<!\w)(?:the (?:{en}) (?:one|option|item|result|entry)|"
                rf"(?:der|die|das|den|dem) (?:{de})(?! \w)|l[ea] (?:{fr})(?! \w)|"
                rf"(?:el|la) (?:{es})(?! \w))(?!\w)|(?:{zh})[个個条件つ]",
                re.IGNORECASE,
            ),
            item,
        )
        for item, en, de, fr, es, zh in _ORDINALS
    ),
    Pointer(_spaced(r"(?:that|this|those|these|the (?:same|previous|above)) (?P<noun>\w{2,40})")),
    Pointer(_spaced(r"(?:dies(?:e[nmrs]?|)|jene[nmrs]?) (?P<noun>\w{2,40})")),
    Pointer(_spaced(r"(?:ce|cet|cette|ces) (?P<noun>\w{2,40})")),
    Pointer(_spaced(r"(?:est[ea]|es[ea]|aquel(?:la)?|estos|estas|esos|esas) (?P<noun>\w{2,40})")),
    Pointer(re.compile(r"[这那這][个個份条條张張些](?P<noun>\w{0,8})")),
    Pointer(re.compile(r"[そこあ]の(?P<noun>[^\W\dのをにはがでとも]{1,8})")),
)

NO_THINGS: Final = frozenset({
    *("is", "was", "are", "were", "will", "can", "means", "way", "week", "month", "year"),
    *("morning", "afternoon", "evening", "time", "moment", "one", "and", "or", "if", "when", "i"),
    *("we", "woche", "jahr", "monat", "abend", "mal", "ist", "semaine", "année", "mois", "fois"),
    *("soir", "qui", "que", "est", "semana", "mes", "año", "vez", "noche", "es"),
    *("星期", "月", "年", "次", "周"),
})  # fmt: skip
"""Words after a pointer that name nothing said before: "this week", "that is"."""
