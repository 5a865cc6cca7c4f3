"""The words by which results tell what came of a call, side by side in several languages.

All are in lower case. A further language is further entries here, nothing else. Words of languages
that put no spaces between them ask for no word border.
"""

from __future__ import annotations

from typing import Final

from otel_loopguard.core.model import Outcome
from otel_loopguard.core.patterns import Pattern


def _any(*words: str, unspaced: str = "") -> Pattern:
    return Pattern("|".join((rf"(?<!\w)(?:{'|'.join(words)})(?!\w)", *unspaced.split())))


_WRITTEN: Final = {
    3: "three drei trois tres",
    4: "four vier quatre cuatro",
    5: "five fünf cinq cinco",
    6: "six sechs seis",
    7: "seven sieben sept siete",
    8: "eight acht huit ocho",
    9: "nine neun neuf nueve",
    10: "ten zehn dix diez",
    12: "twelve zwölf douze doce",
    20: "twenty zwanzig vingt veinte",
}
NUMBERS: Final = {word: number for number, words in _WRITTEN.items() for word in words.split()}
"""Numbers as users write them out: those that are often asked for."""

_NUMBER: Final = rf"\d{{1,3}}|{'|'.join(NUMBERS)}"

TIMES: Final = _any(
    rf"(?:{_NUMBER}) ?(?:times|x|mal|fois|veces|vezes|volte|keer|gange|ggr|raz[ay]?|раза?)",
    unspaced=r"\d{1,3}\s?[次回遍번]",
)
"""How a user says how often something is to be done."""

THINGS: Final = Pattern(
    rf"(?<![\w.,:/#-])(?:{_NUMBER})(?= [^\W\d])|(?<![a-z0-9.,:/#-])\d{{1,2}}(?=[^\W\da-z])"
)
"""A number of things: so many may be what is asked for."""

FAILURES: Final = (
    (
        Outcome.UNKNOWN_TOOL,
        _any(
            r"not a valid (?:tool|function)",
            r"(?:unknown|no such|invalid|unrecogni[sz]ed) (?:tool|function)(?: name)?",
            r"(?:tool|function) (?:\S{1,80} )?(?:is |was )?not (?:found|available|registered)",
            r"(?:tool|function) (?:\S{1,80} )?does(?: not|n't) exist",
            r"no (?:tool|function) (?:named|called)",
            r"(?:werkzeug|funktion) (?:\S{1,80} )?(?:nicht gefunden|existiert nicht)",
            r"(?:outil|fonction) (?:\S{1,80} )?(?:introuvable|inconnue?)",
            r"(?:herramienta|función) (?:\S{1,80} )?(?:no encontrada|desconocida|no existe)",
            unspaced="未知的?工具 工具不存在 找不到工具 不明なツール",
        ),
    ),
    (
        Outcome.INVALID_ARGS,
        _any(
            r"validation errors?",
            r"missing \d+ required (?:positional|keyword-only) arguments?",
            r"(?:unexpected|missing|invalid) (?:required )?(?:keyword )?(?:argument|parameter)s?",
            r"(?:field|property|parameter|argument) (?:\S{1,80} )?is (?:required|missing)",
            r"field required|is a required property",
            r"(?:invalid|malformed) json",
            r"(?:ungültige|fehlende)[rns]? (?:argumente?|parameter)",
            r"(?:arguments?|paramètres?) (?:invalides?|manquants?)",
            r"(?:argumentos?|parámetros?) (?:no válidos?|inválidos?|faltantes?)",
            unspaced="(?:参数|參數)(?:无效|無效|错误|缺失) (?:引数|パラメータ)が(?:無効|不正)",
        ),
    ),
    (
        Outcome.REFUSED,
        _any(
            r"(?:permission|access|request|approval) (?:was |is )?(?:denied|refused|rejected)",
            r"(?:not|isn't|aren't) (?:allowed|permitted|authori[sz]ed)",
            r"unauthori[sz]ed|forbidden|approval (?:is )?required|requires approval",
            r"(?:denied|rejected|refused|blocked|declined) by",
            r"(?:zugriff|berechtigung) verweigert|nicht (?:erlaubt|berechtigt|gestattet)",
            r"(?:accès|permission) (?:refusée?|interdite?)|non autorisée?",
            r"(?:acceso|permiso) denegado|no (?:autorizado|permitido)",
            r"acesso negado|não (?:autorizad|permitid)[oa]",
            r"accesso negato|non (?:autorizzat|consentit)[oa]",
            r"доступ запрещ[её]н\w*|не разреш[её]н\w*",
            unspaced="拒绝访问 权限不足 没有权限 アクセスが拒否 権限がありません 접근이.거부",
        ),
    ),
    (
        Outcome.TRUNCATED,
        _any(
            r"(?:max(?:imum)?[ _](?:output )?tokens|output limit|token limit) (?:was )?reached",
            r"(?:output|response|arguments?) (?:was|were|is|has been) (?:truncated|cut off)",
            unspaced="(?:输出|輸出)被截断 出力が切り詰められ",
        ),
    ),
)
"""What kind of failure a failure's text speaks of; the first that is found counts."""

