"""What redaction costs and what it changes, on real messages.

    python -m bench.redact FILE [--sample N] [--seed S] [--rule NAME]
    python -m bench.redact --growth

FILE has one JSON object with a field `text` per line. Printed are the CPU seconds of redacting all
texts, the same for parsing the file as a yardstick, and the number of messages changed, by rule.

`--sample N` prints N changes picked at random, with what stands around them, to be read and judged.
Of the secret itself it shows no more than the first four characters and the length.

`--growth` redacts texts made to be slow. Each is one short piece repeated, behind a secret of every
kind so that no rule sleeps, at one size and at four times that size: a ratio of the times of about
4 is linear, about 16 would be quadratic. Then each alone, 5 MB of it, for the seconds it takes.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.redaction import list_examples
from yester.redact import find_secrets, load_rules, redact, strip_private

loads: Callable[[bytes], Any]
try:
    from orjson import loads
except ImportError:
    loads = json.loads

CONTEXT = 40
SIZE = 50_000  # characters of the smaller text that is timed
LARGE = 5_000_000
FAIR_RATIO = 8.0  # between linear (4) and quadratic (16)

BEGIN, END = "-----BEGIN " + "PRIVATE", "-----END " + "PRIVATE"

# Beginnings without an end, ends without a beginning, and the units of every kind of pattern.
SLOW_UNITS = (
    "a", "=", "-", "_", " ", "\n", "\\", '"', "<", "@", "$", ":", "0", "f", "A", ".", "/",
    "https://", "https://a:", "a@", "://a:b", "eyJ", "-eyJ", "eyJaaaaaaaaaaaaa.", "sk-", "sk-a",
    "ghp_", "xoxb-", "AKIA", "SG.", "SG.aaaaaaaaaaaaaaaaaaaa.", "hvs.", ".atlasv1.", "re_", "1:AA",
    "password=", 'password="', "password: ", "password is ", "secret=", "token=", "token:", "key=",
    "api_key=", "apikey: '", "auth=", "pwd=", ";pwd=", "_pass=", "credentials=", "--token ", "--a-",
    "authorization: bearer ", "bearer ", "cookie: ", "cookie=", "cookie: a=b;", "set-cookie: a=",
    "curl -u a:", "curl ", " -u a:", "machine a login b ", "machine ", "<password>", "></token>",
    f"{BEGIN} KEY-----", f"{BEGIN} KEY-----\nMIIEabcdefghijklmnopq\n", f"{END} KEY-----",
    "MIIEabcdefghijklmnopq\n", "private key MIIEabcdefghijklmnopq\n",
    "-----BEGIN ", "----", "$2b$10$", "$6$", "$1$aaaa$", "hooks.slack.com/services/", "discord ",
    "discord Maaaaaaaaaaaaaaaaaaaaaaaa.", "mnemonic: abc ", "abc ", "Private-Lines: 1\n", "sig=",
    "<private>", "</private>", "<private ", "< private", "&lt;private", "\\u003cprivate ", "é",
    "😀", "[redacted:token]", "name: token\n", '"key",\n', "a,", "a;", "a&b=", "k", "ke",
    "toke", "pas",
    "passphrase is '", "passphrase is abc-", "login: a / ", "log in with a:", "creds: a",
)  # fmt: skip


def cpu(work: Callable[..., object], *arguments: object) -> float:
    """CPU seconds, the best of three: the rest is what else the machine was doing."""
    times = []
    for _ in range(3):
        start = time.process_time()
        work(*arguments)
        times.append(time.process_time() - start)
    return min(times)


def repeated(unit: str, size: int) -> str:
    return (unit * (size // len(unit) + 1))[:size]


def growth() -> bool:
    """Prints the slowest pieces and how they grow; False if one grows faster than the text."""
    secrets = " ".join(list_examples(rule)[0].text for rule in load_rules()) + "\n"
    rows = []
    for unit in SLOW_UNITS:
        small, large = (secrets + repeated(unit, size) for size in (SIZE, 4 * SIZE))
        alone = repeated(unit, LARGE)
        start = time.process_time()
        redact(alone)
        seconds = time.process_time() - start
        rows.append((cpu(redact, large) / cpu(redact, small), seconds, unit))
    print(f"{'piece':44} {'ratio':>6} {'CPU s, 5 MB':>12}")
    slowest = sorted(rows, key=lambda row: row[1], reverse=True)[:10]
    for ratio, seconds, unit in [*sorted(rows, reverse=True)[:10], *slowest]:
        print(f"{unit[:42]!r:44} {ratio:6.1f} {seconds:12.2f}")
    return max(rows)[0] < FAIR_RATIO


def masked(secret: str) -> str:
    return f"⟦{secret[:4]}… {len(secret)}⟧"


def changes(text: str) -> list[tuple[str, str]]:
    """(kind, the change with its surroundings) for all that redaction takes out of a text."""
    stripped = strip_private(text)
    found = [] if stripped is text else [("private", f"{len(text) - len(stripped)} characters")]
    shown, position, marks = "", 0, []
    for start, end, name in find_secrets(stripped):
        shown += stripped[position:start]
        mask = masked(stripped[start:end])
        marks.append((name, len(shown), len(shown) + len(mask)))
        shown += mask
        position = end
    shown += stripped[position:]
    for name, start, end in marks:
        around = shown[max(0, start - CONTEXT) : end + CONTEXT]
        found.append((name, json.dumps(around, ensure_ascii=False)[1:-1]))
    return found


def report(path: Path, sample: int, seed: int, only: str | None) -> None:
    lines = path.read_bytes().splitlines()
    parsing = cpu(lambda: [loads(line) for line in lines])
    texts = [str(loads(line)["text"]) for line in lines]
    redacting = cpu(lambda: [redact(text) for text in texts])
    changed = [changes(text) for text in texts if redact(text) != text]
    print(f"messages      {len(texts):>12,}")
    print(f"characters    {sum(map(len, texts)):>12,}")
    print(f"parsing       {parsing:>12.3f} CPU s ({loads.__module__.split('.')[0]})")
    print(f"redacting     {redacting:>12.3f} CPU s, {redacting / parsing:.2f} x parsing")
    print(f"changed       {len(changed):>12,} messages, {len(changed) / len(texts):.3%}")
    for name, messages in Counter(
        n for found in changed for n in {n for n, _ in found}
    ).most_common():
        print(f"  {name:28} {messages:>8,}")
    pool = [change for found in changed for change in found if only in (None, change[0])]
    random.Random(seed).shuffle(pool)
    for name, text in sorted(pool[:sample]):
        print(f"{name:24} {text}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("file", type=Path, nargs="?")
    parser.add_argument("--sample", type=int, default=0, metavar="N")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--rule", metavar="NAME", help="sample only changes of this kind")
    parser.add_argument("--growth", action="store_true")
    options = parser.parse_args()
    if options.file:
        report(options.file, options.sample, options.seed, options.rule)
    return 0 if not options.growth or growth() else 1


if __name__ == "__main__":
    raise SystemExit(main())
