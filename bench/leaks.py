"""How many secrets redaction takes out, kind by kind.

`python bench/leaks.py [--seed N] [--rounds N] [--show] [--clean FILE …]`

The texts are rows of `bench/leaks.toml` and `bench/leaks_kept.toml`; every round fills them with
new values. A secret counts as taken out when no half of its value (of a line of it) stands in what
is left. `--clean` counts the lines of texts without secrets in which something is taken out: lock
files, logs, code; of a `.jsonl` file the field `text` is read.
"""

from __future__ import annotations

import argparse
import base64
import json
import random
import re
import string
import time
import tomllib
import uuid
from pathlib import Path
from urllib.parse import quote

from yester.redact import redact

ROWS = ("leaks.toml", "leaks_kept.toml")
HOLE = re.compile(r"\{([a-z0-9_]+)\}")
ALNUM = string.ascii_letters + string.digits
SETS = {
    "alnum": ALNUM, "alnumup": string.ascii_uppercase + string.digits,
    "alnumlow": string.ascii_lowercase + string.digits, "alpha": string.ascii_letters,
    "hex": "0123456789abcdef", "hexup": "0123456789ABCDEF", "alphalow": string.ascii_lowercase,
    "hexpublic": "0123456789abcdef", "n": string.digits,
    "b64_": ALNUM + "+/", "b64url_": ALNUM + "-_", "b64crypt_": ALNUM + "./",
    "bech": "023456789ACDEFGHJKLMNPQRSTUVWXYZ", "jwtpart_": ALNUM + "-_",
}  # fmt: skip
PUBLIC = {
    "user",
    "host",
    "word",
    "uuid_public",
    "uppublic",
}  # and numbers, which are parts of an id
USERS = ("deploy", "alice", "app", "svc_backup", "root", "jmueller")
WORDS = ("harbour", "billing", "orders", "metrics", "gateway", "atlas")
NAMES = ("Correct", "Horse", "Battery", "Tangerine", "Falcon", "Winter", "Copper", "Meadow")
CHOSEN = (
    "amber", "candle", "desert", "engine", "forest", "hammer", "island", "jacket", "kettle",
    "magnet", "needle", "orchid", "pencil", "ribbon", "umbrella", "velvet", "window",
)  # fmt: skip
HOSTS = ("example.com", "corp.example.org", "internal.test", "acme.example.net")


