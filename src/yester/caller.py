"""Who asks a server that many use: an account of a tenant, with what its token allows.

A token is `yst_` and 256 random bits. It is printed once; the database has its hash alone. Its
scopes are never more than the role of its account allows, whatever it was made with.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Mapping
from typing import Literal

from msgspec import Struct

Role = Literal["owner", "member", "reader"]
Scope = Literal["read", "write", "admin"]
PREFIX = "yst_"
SCOPES: tuple[Scope, ...] = ("read", "write", "admin")
# role → what its tokens may do at most
ROLES: Mapping[Role, tuple[Scope, ...]] = {
    "owner": SCOPES, "member": ("read", "write"), "reader": ("read",),
}  # fmt: skip
_BYTES = 32


class Caller(Struct, frozen=True, kw_only=True):
    """`tenant`, `account` and `token` are numbers; `projects` those that the token is good for,
    None for all that the account may see. `expires`: milliseconds, 0 for never."""

    tenant: int
    tenant_name: str
    account: int
    user: str
    role: Role
    token: int
    scopes: frozenset[Scope]
    projects: tuple[int, ...] | None = None
    expires: int = 0


def make_token() -> str:
    return PREFIX + secrets.token_urlsafe(_BYTES)


def hash_token(token: str | bytes) -> bytes:
    """Of 256 random bits a fast hash is enough: there is nothing to guess."""
    return hashlib.sha256(token.encode() if isinstance(token, str) else token).digest()


class Account(Struct, kw_only=True):
    """Times are milliseconds, 0 for never."""

    id: int
    name: str
    role: Role
    made: int
    ended: int
    tokens: int


class Token(Struct, kw_only=True):
    """What is known of one; `projects` by name, none for all."""

    id: int
    user: str
    name: str
    scopes: list[str]
    projects: list[str]
    made: int
    expires: int
    revoked: int
    used: int


class Act(Struct, kw_only=True):
    """A line of the audit log; no user is the owner of the database."""

    epoch: int
    user: str
    token: int
    action: str
    about: str
    outcome: str
