"""What says next to nothing, however well it fits: it is found, but not given to an agent unasked.

An agent's "Running it.", the three words a command printed, a summary reading "ok", the user's own
question of another day without its answer, a text of which redaction has left the brackets. They
share words with a prompt and tell nothing. What was kept on purpose (a memory) is never such.

EXAMPLES has every rule with what it takes and what it must leave; the tests walk it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from yester.deliver.gate import amounts_to
from yester.model import Hit
from yester.text.terms import STOP, text_terms

QUESTION = "a question"
_TALK = ("message", "prompt")
_LONG = 3_000  # characters, from which on something is said; and no prompt waits for the patterns
_TOOL_TERMS = 6  # distinct ones, below which what a tool was asked and said is no news
_LISTING_TERMS = 16  # … where all it did was to list or print
_ANNOUNCED = 10  # words in which something is announced and nothing told
_QUESTION = 30  # words; who asks at greater length tells something, too
_BESIDE = 3  # words of an order beside a question: "run ls"

_PLACEHOLDER = re.compile(r"\[redacted:[^\]\s]{1,60}\]|\[private\]")
_WORD = re.compile(r"\w[\w'’.-]*")
_SENTENCE = re.compile(r"[^.!?\n…]+(?:[.](?=\w)[^.!?\n…]*)*[.!?…]*")
_WENT_WRONG = re.compile(
    r"error|fail|fatal|exception|denied|refused|cannot|can't|not found|no such|invalid|missing|"
    r"warning|timed? ?out|exit code [1-9]",
    re.IGNORECASE,
)
_LISTING = re.compile(
    r"(?:\W*bash\W+)?(?:ls|ll|pwd|cd|cat|head|tail|tree|find|echo|which|wc|date|whoami|"
    r"git (?:status|log|branch|diff))\b",
    re.IGNORECASE,
)
_ANNOUNCES = re.compile(
    r"(?:(?:ok|okay|sure|right|good|great|perfect|now|next|then|first|alright|all right)\b\W*)*"
    r"(?:i(?:'|’)ll\b|i(?:'|’)m going to\b|i (?:will|am going to)\b|let me\b|let(?:'|’)s\b|"
    r"going to\b|time to\b|(?:run|check|look|read|search|inspect|test|verify|open|start|try|"
    r"work|list|updat|fix|writ|mak|edit|commit|push|creat|continu|proceed|apply|build)"
    r"(?:n|t)?ing\b)",
    re.IGNORECASE,
)
_REASON = re.compile(r"\b(?:because|since|so that|due to|instead of|rather than|weil|damit)\b|:",
                     re.IGNORECASE)  # fmt: skip
_ASKS = re.compile(
    r"(?:and |so |but |ok |okay |hey |also )?(?:what|which|where|when|why|who|whose|how|do|does|"
    r"did|is|are|was|were|have|has|had|should|shall|must|was|welche[rsnm]?|wo|wann|warum|wieso|wer|wie)"
    r"(?:'s|’s)?\b",
    re.IGNORECASE,
)
_REQUESTS = re.compile(
    r"\W*(?:please|(?:can|could|would|will) (?:you|we)|how about|what about|why (?:don't|not))\b",
    re.IGNORECASE,
)

_Some = tuple[tuple[str, str, str], ...]
# reason → (kind, role, text) it takes, and those it must leave
EXAMPLES: Mapping[str, tuple[_Some, _Some]] = {
    "acknowledges": (
        (
            ("summary", "", "ok"), ("message", "assistant", "Done."), ("summary", "", "Continue."),
            ("message", "assistant", "Great, thank you!"), ("prompt", "user", "yes, go on please"),
            ("message", "assistant", "👍"), ("prompt", "user", "run the tests again"),
            ("message", "assistant", ""),
        ),
        (
            ("summary", "", "ok with Kafka"), ("message", "assistant", "Done: Kafka it is."),
            ("memory", "", "ok"), ("message", "assistant", "Postgres."),
            ("prompt", "user", "run the nightly export again"),
        ),
    ),
    "announces": (
        (
            ("message", "assistant", "Running it."),
            ("message", "assistant", "Let me check calc.py."),
            ("message", "assistant", "I'll look at the database first."),
            ("message", "assistant", "Now let me run the migration tests."),
            ("message", "thinking", "Checking the tests…"),
            ("message", "assistant", "OK, I’ll fix that now."),
        ),
        (
            ("message", "assistant", "Let me use arq, because celery needs a broker."),
            ("message", "assistant", "Running it failed. The port was taken by nginx."),
            ("message", "assistant", "I'll keep UTC instead of local time."),
            ("message", "assistant", "Testing showed: orders keep UTC."),
            ("message", "", "Running it."), ("prompt", "user", "Let's go with Kafka."),
        ),
    ),
    "a tool's few words": (
        (
            ("message", "tool", "ls list calc.py"), ("message", "tool", "calc.py print(1)"),
            ("message", "tool", "pwd\n/home/sam/code/shop"), ("message", "tool", "true"),
            ("message", "tool", "git status\nOn branch main\nnothing to commit, all clean"),
        ),
        (
            ("message", "tool", "psql -h db\nFATAL: role shop does not exist"),
            ("message", "tool", "cat notes\nerror: port 5432 refused"),
            ("message", "tool", "alembic upgrade head\nRunning 0042 add orders.currency, 0043 drop "
                                "orders.total_cents, took 41 s on staging"),
            ("message", "assistant", "calc.py print(1)"),
        ),
    ),
    QUESTION: (
        (
            ("prompt", "user", "which database do we use? run ls"),
            ("prompt", "user", "Where does the studio logic come from?"),
            ("prompt", "user", "why is the invoice PDF empty for refunds"),
            ("prompt", "user", "Hi! What did we decide about the queue? Why?"),
            ("prompt", "user", "Warum ist der Export so langsam?"),
        ),
        (
            ("prompt", "user", "Can you add retries to the S3 client?"),
            ("prompt", "user", "Which queue? We took arq, everything is asyncio."),
            ("prompt", "user", "Why do we still use celery? arq is the one we agreed on."),
            ("prompt", "user", "The checkout spinner never stops on Safari"),
            ("prompt", "user", "What about a staging table for the import?"),
            ("message", "assistant", "Which queue library shall we take?"),
            ("message", "", "Where did you grow up?"),
        ),
    ),
    "mostly redacted": (
        (
            ("prompt", "user", "[redacted:aws-access-key] [redacted:github-token]"),
            ("prompt", "user", "use this: [redacted:password]"),
            ("message", "assistant", "[private]"), ("observation", "", "Token [redacted:jwt]"),
        ),
        (
            ("prompt", "user", "The staging database is at db4, user shop, [redacted:password]"),
            ("memory", "", "[redacted:password]"),
        ),
    ),
}  # fmt: skip


def says_little(hit: Hit) -> str:
    """Which rule of EXAMPLES a hit falls under; "" for what may be shown."""
    if hit.kind == "memory":
        return ""
    text = hit.text if hit.text.strip() else hit.title
    if hit.title and hit.kind not in _TALK:  # of talk it is but the beginning
        text = f"{hit.title}\n{hit.text}"
    if len(text) > _LONG:
        return ""
    if _mostly_redacted(text):
        return "mostly redacted"
    if hit.kind in _TALK and hit.role == "tool":
        return "a tool's few words" if _few_of_a_tool(text) else ""
    if hit.kind in (*_TALK, "summary") and amounts_to(text):
        return "acknowledges"
    if hit.kind in _TALK and hit.role in ("assistant", "thinking") and _announces(text):
        return "announces"
    if hit.kind == "prompt" and hit.role == "user" and _only_asks(text):
        return QUESTION
    return ""


def _mostly_redacted(text: str) -> bool:
    rest, gone = _PLACEHOLDER.subn(" ", text)
    return gone > 0 and len(_telling(rest)) <= 2 * gone


def _few_of_a_tool(text: str) -> bool:
    if _WENT_WRONG.search(text):
        return False
    return len(_telling(text)) < (_LISTING_TERMS if _LISTING.match(text) else _TOOL_TERMS)


def _announces(text: str) -> bool:
    return (
        _ANNOUNCES.match(text.lstrip()) is not None
        and len(_WORD.findall(text)) <= _ANNOUNCED
        and len(_sentences(text)) == 1
        and _REASON.search(text) is None
    )


def _only_asks(text: str) -> bool:
    """Are all sentences questions, but for a greeting and a short order?"""
    sentences = _sentences(text)
    asked = [one for one in sentences if _question(one, alone=len(sentences) == 1)]
    others = [one for one in sentences if one not in asked]
    return (
        bool(asked)
        and len(_WORD.findall(text)) <= _QUESTION
        and all(len(_WORD.findall(one)) <= _BESIDE for one in others)
    )


def _question(sentence: str, alone: bool) -> bool:
    """A mark says so; without one the first word does, of a text that is nothing else."""
    if _REQUESTS.match(sentence):
        return False
    return sentence.endswith("?") or (alone and _ASKS.match(sentence) is not None)


def _sentences(text: str) -> list[str]:
    return [s.strip() for s in _SENTENCE.findall(text) if _WORD.search(s)]


def _telling(text: str) -> set[str]:
    """The distinct terms that are more than grammar."""
    return {term for term in text_terms(text) if term not in STOP and len(term) > 1}
