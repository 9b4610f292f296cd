"""What was said, taken apart: the statements of a message, what each of them tells, and which of
them tell nothing.

Statements are taken as they stand; only white space is made one. Code, tables and quotations are
not taken. The tables know English, and of other languages the commonest words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

LONGEST = 320  # characters of a statement; a longer one is cut where a clause ends
SHORTEST = 18
_LONGEST_MESSAGE = 30_000  # what stands after so much is no longer looked at

_FENCE = re.compile(r"^\s*(```+|~~~+)")
_HEADING = re.compile(r"^\s{0,3}#{1,6}\s+(?P<text>.+?)\s*#*\s*$")
_BULLET = re.compile(r"^(?P<indent>\s*)(?:[-*+•–]|\d{1,2}[.)])\s+(?:\[[ xX>]\]\s+)?(?P<text>\S.*)$")
_TABLE = re.compile(r"\|.*\||\|?[ \t]{0,8}:?-{3}")
_RULE = re.compile(r"(?:[-*_=─━]\s*+){3,}$")
_BOLD_LINE = re.compile(r"^\s*\*\*(?P<text>[^*\n]{2,80}?)\*\*:?\s*$")
_LABEL = re.compile(r"\A\*\*(?P<text>[^*\n]{2,80}?)\*\*\s*(?::|[—–-]|\Z)\s*")
_LINK = re.compile(r"!?\[(?P<text>[^\]\n]+)\]\([^)\s]+\)")
_MARKS = re.compile(r"\*\*|__|(?<!\w)[*_](?=\S)|(?<=\S)[*_](?!\w)|`|~~")
_TAGS = re.compile(r"</?[a-zA-Z][\w-]*(?:\s[^<>]{0,200})?>")
_ABBREVIATION = re.compile(
    r"(?:\b(?:e\.g|i\.e|etc|vs|cf|approx|no|fig|incl|resp|Mr|Dr)|\b[A-Z])\.$", re.I
)
_ABBREVIATED = 12  # characters that tell
_CLOSING = frozenset("\"')]*`")
_END = re.compile(r"(?<=[.!?])[\"')\]*`]*\s+(?=[A-Z0-9\"'`*\[(“‘])|(?<=[。！？])")
_CLAUSE = re.compile(
    r"(?:; | — | – | - |, (?:and|but|so|which|while|because|since|where|with|then) |: |\. |, | \()"
)

# What a statement tells: name, pattern, example. A statement may tell several things.
CUES: tuple[tuple[str, str, str], ...] = (
    (
        "cause",
        r"\b(?:because|root cause|caused by|due to|turns out|culprit|that'?s why|which is why"
        r"|this is why|the reason|as a result)\b|\b(?:issue|problem|bug|cause|failure|error"
        r"|race) (?:is|was|comes|came|here|stems)\b|\bis a (?:race|bug|known|timing"
        r"|regression)|\bfails? (?:because|when|since|if|on)\b",
        "It fails because the cache is keyed by the folder.",
    ),
    (
        "result",
        r"\A(?:\*\*|`[^`]*`\s*(?:—|-|:|–)?\s*)*(?:Added|Fixed|Removed|Replaced|Updated"
        r"|Renamed|Changed|Moved|Extracted|Implemented|Created|Refactored|Switched|Simplified"
        r"|Converted|Introduced|Deleted|Restored|Bumped|Upgraded|Wired|Disabled|Enabled"
        r"|Merged|Split|Inlined|Documented|Dropped|Reverted|Rewrote|Migrated|Exposed|Skipped"
        r"|Hid|Made|Set|Pinned|Hardened|Cleaned|Corrected|Adjusted|Extended|Reworked|Resolved"
        r"|Unified|Consolidated)\b",
        "Removed the button from the page.",
    ),
    (
        "result",
        r"(?<=\S )(?:now|no longer) \w+"
        r"|\b(?:has|have|was|were) (?:been )?(?:added|fixed|removed|replaced|updated|renamed"
        r"|changed|moved|extracted|implemented|created|refactored|inverted|applied|restored"
        r"|reverted)\b|\b(?:I|we)(?:'ve| have)? (?:added|fixed|removed|replaced|updated"
        r"|renamed|changed|moved|extracted|implemented|created|refactored|switched|rewrote"
        r"|dropped|reverted)\b",
        "The parser now returns all of them.",
    ),
    (
        "decision",
        r"\b(?:decided|decision|chose|chosen|going with|went with|go with|opted|settled on"
        r"|instead of|rather than|in favou?r of|prefer(?:red)?|trade-?offs?|deliberately"
        r"|intentionally|by design|recommend\w*)\b",
        "We went with one table instead of two.",
    ),
    (
        "gotcha",
        r"\b(?:gotcha|caveat|careful|beware|footgun|pitfall|silently|limitation|workaround"
        r"|pre-?existing|flaky|race condition|edge case|only works|does(?:n't| not) work"
        r"|won't work|did(?:n't| not) work|not supported|unsupported|must (?:not |be )|never "
        r"|can(?:'t|not) be|important:|note:|note that|watch out|breaks? (?:if|when))",
        "Note that the flag is silently ignored.",
    ),
    (
        "failed",
        r"\b(?:did(?:n't| not) (?:work|help|fix)|does(?:n't| not) (?:work|help)"
        r"|still (?:fails?|failing|broken|not)|reverted|rolled back|gave up|not possible"
        r"|impossible|tried .{0,60}\bbut\b|attempt\w* .{0,40}fail|dead end)\b",
        "Raising the timeout did not help.",
    ),
    (
        "how",
        r"\b(?:works by|is (?:called|invoked|triggered|stored|computed|derived|resolved"
        r"|loaded|read|written|generated|keyed|cached) |flow is|is responsible for"
        r"|consists of|lives in|defined in|points? to|delegates to|→|falls back to"
        r"|reads? .{1,40} from|writes? .{1,40} to)",
        "The id is derived from the path.",
    ),
    (
        "why",
        r"\b(?:because|so that|in order to|to avoid|to prevent|to ensure|to keep|since it"
        r"|the reason|this (?:ensures|prevents|avoids|means|allows|lets)|otherwise)\b",
        "It is cached so that the hook stays fast.",
    ),
    (
        "pattern",
        r"\b(?:pattern|convention|consistent with|same (?:approach|pattern|way|shape)"
        r"|follow(?:s|ing) the existing|idiom|matches the existing)\b",
        "This follows the existing pattern.",
    ),
    (
        "next",
        r"\b(?:next steps?|remaining|still needs?|still to|left to do|to-?do|follow-?ups?"
        r"|not yet|would you like|want me to|shall i|should i|let me know|ready to (?:commit"
        r"|push|merge|review)|i can also|out of scope|for later|you(?:'ll| will)? need to)\b",
        "Next step: wire it into the worker.",
    ),
    # The commonest words of other languages.
    (
        "cause",
        r"原因|ため[、。に]|ので、|なぜなら|因为|由于|때문|\b(?:weil|wegen|liegt daran|parce que"
        r"|à cause d|porque|debido a|perché|потому что|из-за)\b",
        "索引がないため、検索に失敗します。",
    ),
    (
        "result",
        r"(?:追加|修正|変更|削除|実装|対応|更新)しま(?:し|す)|(?:添加|修复|修改|删除|实现|更新)了"
        r"|已(?:添加|修复|修改|删除|实现|更新)|(?:추가|수정|삭제|변경)(?:했|됐)"
        r"|\b(?:hinzugefügt|behoben|entfernt|geändert|ersetzt|umbenannt|ajouté|corrigé|supprimé"
        r"|modifié|remplacé|añadido|agregado|corregido|eliminado|cambiado|добавил|исправил|удалил"
        r"|изменил)\w*",
        "Das Feld wurde entfernt und der Test geändert.",
    ),
    (
        "decision",
        r"代わりに|ではなく|決定|决定|而不是|대신|\b(?:statt|anstatt|entschieden|au lieu d"
        r"|plutôt que|en lugar de|em vez de|invece di|вместо)\b",
        "Wir nehmen eine Tabelle statt zwei.",
    ),
    (
        "gotcha",
        r"注意|気をつけ|小心|주의|\b(?:Achtung|Vorsicht|attention à|cuidado|atenção|осторожно)\b",
        "注意: この設定は無視されます。",
    ),
)
_CUES = tuple(
    (name, re.compile(pattern, re.I if name != "result" else 0)) for name, pattern, _ in CUES
)

# A message without any of these is not worth being taken apart for what was found on the way.
_FINDING = re.compile(
    "|".join(pattern for name, pattern, _ in CUES if name in ("cause", "gotcha", "failed")), re.I
)

# Words that stand before what is said.
_INTERJECTION = re.compile(
    r"\A(?:(?:done|yes|yep|yeah|no|sure|ok(?:ay)?|great|perfect|good(?: (?:catch|question"
    r"|point|idea|news))?|confirmed|exactly"
    r"|right|correct|fixed|excellent|nice|absolutely|agreed|understood|got it|found it"
    r"|found (?:the|an) (?:issue|problem|bug)"
    r"|you'?re (?:absolutely |completely )?(?:right|correct)|that'?s (?:right|correct"
    r"|a good (?:point|question))|makes sense"
    r"|i see(?: the (?:issue|problem))?|all done|all good|short answer|in short|tl;?dr"
    r"|actually|hmm|ah|now|so|and|but|also|however|additionally|finally"
    r"|summary|to summarize|in summary|note|update)\b\s*(?:[.!,:;—–-]+\s*|\Z))+",
    re.I,
)
# What says nothing to somebody who was not there.
BOILERPLATE: tuple[tuple[str, str], ...] = (
    (
        r"\A(?:here(?:'s| is| are)|below is|this is|these are) (?:a |the |an |my |what|how"
        r"|your )?.{0,80}:?\Z",
        "Here's a summary of the changes:",
    ),
    (
        r"\A(?:all |the )?(?:\d[\d,]* )?(?:unit |integration |e2e )?(?:tests?|checks?"
        r"|lint(?:er|ing)?|build|typecheck|everything|all)\b.{0,40}\b(?:pass(?:es|ed|ing)?"
        r"|clean|green|succe\w+|ok|good|fine)\b.{0,60}\Z",
        "All tests pass, lint is clean.",
    ),
    (
        r"\A(?:(?:now |first,? |next,? |then,? |also |ok,? )*(?:let me|let's|i'll|i will"
        r"|i'm going to|i am going to|i need to|i should|i want to|i can|i could|i have|i now"
        r"|i've now|i'm|now i|we can now|time to)\b)",
        "Let me look at the file.",
    ),
    (
        r"\b(?:would you like|do you want|want me to|shall i|should i|let me know"
        r"|is there anything|feel free|happy to|ready (?:to|when|for)|what(?:'s| is) next"
        r"|which (?:one|option|approach|would)|how would you|what would you)\b",
        "Would you like me to commit this?",
    ),
    (
        r"\A(?:the )?(?:commit(?:ted)?|pushed|merged|staged|branch|pr|pull request"
        r"|working tree|working copy|changes?)\b.{0,60}\b(?:created|success\w*|clean|pushed"
        r"|committed|ahead|up to date|ready)\b.{0,80}\Z",
        "Committed successfully: 6c8aa66 Hide the selector",
    ),
    (
        r"\A(?:you can|you should|you could|to (?:run|test|verify|use)|run|try|please|just"
        r"|simply|re-?run|restart|check)\b.{0,120}\Z",
        "You can re-run the test:",
    ),
    (
        r"\A(?:all |every)?\s*(?:changes|done|complete\w*|finished|implemented"
        r"|everything)\b.{0,60}(?:implemented|complete\w*|done|verified|applied|made|in place"
        r"|works?|working|finished)?[.:!]?\Z",
        "All changes implemented and verified.",
    ),
    (
        r"\A(?:summary|changes|files?|verification|testing|results?|overview|details|status"
        r"|notes?|options?|before|after|example|usage|what changed|key (?:changes|points"
        r"|findings))\b.{0,30}:?\Z",
        "Summary of changes",
    ),
    (
        r"\A(?:the )?(?:plan|implementation|refactoring|work|task|fix|feature|update) (?:is"
        r"|has been|was)(?: now| fully| been)* (?:complete\w*|done|implemented|finished|ready"
        r"|applied|in place)[.!]?\Z",
        "The refactoring is complete.",
    ),
    (
        r"\A(?:i'm|i am|we're|i've started|i've (?:just )?)\s?\w+ing\b|\A(?:still |currently "
        r"|now )?(?:waiting|checking|looking|running|reading|working|continuing|moving on"
        r"|proceeding|starting|fetching)\b",
        "I'm reading the logs now.",
    ),
    (
        r"\A(?:replied|responded|committed|pushed|force-pushed|amended|rebased|squashed"
        r"|staged|verified|confirmed|tested|validated|ran|re-?ran|checked|both commits"
        r"|all (?:pr )?(?:review )?(?:threads|comments))\b.{0,90}\Z",
        "Pushed to PR #12.",
    ),
    (
        r"\A(?:fixup |commit |the commit |branch |amended ).{0,60}\b(?:pushed|squashed"
        r"|created|with lease)\b",
        "Fixup squashed into 3f602d14, pushed with lease.",
    ),
    (
        r"\A(?:so )?(?:the|this|that) (?:issue|problem|error|bug|fix|test|approach|change"
        r"|code|file|reason) (?:is|was|looks|seems) (?:\w+ ){0,2}\w+[.!]?\Z",
        "So the issue is different.",
    ),
    (r"\A\S+\Z", "`src/a.py`"),
    (
        r"\A(?:thanks|thank you|glad|sorry|apolog|no problem|you'?re welcome|welcome|hello"
        r"|hi)\b",
        "Glad it's working now!",
    ),
    (r"\A(?:this|that|it|these|those|they)\b.{0,28}\Z", "That makes sense."),
    (
        r"\A(?:option|step|phase|approach|part|task|wave) [\dA-Z]{1,3}\b.{0,40}\Z",
        "Option 1: Use a token",
    ),
    (
        r"\A[\w' -]{0,40}:?\s*\[?https?://\S+\Z|\A(?:pr|branch|commit|url|link|area"
        r"|files?)\s*:\s*\S+\Z",
        "PR: https://x.test/1",
    ),
    (r"\A\[[^\]]{0,80}\]\Z|\AI'?m (?:sorry|unable)|\Aas an ai\b", "As an AI I cannot see it."),
)
_BOILERPLATE = tuple(re.compile(pattern, re.I) for pattern, _ in BOILERPLATE)
# A word of a heading that any message could have.
_GENERIC_HEADING = re.compile(
    r"(?:summary|changes?|overview|details?|status|notes?|results?|verification|testing|tests?"
    r"|files?|context|background|implementation|problem|issues?|solution|fix(?:es|ed)?|root"
    r"|cause|analysis|findings?|conclusion|recommendations?|next|steps?|what|how|why"
    r"|options?|plan|approach|scope|goals?|impact|examples?|usage|references?|review|key|the"
    r"|of|and|to|in|for|an?|is|are|was|it|this|that|these|changed|made|modified|created"
    r"|added|updated|done|works?|happened|suggestions?|proposal|assessment|explanation"
    r"|answers?|questions?|behaviou?r|current|new|final|complete|code|quality|report|minor"
    r"|critical|important|high|low|medium|priority|quick|full|main|all|session|everything|we"
    r"|you|i|our|your|where|so|far|now|up"
    r"|\d+|[^\w\s])",
    re.I,
)
_LABELLED = re.compile(
    r"\A(?:root cause|the (?:fix|bug|problem|issue|cause|solution)|problem|issue|bug|fix"
    r"|cause|summary|finding|result|solution|diagnosis|verdict|conclusion|answer|plan"
    r"|implementation plan|feature|task|goal|feat|proposal|design"
    r"|refactor)\s*(?:\([^)]*\))?\s*[:—–-]\s+",
    re.I,
)
_WORD = re.compile(r"[^\W\d_]{2,}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")
_SPECIFIC = re.compile(
    r"`[^`]+`|\b\w+[_./]\w+|\b[a-z]+[A-Z]\w+|\b[A-Z]{2,}\b|--\w|\d{2,}|\"[^\"]{2,}\""
)


@dataclass(frozen=True, slots=True)
class Statement:
    """`text` occurs in the message as it stands, white space aside."""

    text: str
    heading: str = ""  # under which it stands
    kind: str = "sentence"  # sentence, bullet, heading
    lead: bool = False  # before the first list or heading

    @property
    def tells(self) -> frozenset[str]:
        return tells(self.text)

    @property
    def specific(self) -> int:
        """How many things it names that one could look for."""
        return len(_SPECIFIC.findall(self.text))


def plain(text: str) -> str:
    """A statement as a title would have it: without marks, links by their names."""
    text = (
        _TAGS.sub("", _LINK.sub(lambda m: m["text"], text)) if "<" in text or "](" in text else text
    )
    return " ".join(_MARKS.sub("", text).replace("’", "'").split())


def statements(text: str) -> list[Statement]:
    """The statements of a message in order, boilerplate among them."""
    found: list[Statement] = []
    heading, lead, fence = "", True, ""
    block: list[str] = []  # the lines of a paragraph, or of a point with what goes on below it
    point = False

    def end_block() -> None:
        nonlocal block
        if block:
            text = " ".join(block)
            found.extend(_bullet(text, heading) if point else _sentences(text, heading, lead))
            block = []

    for line in text[:_LONGEST_MESSAGE].split("\n"):
        if mark := _FENCE.match(line):
            end_block()
            if not fence:
                fence = mark[1][:3]
            elif mark[1].startswith(fence):
                fence = ""
            continue
        if fence:
            continue
        stripped = line.strip()
        if not stripped or _TABLE.match(stripped) or _RULE.match(stripped) or stripped[0] == ">":
            end_block()
            point = False
        elif titled := (_HEADING.match(line) or _BOLD_LINE.match(line)):
            end_block()
            point = False
            heading = plain(titled["text"])
            found.append(_statement(titled["text"], "", "heading", False))
            lead = False
        elif bullet := _BULLET.match(line):
            end_block()
            lead, point = False, True
            block.append(" ".join(bullet["text"].split()))
        else:
            block.append(" ".join(stripped.split()))
    end_block()
    return found


def _sentences(text: str, heading: str, lead: bool) -> list[Statement]:
    return [_statement(part, heading, "sentence", lead) for part in split_sentences(text)]


def _bullet(text: str, heading: str) -> list[Statement]:
    """A point of a list; a long one is taken apart like any other text."""
    if len(text) <= LONGEST:
        return [_statement(text, heading, "bullet", False)]
    return [_statement(part, heading, "bullet", False) for part in split_sentences(text)]


def _statement(text: str, heading: str, kind: str, lead: bool) -> Statement:
    return Statement(cut(text, LONGEST), heading, kind, lead)


def split_sentences(text: str) -> list[str]:
    parts: list[str] = []
    begin = 0
    for end in _END.finditer(text):
        at = end.start()
        if _ABBREVIATION.search(text, max(begin, at - _ABBREVIATED), at):
            continue
        if text.count("`", begin, at) % 2:
            continue  # in the middle of code
        if at - begin < 6 and text[begin:at].strip(" .").isdigit():
            continue  # the number of a point
        closing = text[at : end.end()].rstrip()
        part = text[begin:at].strip() + (closing if text[at : at + 1] in _CLOSING else "")
        if part:
            parts.append(part)
        begin = end.end()
    rest = text[begin:].strip()
    return [*parts, rest] if rest else parts


def may_find(text: str) -> bool:
    """Could a message tell a cause, a trap or a failure? Looks at all of it at once."""
    return _FINDING.search(text) is not None


@lru_cache(maxsize=4_096)
def tells(text: str) -> frozenset[str]:
    bare = plain(text)
    return frozenset(name for name, pattern in _CUES if pattern.search(bare))


def word_count(text: str) -> int:
    """Words; of scripts without spaces three characters count as one."""
    return len(_WORD.findall(_UNSPACED.sub(" ", text))) + len(_UNSPACED.findall(text)) // 3


@lru_cache(maxsize=4_096)
def boilerplate(text: str) -> bool:
    """Nothing that could be worth keeping: too short, a question, or talk about the talk."""
    bare = without_interjection(plain(text)).strip(" *#:—–-")
    if bare[-1:] in "?？" or word_count(bare) < 3:
        return True
    if len(bare) < SHORTEST and not _UNSPACED.search(bare):
        return True
    return any(pattern.search(bare) for pattern in _BOILERPLATE)


def generic_heading(text: str) -> bool:
    """A heading that any message could have."""
    if re.match(r"(?:what|how|why|where|when|which)\b", plain(text), re.I) and not _SPECIFIC.search(
        text
    ):
        return True
    words = [
        word
        for word in plain(text).split()
        if not _GENERIC_HEADING.fullmatch(word.strip(":()?!.,"))
    ]
    return len(words) < 2


def without_label(text: str) -> str:
    """`Root cause: the cache` is about the cache."""
    return _LABELLED.sub("", text, count=1)


def without_interjection(text: str) -> str:
    rest = _INTERJECTION.sub("", text, count=1)
    return rest or text


def cut(text: str, most: int) -> str:
    """The beginning of a text, at most so long, up to the end of a clause; nothing is changed."""
    if len(text) <= most:
        return text
    ends = [
        found.start() for found in _CLAUSE.finditer(text[: most + 1]) if found.start() > most // 3
    ]
    at = ends[-1] if ends else text.rfind(" ", 0, most)
    shorter = text[: at if at > 0 else most].rstrip(" ,;:—–-(")
    return (
        shorter if shorter.count("`") % 2 == 0 else shorter[: shorter.rfind("`")].rstrip(" ,;:—–-(")
    )


_JOINT = re.compile(
    _CLAUSE.pattern
    + r"| (?:because|instead of|rather than|so that|which|when|while|since|where|although"
    r"|even though|in order to|but|to (?:avoid|prevent|ensure|match|keep|use)|with"
    r"|without|that|and|by|via) "
)
_ASIDE = re.compile(r"\s*\([^()]{3,120}\)|\s*\[[^\[\]]{3,80}\]")
_DANGLING = re.compile(
    r"(?:[\s,;:—–-]*\s\(?(?:a|an|the|and|or|but|to|of|in|on|at|by|for|from|with|without|into"
    r"|as|is|are|was|were|be|been|has|have|had|that|which|when|where|while|if|so|than"
    r"|then"
    r"|because|since|not|no|its|their|his|her|our|your|my|this|these|those|about|via|per"
    r"|now|will|would|can|could|should|may|do|does|did|explains?|uses?|e\.g|i\.e|\S))+\Z",
    re.I,
)


def as_title(text: str, most: int = 80) -> str:
    """A statement as a title: without marks, asides and interjections; a long one ends with its
    first clauses, or where it is cut with a sign that it goes on."""
    bare = without_label(without_interjection(plain(text))).strip(" .:;,—–-")
    if len(bare) > most:
        bare = " ".join(_ASIDE.sub("", bare).split())
    return _begun(shortened(bare, most))


def shortened(text: str, most: int) -> str:
    """At most so long: whole clauses where they fill at least half of it, else words and …"""
    if len(text) <= most:
        return text
    ends = [m.start() for m in _JOINT.finditer(text[: most + 1]) if m.start() >= most * 0.45]
    if ends:
        return _DANGLING.sub("", text[: ends[-1]].rstrip(" ,;:—–-("))
    short = text[: text.rfind(" ", 0, most)] if " " in text[:most] else text[: most - 1]
    return _DANGLING.sub("", short).rstrip(" ,;:—–-(") + "…"


def _begun(text: str) -> str:
    """With a capital, unless it begins with a name."""
    first = text.split(" ", 1)[0]
    return text[:1].upper() + text[1:] if first.isalpha() and first.islower() else text
