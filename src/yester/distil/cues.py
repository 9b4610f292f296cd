"""What a statement tells, by its words, and which statements tell nothing.

Both tables are walked by the tests. They know English, and of other languages the commonest words.
"""

from __future__ import annotations

import re
from functools import lru_cache

from yester.distil.phrases import plain, without_fixed, without_interjection

SHORTEST = 18
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
_WORD = re.compile(r"[^\W\d_]{2,}")
_UNSPACED = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


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
    bare = without_fixed(without_interjection(plain(text))).strip(" *#:—–-")
    if bare[-1:] in "?？" or word_count(bare) < 3:
        return True
    if len(bare) < SHORTEST and not _UNSPACED.search(bare):
        return True
    return any(pattern.search(bare) for pattern in _BOILERPLATE)
