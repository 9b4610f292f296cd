"""Words of others in quotation marks that nothing inside can close.

Everything recorded is quoted, whatever it says: no table knows every way to give an order, and a
label that guesses at one is wrong about decisions and commit subjects.
"""

from __future__ import annotations

OPEN, CLOSE = "“", "”"
_INNER = str.maketrans(dict.fromkeys("“”„‟〝〞", '"'))


def quoted(text: str) -> str:
    """On our own line: nothing in it closes the quotation but we."""
    return f"{OPEN}{plain(text)}{CLOSE}" if text else "(empty)"


def plain(text: str) -> str:
    """With no quotation marks like ours: for names and paths that stand outside of any."""
    return text.translate(_INNER)


def named(text: str) -> str:
    """A project, a tool, a type: one that could be a sentence is quoted as one. Some scripts have
    no spaces, so whatever is not ASCII could be."""
    return quoted(text) if " " in text or not text.isascii() else plain(text)


def block(text: str) -> str:
    """Whole, line by line: each with the mark of a quotation, so that none can pass for ours."""
    return "\n".join(f"> {one}" for one in text.split("\n"))