class Values:
    """Made-up values by name; `secrets` are those that must be gone."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.secrets: list[str] = []

    def fill(self, row: str) -> str:
        self.secrets = []
        return HOLE.sub(lambda hole: self.make(hole[1]), row)

    def make(self, name: str) -> str:
        value = self._value(name)
        if value is None:
            return f"{{{name}}}"  # braces of the text's own
        if name not in PUBLIC and not re.fullmatch(r"n\d+|hexpublic\d+", name):
            self.secrets.append(value)
        return value

    def draw(self, letters: str, number: int) -> str:
        return "".join(self.chance.choice(letters) for _ in range(number))

    def password(self, symbols: str, shortest: int = 8, longest: int = 16) -> str:
        """As people and generators make them: letters of both cases, digits, perhaps symbols."""
        size = self.chance.randint(shortest, longest)
        must = [self.draw(string.ascii_lowercase, 2), self.draw(string.ascii_uppercase, 1)]
        must += [self.draw(string.digits, 2), self.draw(symbols, 1) if symbols else ""]
        rest = self.draw(ALNUM + symbols, max(size - len("".join(must)), 1))
        chars = list("".join(must) + rest)
        self.chance.shuffle(chars)
        if not chars[0].isalnum():
            chars[0] = "K"
        if not chars[-1].isalnum():
            chars[-1] = "7"
        return "".join(chars)

    def _value(self, name: str) -> str | None:
        made = {
            "user": lambda: self.chance.choice(USERS), "word": lambda: self.chance.choice(WORDS),
            "host": lambda: self.chance.choice(HOSTS),
            "uuid": self._uuid, "uuid_public": self._uuid,
            "uppublic": lambda: self.draw(SETS["alnumup"], 20),
            "basic": lambda: self._base64(f"{self.make('user')}:{self.password('!_-')}"),
            "aws_id": lambda: "AKIA" + self.draw(SETS["alnumup"], 16),
            "aws_secret": lambda: self.draw(ALNUM + "+/", 40),
            "google": lambda: "AIza" + self.draw(ALNUM + "-_", 35),
            "azure": lambda: self.draw(ALNUM, 3) + "8Q~" + self.draw(ALNUM + "._~-", 34),
            "discord": lambda: ".".join(("MT" + self.draw(ALNUM, 22), *map(self._run, (6, 38)))),
            "password": lambda: self.password("!#%+=?@^_-"),
            "password_q": lambda: self.password("!#%+=?@^_-"),
            "password_env": lambda: self.password("!%+=?@^_-"),
            "password_xml": lambda: self.password("!#%+=?@^_-"),
            "password_shell": lambda: self.password("%+=@^_-"),
            "passplain": lambda: self.password(self.chance.choice(("_-", "", "")), 8, 14),
            "passurl": lambda: self.password("!_-."),
            "passpercent": lambda: quote(self.password("#/@?:"), safe=""),
            "password12": lambda: self.password("!#%*+-.=?^_~", 12, 12),
            "password12any": lambda: self.password("!#%*+-.=?^_~@$&(),:;/", 12, 12),
            "password12url": lambda: self.password("!*-._~", 12, 12),
            "password12base64": lambda: self._base64(self.password("!#%*+-.=?^_~", 12, 12)),
            "password12percent": lambda: quote(self.password("#/@?:", 12, 12) + "#/", safe=""),
            "password12hex": lambda: "".join(
                f"\\x{ord(c):02x}" for c in self.password("!", 12, 12)
            ),
            "password12unicode": lambda: "".join(
                c if self.chance.random() < 0.7 else f"\\u{ord(c):04x}"
                for c in self.password("!", 12, 12)
            ),
            "two_words": lambda: f"{self._word()}-{self._word()}-{self.draw(string.digits, 1)}",
            "phrase": lambda: "-".join(self._words()),
            "phrase_spaces": lambda: " ".join(self._words()),
            "words_apart": lambda: " ".join(self._chosen(self.chance.randint(2, 4))),
            "words_joined": lambda: "".join(self._chosen(2)) + self.draw(string.digits, 4),
            "letters_signs": lambda: f"K{self.draw(ALNUM[:52], 5)}+{self.draw(ALNUM[26:52], 2)}q_R",
            "b64pad": lambda: self._base64(self.password("_-")),
            "pem": lambda: "\n".join(self.draw(SETS["b64_"], 64) for _ in range(4)),
            "pem_escaped": lambda: "\\n".join(self.draw(SETS["b64_"], 64) for _ in range(4)),
            "pem_indented": lambda: "\n    ".join(self.draw(SETS["b64_"], 64) for _ in range(4)),
            "jwt": self._jwt,
        }  # fmt: skip
        if name in made:
            return str(made[name]())
        sized = re.fullmatch(r"([a-z0-9]*?[a-z_])(\d+)", name)
        return self.draw(SETS[sized[1]], int(sized[2])) if sized else None

    def _word(self) -> str:
        return self.chance.choice(NAMES) if self.chance.random() < 0.5 else self._words()[0].title()

    def _chosen(self, number: int) -> list[str]:
        return [self.chance.choice(CHOSEN) for _ in range(number)]

    def _run(self, number: int) -> str:
        return self.draw(ALNUM, number)

    def _words(self) -> list[str]:
        return [self.draw(string.ascii_lowercase, 6) for _ in range(4)]

    def _base64(self, text: str) -> str:
        return base64.b64encode(text.encode()).decode()

    def _uuid(self) -> str:
        return str(uuid.UUID(int=self.chance.getrandbits(128), version=4))

    def _jwt(self) -> str:
        def part(value: object) -> str:
            return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

        claims = {"sub": self.draw(string.digits, 8), "iat": 1_700_000_000, "role": "admin"}
        return (
            f"{part({'alg': 'HS256', 'typ': 'JWT'})}.{part(claims)}.{self.draw(ALNUM + '-_', 43)}"
        )


def is_gone(left: str, secret: str) -> bool:
    """No half of it either, or of a line of a long one."""
    for piece in filter(None, re.split(r"\n\s*|\\n", secret)):
        half = max(len(piece) // 2 + 1, 4)
        if any(piece[at : at + half] in left for at in range(max(len(piece) - half, 0) + 1)):
            return False
    return True


def measure_kinds(rows: dict[str, dict[str, object]], seed: int, rounds: int, show: bool) -> None:
    values = Values(random.Random(seed))
    prose: list[bool] = []
    for kind, table in rows.items():
        if kind == "near_misses":
            touched = [row for row in table["rows"] if redact(row) != row]  # type: ignore[attr-defined]
            print(f"{kind:22} {len(touched):5} of {len(table['rows']):5} changed")  # type: ignore[arg-type]
            print(*(f"      {row!r} -> {redact(row)!r}" for row in touched if show), sep="\n")
            continue
        found: list[bool] = []
        missed: dict[str, int] = {}
        for row in table["rows"]:  # type: ignore[attr-defined]
            for _ in range(rounds):
                text = values.fill(row)
                left = redact(text)
                gone = all(is_gone(left, one) for one in values.secrets)
                found.append(gone)
                if not gone:
                    missed[row] = missed.get(row, 0) + 1
        if table.get("prose"):
            prose += found
        print(f"{kind:22} {sum(found):5} of {len(found):5}  {sum(found) / len(found):6.1%}")
        for row, number in missed.items() if show else ():
            print(f"      {number:3} of {rounds}: {row!r}")
    share = sum(prose) / len(prose)
    print(f"{'prose, all languages':22} {sum(prose):5} of {len(prose):5}  {share:6.1%}")


def measure_clean(paths: list[Path], show: bool) -> None:
    lines = touched = size = 0
    started = time.process_time()
    for path in paths:
        for text in read_texts(path):
            size += len(text)
            left = redact(text)
            if left == text:
                lines += text.count("\n") + 1
                continue
            for one in text.splitlines():
                lines += 1
                if redact(one) != one:
                    touched += 1
                    if show:
                        print(f"  {path.name}: {one[:160]!r}\n     -> {redact(one)[:160]!r}")
    spent = (time.process_time() - started) / max(size, 1) * 1e6
    print(f"clean: {touched} of {lines} lines ({touched / max(lines, 1):.3%})")
    print(f"{spent:.2f} CPU s per million characters")


def read_texts(path: Path) -> list[str]:
    text = path.read_text("utf8", "replace")
    if path.suffix != ".jsonl":
        return [text]
    return [json.loads(line)["text"] for line in text.splitlines() if line.strip()]


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--show", action="store_true", help="print the rows that are missed")
    parser.add_argument("--clean", nargs="*", type=Path, default=[], help="texts without secrets")
    asked = parser.parse_args()
    print(f"seed {asked.seed}")
    for name in ROWS:
        rows = tomllib.loads(Path(__file__).with_name(name).read_text("utf8"))
        print(f"\n{name}")
        measure_kinds(rows, asked.seed, asked.rounds, asked.show)
    if asked.clean:
        measure_clean(asked.clean, asked.show)


if __name__ == "__main__":
    main()
