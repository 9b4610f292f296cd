"""The parts that patterns of instructions are put together from.

For `standing_rules`: what leads in, verbs in their plain form, names of things, ways to say "not"
and "instead". Each is a piece of a regular expression, and bounded.
"""

from __future__ import annotations

import re

from yester.memories.subject import THINGS


def one_of(*words: str) -> str:
    """A pattern of alternatives: the words of a text with spaces, or with commas the phrases."""
    found = (part for text in words for part in (text.split(",") if "," in text else text.split()))
    return f"(?:{'|'.join(part.strip() for part in found if part.strip())})"


# Words before the matter: some need a sign after them, "no, use tabs" but not "no longer".
_LEADS = one_of(
    "and also but so then ok okay oh well yes yep yeah nope hmm hey btw please pls plz kindly",
    "again lastly finally ah actually",
)
_LEADS_WITH_SIGN = one_of(
    "no note nb important reminder rule right sorry thanks perfect great nice cool",
    "one more thing, as i said, as we said, as mentioned, like i said, for the record",
)
LEAD = (
    rf"(?:(?:{_LEADS}[\s,:;.!–-]|{_LEADS_WITH_SIGN}[,:;.!–-])[\s,:;.!–-]{{0,3}}){{0,4}}"
)  # fmt: skip
_NO_VERBS = one_of(
    "mind been was were had has is are did does got saw went came knew made the a an in on at of",
    "to ever that this it there true false empty again really actually quite very so as any my",
    "your when enough available possible necessary before after here up down good great happy",
    "full done nice fun hard easy ready glad sure right wrong better best worse more less new old",
    "like just also only not will would should can could must have hesitate correct we you i they",
    "he she",
)
# A verb in its plain form: not "returns", "worked", "adding", nor a word that is no verb.
VERB = (
    rf"(?!(?:{_NO_VERBS}|say never|give up|run out|(?!need|embed|feed|seed|proceed|exceed)[a-z]+ed"
    r"|(?!bring|ping)[a-z]+ing|[a-z]*[^su\W]s)\b)[a-z][a-z-]+\b"
)
_OF_PROGRAMS = one_of(
    "show display render return print hide redirect emit fire trigger send load fetch select",
    "expand collapse sort default start open close go appear happen match produce output save",
    "store fall set get call visible on off",
)
# What a program does rather than who works on it: "always show the id" asks for a feature.
OF_PROGRAMS = (
    rf"{_OF_PROGRAMS}\b(?!.{{0,160}}\b(?:when(?:ever)? (?:i|you)|before you|to me)\b)"
)  # fmt: skip
_DO = one_of(
    "use run write keep put add make follow commit push open create name call ask check test skip",
    "include avoid prefer stick do be give show tell treat leave link log base branch rebase",
    "squash format lint answer reply respond update document store save start stop explain verify",
    "confirm review read look bump merge report list mention wrap sign deploy release build",
)
DO = rf"{_DO}\b"
_OF_WORK = one_of(
    "use run write commit push merge rebase squash branch tag release deploy publish test lint",
    "format review document name prefix pin mock import install ask put keep add follow prefer",
    "sign gitignore hardcode edit touch modify delete skip require want",
)
OF_WORK = rf"{_OF_WORK}\b"
TO_LEAVE = one_of(  # what agents are asked to leave, as "stop …ing"
    "adding using writing creating committing pushing wrapping inventing leaving generating",
    "editing deleting skipping guessing asking putting importing naming repeating touching",
    "modifying assuming hardcoding introducing abbreviating mocking duplicating explaining",
    "over-?engineering apologi[sz]ing summari[sz]ing",
)
NOT_TO = one_of(  # and as "don't …"
    "add use write put wrap create include leave commit push mention generate introduce hardcode",
    "mock import insert make edit touch modify delete remove rename reformat swallow log print",
    "catch skip disable abbreviate merge do break repeat",
)
DONE = one_of(
    "updated edited committed pushed changed modified touched deleted merged logged hardcoded",
    "rewritten mocked skipped regenerated renamed force-?pushed",
)
PLACES = one_of(  # where work is done, in general
    "code, code ?base, commit messages?, commits, prs?, pull requests, pr descriptions?, comments",
    "docs documentation markdown readmes? tests production main master answers replies responses",
    "typescript javascript python go rust java sql css bash",
)
# "the tests", "the changelog" are of every task; "the old key", "the sidebar" are of one.
_OF_EVERY_TASK = one_of(
    "tests? linters? formatters? build docs documentation changelog ci pipeline prs? branch",
    "commits? main master repo code codebase readme lockfiles? types migrations? schema",
    "dependencies comments style conventions plan diff generated vendor issue ticket database",
    "versions? full whole existing",
    "test suite, pull request, code base, lock files?, type checker, git hooks?",
)
ONE_THING = (
    r"(?!\s(?:(?:it|them|this|that|these|those)\b"
    rf"|(?:the|its|their|his|her)\b(?!.{{0,30}}\b{_OF_EVERY_TASK}\b)))"
)
THING = rf"`?{one_of(*sorted(map(re.escape, THINGS), key=len, reverse=True))}`?(?![\w-])"
_WORD = r"(?:[^\s,;:.]|[.](?=\S)){1,40}"
SOME = rf"{_WORD}(?:\s{_WORD}){{0,4}}?"  # one to five words
OVER = rf"\s{{0,2}},?\s{one_of('not, instead of, rather than, over, and not, and never, never')}\s"
NOT = r"(?:don't|dont|do not|never)"
FROM_NOW = r"(?:from now on(?:wards?)?|(?:going|moving) forward|henceforth|from here on(?: out)?)"
EVENT = one_of(
    "commit push pr merge release deploy deployment session reply answer", "pull request, time you"
)
ALLOWED = one_of("allowed permitted supposed ok okay acceptable")