ERROR_START: Final = _any(
    r"[a-z_.]{0,80}(?:error|exception)(?: \d{1,4})?:",
    r"error (?:executing|running|calling|invoking|while)",
    r"traceback \(most recent call last\):",
    r"exitcode: \d+ \(execution failed\)",
    r"fatal:|fehler:|ausnahme:|erreur ?:|error al|excepción:",
    unspaced=r"(?:错误|錯誤|エラー)[:\uff1a] <(?:tool_use_)?error>",
)
"""How the text of a failure starts, however long it is."""

SAYINGS: Final = (
    (
        Outcome.REFUSED,
        _any(
            r"(?:permission|access|approval) (?:was |is )?(?:denied|refused|required)",
            r"(?:you are |is |are )?not (?:authori[sz]ed|allowed|permitted) to",
            r"(?:zugriff|berechtigung) verweigert|accès (?:refusé|interdit)|acceso denegado",
            unspaced="拒绝访问 权限不足 没有权限 アクセスが拒否 権限がありません",
        ),
    ),
    (
        Outcome.ERROR,
        _any(
            r"^(?:failed|failure|could not|couldn't|cannot|can't|unable) (?:to )?\w+",
            r"^(?:\w+ ){0,3}(?:timeout|timed out)\W{0,3}$",
            r"^(?:\S{1,80} ){0,3}(?:command not found|no such file or directory)$",
            r"^http(?:/[\d.]+)? [45]\d\d",
            r"^(?:fehlgeschlagen|konnte nicht|échec|impossible de|no se pudo|falló)",
            unspaced="^(?:操作)?失败 ^无法 ^失敗 ^できません",
        ),
    ),
    (
        Outcome.PENDING,
        _any(
            r"^(?![^\n]*\w\.\w+:\d+:)(?:(?!\.\.\.|\u2026)[^\n]){1,60}(?:\.{3,6}|\u2026)$",
            r"still (?:runs|running|processing|pending|building|waiting|in progress|working)",
            r"(?:is|are) not (?:yet )?(?:ready|finished|completed?|done)",
            r"not (?:ready|finished|completed?|done) yet",
            r"not yet (?:ready|finished|completed?|done)",
            r"has not (?:yet )?(?:ended|finished|completed)",
            r"(?:status|state)(?: is|:) (?:in progress|pending|queued|processing|running)",
            r"(?:^|(?<=: )|(?:is|are) (?:still |currently )?)(?:in progress|pending|queued"
            r"|processing|running|being processed)(?:\W{0,3}\d{1,3} ?%\W?| \(.{1,40}\))?\W{0,3}$",
            r"(?:^|(?<=[\t\n|])|(?<=  ))[ ]?(?:in[ _]progress|pending|queued"
            r"|containercreating|podinitializing|terminating)"
            r"(?=[ ]?(?:$|[\t\n|]|  ))",
            r"please wait|check (?:back|again) (?:later|in)|try again (?:later|in)",
            r"läuft noch|noch nicht (?:fertig|bereit|abgeschlossen)|bitte warten|in bearbeitung",
            r"en cours|pas encore (?:prête?|terminée?)|veuillez patienter|en attente",
            r"en curso|en progreso|todavía no (?:está )?(?:list|terminad)[oa]|espere por favor",
            unspaced="正在(?:处理|运行|进行) 处理中 请稍候 尚未完成 処理中 実行中 まだ完了",
        ),
    ),
    (
        Outcome.EMPTY,
        _any(
            r"(?:^\W?|(?<=: ))(?:no|0|zero) (?:\w+ ){0,2}?"
            r"(?:results?|match(?:es)?|hits?|items?|records?|files?)"
            r"(?: (?:were |was )?(?:found|returned|matched))?(?: for .{1,120})?\W{0,3}$",
            r"^\W?(?:nothing|none|no data|not) found\W{0,3}$|^\W?no (?:new )?output\W{0,3}$",
            r"^keine (?:ergebnisse|treffer|daten)(?: gefunden)?|^nichts gefunden",
            r"^aucun(?:e)? (?:résultat|donnée)s?(?: trouvée?s?)?|^rien trouvé",
            r"^(?:sin resultados|no se encontr(?:ó|aron)(?: \w+)?)",
            unspaced="^没有(?:找到)?(?:结果|数据)?$ ^未找到 ^見つかりません",
        ),
    ),
    (
        Outcome.ACK,
        _any(
            r"^(?:\w+ ){0,3}(?:successfully|erfolgreich|avec succès)(?: \w+){0,3}\W{0,3}$",
            unspaced="^(?:操作|保存|更新|发送|删除)?成功$ (?:完了|保存|更新)しました$",
        ),
    ),
)
"""What a short text says as a whole; the first that is found counts."""

