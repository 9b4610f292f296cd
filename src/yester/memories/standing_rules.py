"""The table of what a standing rule sounds like.

Data, not machinery: a cue is a name, what such a rule is (kind, scope, confidence), the ways to say
it, sentences that it must find and sentences that it must not. The tests walk the table.

A cue is matched at the beginning of a sentence, after words that only lead in (LEAD): of what comes
after a comma or an "and", half describes the program and not the work on it. The groups x… are what
is preferred, y… what it is preferred to or what is given up. `standing_vetoes` has the last word.

Sentences are cut before they come here, and every repetition is bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

from yester.memories.phrases import (
    ALLOWED,
    DO,
    DONE,
    EVENT,
    FROM_NOW,
    LEAD,
    NOT,
    NOT_TO,
    OF_PROGRAMS,
    OF_WORK,
    ONE_THING,
    OVER,
    PLACES,
    SOME,
    THING,
    TO_LEAVE,
    VERB,
    one_of,
)

_STOP = r"(?=[\s,;.!]|\Z)"
_THIS = r"(?!\s(?:it|this|that|them)\b)"  # what follows is at hand, not general
_ONE = one_of("the this that these those it them my your his her anything a an")  # one thing
_EVERY = one_of("each every any")
_REPO = r"(?:repo(?:sitory)?|project|code ?base|monorepo)"
_CAN = r"(?:possible|(?:we|you) can)"
_LATER = one_of("ask run use write keep check commit push tell test avoid follow put name")
_FUTURE = r"(?:in(?: the)? future|next time)"
_SIZES = one_of("small short atomic focused minimal simple readable")
_PARTS = one_of(
    "commits, prs, pull requests, functions, diffs, changes, files, modules, classes, methods",
    "comments tests",
)
_KEPT = one_of(
    "tests docs fixtures specs migrations components scripts plans schemas helpers assets"
)
_TONGUES = one_of(
    "english german french spanish italian portuguese dutch polish russian chinese japanese korean",
    "plain",
)
_RULE = one_of("directive principle rule guideline convention")
_MUCH = one_of("really strongly generally usually typically normally always definitely much also")
_AT_HAND = one_of(
    "the this that it its those these option approach number your his her another one neither",
    "either both",
)
_STATE = r"\b(?:when|if) (?:the|it|its|a|an|there|they|users?|no)\b"  # of a program
_HERE = r"(?!.{0,200}\b(?:here|for (?:the|this)|option)\b)"
_NEW = one_of(
    "code function feature endpoint file component test module class command route migration",
    "dependency api package method script",
)
_FILES = r"(?:claude\.md|agents?\.?\s?md|instructions|cursor ?rules|copilot-instructions(?:\.md)?)"
_TOLD = one_of("before, already, several times, many times, repeatedly, again, twice")


@dataclass(frozen=True, eq=False)
class Cue:
    name: str
    kind: str  # instruction, correction, preference
    scope: str  # project, or global: about the user's manner and not about one project
    confidence: float
    ways: tuple[str, ...]
    examples: tuple[str, ...]
    near_misses: tuple[str, ...]
    anywhere: bool = False  # also after other words; the rule then begins where the match does

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        lead = r"(?:.{0,300}?(?:^|[\s,(]))??" if self.anywhere else LEAD
        return re.compile(rf"{lead}(?P<core>{'|'.join(self.ways)})", re.I | re.S)


CUES = (
    # --- for good: always, never, from now on ---------------------------------------------------
    Cue(
        "always", "instruction", "project", 0.9,
        (rf"(?:always|never(?:,? ever)?)\s(?!{OF_PROGRAMS}){VERB}{ONE_THING}"
         rf"(?!.{{0,120}}{_STATE})",),
        ("always run the linter before committing", "Never commit to main.",
         "and please always use absolute imports", "Always show the diff when I ask for a change"),
        ("never mind, use the old one", "Always returns an empty list", "never worked for me",
         "it never works on windows", "The command should always print the id",
         "always show the url in the header", "Always here to help", "never again a blank page",
         "never block the event loop", "always use the latest session when resuming",
         "never use a fallback when the token is missing", "never give up on the connection"),
    ),
    Cue(
        "you must", "instruction", "project", 0.85,
        (rf"(?:you|claude|(?:the )?agents?|sub-?agents)\s(?:"
         rf"(?:should|must|need to|have to|shall)\s(?:always|never)|(?:must|may|shall) not"
         rf"|are (?:not|never) {ALLOWED} to|are never to)\s(?!see|be able|get|end up|need|notice"
         rf"|find)"
         rf"{VERB}{ONE_THING}",),
        ("you must never force push", "You should always write the test first",
         "you are not allowed to edit generated files"),
        ("you can always use the old configuration", "you should rebase first",
         "the user must never see this", "you must not use the old key",
         "you should always be able to undo"),
    ),
    Cue(
        "not allowed", "instruction", "project", 0.8,
        (rf"(?:it is|it's|its) (?:never|not) {ALLOWED} to {VERB}",),
        ("It is not allowed to add long names",
         "put into the guide that it is not allowed to skip tests"),
        ("is it not allowed to write there?", "it is not possible to write there"),
        anywhere=True,
    ),
    Cue(
        "we always", "instruction", "project", 0.8,
        (rf"(?:we|our team)\s(?:should |must |want to )?(?:always|never)\s{OF_WORK}{_THIS}",),
        ("we always squash before merging", "we should never mock the database"),
        ("we always show the prompt first", "we never got that far", "we should always print it",
         "we never run it at night"),
    ),
    Cue(
        "want you to", "instruction", "global", 0.85,
        (rf"i\s(?:want|need|expect)\syou\sto\s(?:always|never)\s{VERB}{ONE_THING}",
         rf"(?:make|be) sure\s(?:that\s)?(?:you|to)\s(?:always|never)\s{VERB}{ONE_THING}"),
        ("I want you to always explain the plan first", "make sure to never log tokens"),
        ("I want you to look at the logs", "make sure it always returns a list"),
    ),
    Cue(
        "from now on", "instruction", "project", 0.9,
        (rf"(?:{FROM_NOW}|for future sessions|as a (?:general )?rule(?: of thumb)?)\s?[,:]?\s"
         rf"(?:please\b|(?:you|we)\b(?!\s(?:will|can|could|may|have)\b)|i want|let's|{NOT}|always"
         rf"|only"
         rf"|no\b|{VERB})",
         rf"(?:{_FUTURE}|for future reference)\s?,\s(?:please\b|{NOT}|always|only|{_LATER})\b",
         rf"{_FUTURE}\s(?:please|{NOT}|always|only|you should|ask)\b"),
        ("From now on, put tests next to the code", "going forward use conventional commits",
         "next time, ask before you delete anything", "in future please keep the diff small"),
        ("in the future this may be cached", "how do we prevent it in future",
         "in future sessions the file is read", "in future, add caching",
         "going forward we will need a cache"),
    ),
    Cue(
        "henceforth", "instruction", "project", 0.85,
        (rf"(?:just\s|let's\s|we\s|you\s(?:should\s|can\s)?)?(?:{NOT}\s{VERB}|only\s|{DO})"
         rf".{{2,160}}?\s{FROM_NOW}\s?[.!]{{0,3}}\Z",),
        ("Just start the worker by hand going forward.", "use four spaces from now on"),
        ("both are counted going forward", "the flag is gone from now on"),
    ),
    Cue(
        "must never be", "instruction", "project", 0.8,
        (r"(?!(?:it|this|that|they)\b)\w.{1,80}?\b(?:should|must|may|can)(?: not|n't) "
         rf"(?:ever be {DONE}|be {DONE}\b.{{0,40}}?\bever)\b",
         rf"(?!(?:it|this|that|they)\b)\w.{{1,80}}?\b(?:should|must) never be {DONE}\b(?! by)"),
        ("the first migration should not be edited ever", "generated files must never be edited"),
        ("it should never be updated", "the cache should not be updated twice",
         "the row can never be seen"),
    ),
    # --- whenever, everywhere, in general -------------------------------------------------------
    Cue(
        "before every", "instruction", "project", 0.85,
        (rf"(?:before|after|for)\s{_EVERY}\s{EVENT}\b.{{0,20}}?[,:]\s?(?:please\s)?{DO}",
         rf"{DO}.{{2,80}}?\s(?:before|after|for)\s{_EVERY}\s{EVENT}\b"),
        ("run the tests before every commit", "after each push, check the pipeline"),
        ("it runs before every commit", "the hook fires on every push",
         "log a message on every commit"),
    ),
    Cue(
        "whenever", "instruction", "project", 0.85,
        (r"(?:whenever|every ?time|each time|any ?time)\s(?:you|i (?:ask|say|tell|mention))\b"
         r"(?!\s(?:click|press|open|type|select|hover|scroll|visit|load|refresh)\b)"
         rf".{{3,120}}?[,:]\s?(?:please|always|you (?:should|must|need to)|make sure"
         rf"|{NOT}(?! hesitate)|{DO})",
         rf"when i (?:say|ask|tell|type)\b.{{2,80}}?,\s?(?:i (?:always )?mean|you should|please"
         rf"|{DO})",
         rf"{DO}.{{2,100}}?\s(?:whenever|every ?time|each time)\s"
         r"(?:you|i (?:ask|say|tell)|we (?:commit|push|merge|release|deploy|add|change))\b"),
        ("whenever you change the schema, update the client",
         "update the changelog every time you fix a bug"),
        ("every time I run it the test fails", "do not run the tests every time, only at the end",
         "any time you need help, don't hesitate to ask",
         "every time you click the button, add a row"),
    ),
    Cue(
        "everywhere", "instruction", "project", 0.8,
        (r"(?:let's\s|(?:let's )?(?:make sure|ensure)\s(?:that\s)?(?:we're\s|we\s|you\s|to\s)?"
         r"|we should\s(?:be\s)?|you should\s)?(?:use|using|write|follow|stick to|favou?r)"
         r"\b.{2,120}?\b"
         rf"(?:everywhere|where(?:ver)? {_CAN}|whenever {_CAN}|throughout"
         rf"|across the (?:whole )?{_REPO})\b",),
        ("use plain functions where possible",
         "let's make sure we're using one quote style everywhere",
         "use early returns whenever possible"),
        ("is the hash used everywhere?", "it is shown everywhere", "add the icon everywhere"),
    ),
    Cue(
        "in general", "instruction", "project", 0.8,
        (r"(?:generally|in general|by convention|as a convention|usually)\s?,?\s(?:please\s)?"
         rf"(?:{DO}|{NOT}|we {OF_WORK})",),
        ("in general, keep functions short", "generally avoid classes"),
        ("in general it works", "generally a good idea"),
    ),
    Cue(
        "all new", "instruction", "project", 0.8,
        (rf"(?:all|every|any)\snew\s{_NEW}s?\s(?:must|should|needs? to|has to|have to)\s(?:have"
         rf"|include"
         r"|follow|go|live|use|come with|be (?:tested|typed|documented|reviewed|covered))\b",
         rf"(?:write|add)\s(?:\w+\s)?tests?\sfor\s{_EVERY}\snew\s"),
        ("every new function must have a test", "write tests for each new endpoint"),
        ("the new command should print a table", "add tests for the new command",
         "all new users must confirm their email", "every new command should print a table"),
    ),
    Cue(
        "the rule is", "instruction", "project", 0.8,
        (r"(?:the|our|my|one)\s(?:(?:overriding|general|main|guiding|golden|basic|number one|first)"
         rf"\s)?{_RULE}\s(?:here\s|in this repo\s)?is\s?:?\s(?:to|that|not|never|always|no)\s",
         r"(?:our|my)\s(?:\w+\s)?(?:convention|style|standard|practice)\s(?:here\s)?is\s"
         r"(?!not\b|a\b|that\b)\S"),
        ("the golden rule is to not break the build",
         "Our convention is that tests come first", "our naming convention is snake_case"),
        ("the rule is broken", "the first rule is not applied to folders, why?"),
    ),
    Cue(
        "in this repo", "instruction", "project", 0.85,
        (rf"(?:in|for|across)\s(?:this|our)\s{_REPO}\s?,?\s(?:we|you)\s(?:should\s|must\s"
         rf"|want to\s)?"
         rf"(?:always\b|never\b|don't\b|do not\b|only\b|{OF_WORK}(?!\s(?:to|an?|it|this|that)\b))",
         rf"(?:in|for|across)\s(?:this|our)\s{_REPO}\s?,?\s(?:always|never|please|use|{NOT})\b",
         rf"(?:in|for|across)\s(?:this|our)\s{_REPO}\s?,?\s(?:all |every )?"
         r"(?:tests?|commits?|branches|prs?|migrations?)\s(?:should|must|live|go|belong|are kept)"
         r"\b"),
        ("in this repo we want to keep lock files", "in this project, tests live in spec/"),
        ("in this repo all tests fail", "for this project we currently have two workers",
         "in this project we want to build a parser", "in this repo we use a parser of our own"),
    ),
    Cue(
        "where things live", "instruction", "project", 0.8,
        (rf"(?:(?:the|our|all|new)\s){{0,2}}(?:\w{{1,20}}\s)?{_KEPT}\s(?:should\s|must\s|always\s)?"
         r"(?:live|go|belong|are kept)\s(?:next to|beside|(?:in|under|into)\s(?:the\s)?"
         r"(?:`|\S{1,60}/|tests?\b|src\b|docs\b))",),
        ("tests live in spec/unit", "integration tests should go under tests/flow"),
        ("the tests go red", "tests live longer than the server", "tests go in a new file",
         "docs should go under the header"),
    ),
    # --- what to leave --------------------------------------------------------------------------
    Cue(
        "unless asked", "instruction", "project", 0.9,
        (rf"(?:{NOT}|no)\b.{{2,120}}?\b(?:unless (?:i|we|you(?:'re| are)|explicitly|asked|told)\b"
         r"|without (?:asking|being asked|telling me|my|explicit|permission|approval"
         r"|confirmation)\b)",),
        ("don't commit unless I ask", "do not install packages without asking",
         "no new dependencies without my approval"),
        ("don't merge it without the fix", "do not retry unless the error is temporary"),
    ),
    Cue(
        "don't, in general", "instruction", "project", 0.8,
        (rf"{NOT}\s(?:ever\s)?{NOT_TO}\b(?!\s(?:it|this|that)\b).{{1,100}}?\b"
         r"(?:like (?:that|this|these)|ever(?: again)?|anywhere|in general|again)\b",
         rf"{NOT}\s{NOT_TO}\s(?!{_ONE}\b).{{0,80}}?\b(?:in|on|to|into) (?:the |our |any )?{PLACES}"
         rf"\b"
         r"(?!\s(?:that|which|for|of|we|you|i|in|from|when)\b)",
         rf"(?:don't|dont|do not)\sever\s{NOT_TO}\b",
         rf"{NOT}\s(?:guess|make (?:stuff|things) up|hallucinate|make assumptions|over-?engineer)"
         rf"\b",
         rf"{NOT}\sask\s(?:me\s)?(?:for\s)?(?:permission|confirmation|approval|every time|again)"
         rf"\b"),
        ("don't add comments like that", "do not use emojis in commit messages",
         "please don't push to main", "don't ever touch generated files", "don't guess, ask",
         "don't ask me for permission"),
        ("don't touch that file", "don't open an issue, just tell me", "do not restart anything",
         "don't add it to the docs", "don't do that again", "don't push to main in the script"),
    ),
    Cue(
        "stop doing", "correction", "project", 0.85,
        (rf"(?:stop|quit|avoid|refrain from|no more)\s{TO_LEAVE}\b{ONE_THING}{_HERE}",),
        ("stop adding docstrings to tests", "please avoid inventing new names"),
        ("stop the server", "stop using that", "avoid the second option", "it stops adding rows",
         "stop adding the header", "avoid using recursion here"),
    ),
    Cue(
        "you keep", "correction", "project", 0.8,
        (rf"you\s(?:keep|always|constantly)\s(?:keep\s)?(?:forgett?(?:ing)?\sto\s\S|{TO_LEAVE}"
         rf"\b{_THIS})",),
        ("you keep adding comments to obvious code", "you always forget to run the formatter"),
        ("you keep the old name", "did you keep adding rows"),
    ),
    Cue(
        "not here", "correction", "project", 0.8,
        (rf"we\s(?:don't|do not)\s{OF_WORK}.{{1,80}}?\b(?:here|in (?:this|our) {_REPO}|ever|at all)"
         rf"\b",),
        ("no, we don't mock the database here", "we don't commit build output in this repo"),
        ("we don't have a test here", "we don't run it at night"),
    ),
    Cue(
        "told you", "correction", "project", 0.85,
        (r"i(?:'ve| have)?\s(?:already\s|repeatedly\s)?(?:told|asked)\s(?:you\s)?"
         rf"(?:{_TOLD}\s){{0,2}}(?:not to|never to|to (?:always|never|stop))\s\S",),
        ("I told you not to edit the lock file", "i already asked you to never push"),
        ("I told you the port", "I asked you to fix the test"),
    ),
    # --- what to keep in mind -------------------------------------------------------------------
    Cue(
        "remember", "instruction", "project", 0.8,
        (rf"remember(?:\salso|\sagain|\sthis)?\s?[:,]\s(?:we|you|always|{NOT}|the|our|in this|all"
         rf"|no|{DO})\b",
         r"remember(?:\salso|\sagain)?\s(?:that|you|we|never|always|don't)\s"
         r"(?!(?:one|time|bug|issue|day|conversation)\b)\S",
         rf"remember(?:\salso|\sagain)?\s(?:not )?to\s{VERB}(?!\s(?:it|this|that|the|my|your)\b)"
         rf"\s\S"),
        ("please remember that the staging database is shared", "remember to use short names",
         "Remember: the api is versioned"),
        ("I remember now, the branch was dirty", "do you remember the port?",
         "remember the bug from last week", "Remember, I'm here to help",
         "remember to bump the version"),
    ),
    Cue(
        "memorise", "instruction", "project", 0.8,
        (r"(?:memori[sz]e|make a (?:mental )?note|note for (?:the )?future(?: sessions)?"
         r"|keep a note)\s?"
         r"(?:[:,]\s|that\s|to\s)\S",),
        ("memorize that deploys happen on tuesdays", "make a note: the token lives in vault"),
        ("memorize the layout", "add a note to the readme"),
    ),
    Cue(
        "written down", "instruction", "project", 0.75,
        (r"(?:(?:let's|we (?:also )?(?:need|have) to|we should(?: also)?|i want (?:you )?to"
         r"|you (?:should|must|need to))\s)?(?:also\s)?(?:add|put|write|update|create|document"
         r"|include"
         rf"|record)\b.{{0,50}}?\b{_FILES}(?:\s\S{{1,20}}){{0,3}}?\s(?:saying|stating|to (?:always"
         rf"|never)\b"
         r"|that (?:says?|states?|you|we|it|whenever|all|every|the agent|claude|no)\b"
         r"|(?:but|and) make sure that (?:claude|you|agents?)\b)",),
        ("add to CLAUDE.md that you never push without tests",
         "I want to create instructions that state that comments are kept short"),
        ("could you put this into CLAUDE.md?", "Update CLAUDE.md to match the new layout",
         "add a test for AGENTS.md targets"),
    ),
    Cue(
        "ask first", "instruction", "project", 0.85,
        (r"(?:you (?:should|must|need to|have to)\s)?(?:ask|check with|confirm with|consult|tell"
         r"|warn)\s"
         r"(?:me|us)\s(?:first\s)?before\s(?:you\s)?(?:ever\s)?[a-z]+",),
        ("ask me before committing", "check with me first before you install anything"),
        ("ask me questions so that you have all you need", "ask the reviewer before merging"),
    ),
    # --- what is used and preferred -------------------------------------------------------------
    Cue(
        "use x, not y", "preference", "project", 0.9,
        (rf"(?:use|prefer|run|stick (?:to|with))\s(?P<x>{THING})(?:\s\w{{1,20}})?{OVER}"
         rf"(?P<y>{THING})",
         rf"(?P<x2>{THING})\s?,?\snot\s(?P<y2>{THING})",
         rf"not\s(?P<y3>{THING})\s?[,;–-]\s?(?:use\s)?(?P<x3>{THING})",
         rf"{NOT}\suse\s(?P<y4>{THING})\s?[,;–-]\s?(?:please\s)?use\s(?P<x4>{THING})"),
        ("use pnpm not npm", "prefer rebase over merge", "use `uv` instead of pip",
         "pytest, not unittest", "don't use npm, use pnpm", "not npm, pnpm"),
        ("use the second option instead of the first", "use the flag, not the variable"),
    ),
    Cue(
        "we use", "preference", "project", 0.85,
        (rf"(?:we|our team|th(?:is|e) {_REPO})\s(?:only\s|now\s)?(?:uses?|prefers?|stick (?:to"
         rf"|with)"
         rf"|are using)\s(?:(?P<x>{SOME}){OVER}(?P<y>{SOME}){_STOP}"
         rf"|(?P<x2>{THING})(?=\s?(?:[,.;!]|\Z)|\s(?:for|in|as|here|everywhere)\b))",),
        ("we use pnpm not npm", "We use tabs.", "we use Linear issues rather than GitHub issues"),
        ("we use it to find the branch", "if we use pnpm it fails",
         "we use hooks to add the trailer", "the project uses webpack and it is slow"),
    ),
    Cue(
        "no longer", "preference", "project", 0.8,
        (rf"(?:we|i)\s(?:also\s)?no longer (?:use|want|like|rely on){ONE_THING}\s"
         rf"(?P<y>{SOME}){_STOP}",
         rf"(?:we|i)\s(?:don't|do not) (?:use|want|like|rely on){ONE_THING}\s(?P<y2>{SOME})\s"
         r"(?:any ?more|here|at all)\b",
         rf"no longer (?:need|use)\s(?P<y3>{THING})"),
        ("i no longer use yarn", "we don't use mocks any more", "No longer need podman."),
        ("we no longer have the id", "I no longer see the error", "it is no longer used",
         "we no longer use the old parser, remove it", "I don't use this function anymore"),
    ),
    Cue(
        "prefer x", "preference", "project", 0.85,
        (rf"prefer\s(?!(?:{_ONE}|option|not)\b)(?!.{{0,120}}\b(?:when|if)\b)"
         rf"(?P<x>{SOME})(?:{OVER}(?P<y>{SOME}))?(?=[,;.!]|\Z)",),
        ("prefer composition over inheritance", "Prefer early returns."),
        ("prefer the first one", "users prefer tabs", "prefer long names when resolving"),
    ),
    Cue(
        "i prefer", "preference", "global", 0.8,
        (rf"i\s(?:{_MUCH}\s)?(?:prefer|prioriti[sz]e|favou?r)\s{_HERE}"
         rf"(?!(?:{_AT_HAND}|[b-d]|a(?=[,.]|\s?\Z)|\d+)\b)(?P<x>\S.{{2,200}})",),
        ("I prefer small functions", "I generally prefer composition over inheritance",
         "we are close, and I prefer using fewer dependencies"),
        ("I'd prefer option two", "I prefer the second one", "she prefers tabs",
         "I actually prefer B here", "I prefer using a queue here",
         "I prefer a simple list for the sidebar"),
        anywhere=True,
    ),
    Cue(
        "my preference", "preference", "global", 0.8,
        (r"my\s(?:strong\s|personal\s|general\s)?preference is (?:to|for|that|always)\s"
         r"(?!go with)\S",
         r"i\s(?:really\s)?(?:hate|dislike|don't like)\s(?:it\s)?when\s"
         r"(?:you|code|commits|tests|functions)\b"),
        ("my preference is to keep modules small", "I hate it when tests depend on each other"),
        ("my preference is B", "what is my preference for this", "I like option 1",
         "my preference is to go with the first"),
    ),
    Cue(
        "style", "instruction", "project", 0.8,
        (r"(?:use|follow|write|stick to|adhere to|respect)\s(?:the\s|our\s)?(?:\S{1,20}\s){0,2}?"
         r"(?:conventional commits?|semantic commits|gitmoji|style ?guide|naming conventions?"
         r"|coding (?:style|standards?|conventions?|guidelines)|imperative mood)\b",
         r"(?:use|write|stick to)\s(?:the\s)?(?P<x>(?:british|american|us|uk)\s(?:english"
         r"|spelling))",
         rf"keep\s(?:all\s|your\s|our\s)?{_PARTS}\s(?:\w+\s){{0,2}}?{_SIZES}\b"),
        ("use conventional commits", "follow our coding conventions", "Use US English",
         "please use British English", "keep commits small and focused"),
        ("follow the same pattern as above", "use the us region", "use the British flag",
         "keep it small", "keep the changes in the branch"),
    ),
    Cue(
        "manner of answers", "preference", "global", 0.8,
        (rf"(?:answer|reply|respond|speak|talk)\s(?:to me\s)?(?:only\s|always\s)?in\s{_TONGUES}\b"
         rf"(?!\s(?:if|when)\b)",
         r"(?:be|keep (?:your )?(?:answers?|replies|responses|explanations|messages))\s"
         r"(?:\w+\s){0,2}?"
         r"(?:concise|brief|short|terse|succinct)\b(?=\s?(?:[.!,]|in your\b|please|\Z))",
         r"(?:don't be|stop being|be less)\s(?:so\s|too\s)?(?:verbose|wordy|chatty|agreeable)\b",
         r"no (?:more )?(?:emojis?|em[- ]?dashes|emoticons|exclamation marks|co-?authored?-?by)\b"
         r"(?=\s?(?:[.!,]|in (?!the|this|that)|please|\Z))"),
        ("answer in German", "keep your answers short", "no emojis please", "be concise"),
        ("answer in the issue", "keep it short", "no emoji left in the sidebar",
         "no emojis in the title", "answer in english if the user does"),
    ),
    # --- other languages ------------------------------------------------------------------------
    Cue(
        "deutsch", "instruction", "project", 0.8,
        (r"(?:bitte\s)?(?:immer|niemals|nie)\s(?!wieder\b|noch\b)\S+\s(?:.{0,100}?\s)?"
         r"(?!ge)[a-zäöüß]{3,}en"
         r"(?=\s?[.!]|\Z)",
         r"(?:verwende|benutze|nutze|schreibe?|mache?|antworte)\s(?:bitte\s)?(?:immer|nie|niemals)"
         r"\b",
         r"(?:ab jetzt|ab sofort|in zukunft|künftig)\s(?:bitte|immer|nie|nur|keine?|verwende"
         r"|benutze|nutze)\b",
         r"merk dir\b",
         rf"wir (?:verwenden|benutzen|nutzen)\s(?P<x>{SOME})\s(?:statt|und nicht|nicht)\s"
         rf"(?P<y>{SOME}){_STOP}"),
        ("Bitte immer pnpm verwenden.", "Ab jetzt bitte kleine Commits",
         "wir verwenden pnpm statt npm", "nie direkt auf main pushen"),
        ("Das funktioniert nie", "nie gesehen", "immer noch derselbe Fehler"),
    ),
    Cue(
        "español", "instruction", "project", 0.8,
        (r"(?:por favor,?\s)?siempre\s(?:usa|ejecuta|escribe|haz|pregunta|utiliza|añade)\b",
         r"(?:por favor,?\s)?nunca\s(?:uses|hagas|escribas|toques|añadas|subas|borres)\b",
         r"(?:de ahora en adelante|a partir de ahora)\s?,?\s(?:usa|ejecuta|escribe|haz|no\b|siempre"
         r"|nunca)",
         r"recuerda (?:que|siempre)\b",
         rf"usamos\s(?P<x>{SOME})\s(?:en lugar de|en vez de|y no)\s(?P<y>{SOME}){_STOP}"),
        ("siempre usa pnpm", "A partir de ahora escribe las pruebas primero",
         "usamos pnpm en lugar de npm"),
        ("nunca funciona", "siempre falla", "a partir de ahora funciona"),
    ),
    Cue(
        "français", "instruction", "project", 0.8,
        (r"(?:toujours|ne jamais)\s[a-zéè]+(?:er|ir|re)\b",
         r"(?:désormais|dorénavant|à partir de maintenant)\s?,\s(?!ça\b|il\b|elle\b|on a\b"
         r"|c'est)\S",
         r"n'utilise jamais\b|utilise toujours\b",
         rf"on utilise\s(?P<x>{SOME})\s(?:et pas|et non|au lieu de|plutôt que)\s"
         rf"(?P<y>{SOME}){_STOP}"),
        ("toujours utiliser pnpm", "Désormais, lance les tests avant",
         "on utilise pnpm et pas npm"),
        ("ça marche jamais", "toujours la même erreur", "désormais ça marche"),
    ),
)  # fmt: skip