COUNTERS: Final = frozenset(
    {
        *("page", "pagenumber", "pageno", "pageindex", "pagesize", "perpage", "offset", "limit"),
        *("cursor", "start", "skip", "first", "last", "top", "topk", "k", "n", "count", "size"),
        *("max", "maxresults", "num", "numresults", "batch", "batchsize", "attempt", "attempts"),
        *("try", "retry", "retries", "index", "idx", "step", "x", "y", "depth"),
        *("timeout", "delay", "seconds", "distance", "amount", "width", "height", "value"),
    }
)
"""Fields whose numbers count, measure or turn pages, and name no thing; without `_` and case."""

ACKS: Final = frozenset(
    {
        *("ok", "okay", "done", "success", "successful", "succeeded", "true", "yes", "ack"),
        *("acknowledged", "accepted", "completed", "complete", "saved", "stored", "written"),
        *("updated", "created", "deleted", "removed", "sent", "submitted", "applied", "archived"),
        *("finished", "erledigt", "fertig", "gespeichert", "gesendet", "gelöscht"),
        *("terminé", "enregistré", "envoyé", "fait", "hecho", "listo", "guardado", "enviado"),
        *("成功", "完成", "好的", "已保存", "已完成", "完了", "成功しました"),
    }
)
"""Words that, alone, acknowledge and tell nothing else."""

STATES: Final = {
    Outcome.PENDING: frozenset(
        {
            *("running", "queued", "in_progress", "inprogress", "processing", "initializing"),
            *("preparing", "building", "training", "deploying", "provisioning", "validating"),
            *("finalizing", "retrying", "not_ready", "not_started", "executing", "still_running"),
        }
    ),
    Outcome.ERROR: frozenset(
        {"failed", "failure", "error", "errored", "fatal", "crashed", "aborted", "timed_out"}
    ),
    Outcome.REFUSED: frozenset(
        {"denied", "forbidden", "refused", "rejected", "unauthorized", "blocked"}
    ),
}
"""What a field such as `status` says, with `_` for spaces and hyphens."""

VERDICTS: Final = frozenset(
    {"block", "deny", "forbid", "disallow", "refuse", "denied", "forbidden"}
)
"""What a gate decides that lets a call not pass."""

ENTITY_STATES: Final = frozenset(
    {
        "pending",
        "waiting",
        "scheduled",
        "starting",
        "started",
        "submitted",
        "ongoing",
        "working",
        "busy",
    }
)
"""States of jobs, but of orders and tickets too: pending only in a small structure."""
