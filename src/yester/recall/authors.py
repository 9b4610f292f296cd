"""Who wrote these lines: the turns of recorded sessions whose edits put them into the file.

By content alone, so it holds for what was recorded before anybody asked, and through commits,
rebases and copies. A line of many ("return None") is told from its like by the lines around it; one
for which that does not decide says that it is ambiguous, and the latest writer is named.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import NamedTuple

from yester.model import Filters, LineEdit, Probe, TurnKey
from yester.store.contract import Store
from yester.text.edits import normalise_line

_AROUND = 3  # lines on either side that are compared
_DISTINCT = 24  # characters of a line that nobody writes twice by chance
_MANY = 12  # writers of a line, of which only those with a neighbour in common are compared
_MOST_TURNS = 3  # that had written what was replaced


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines one below the other that one turn wrote, counted from 1; `turn` is None where no
    recorded session did."""

    first: int
    last: int
    turn: TurnKey | None = None
    edits: tuple[LineEdit, ...] = ()  # the places that the turn changed there
    ambiguous: tuple[int, ...] = ()  # lines that somebody else may have written
    former: tuple[TurnKey, ...] = ()  # who had written what was replaced
    # Who else had changed the same lines: what they put there is gone, or was never kept.
    others: tuple[TurnKey, ...] = ()


class _Claim(NamedTuple):
    edit: int
    at: int  # the line of it
    beside: tuple[int, int]  # the lines above and below; 0: none


@dataclass(slots=True)
class _Line:
    number: int  # in the file, from 1
    hash: int
    long: bool
    claims: Sequence[_Claim] = ()
    chosen: _Claim | None = None
    ambiguous: bool = False


def find_line_authors(
    store: Store, files: Sequence[str], lines: Sequence[str], filters: Filters
) -> list[Stretch]:
    """Who wrote the lines of a text that stands, or stood, in a file: stretches one below the
    other, from the first line to the last.

    `files` are the names that the file has and had, from the project's root; `filters` choose whose
    edits count (a project, without the session that asks …). One question to the store.
    """
    words = [normalise_line(line) for line in lines]
    found = store.probe(Probe(filters, written=files, lines=[one for one in words if one]))
    hashes = iter(found.lines)
    known = [
        _Line(number, next(hashes), len(one) >= _DISTINCT)
        for number, one in enumerate(words, 1)
        if one
    ]
    history = _History.read_edits(found.written)
    history.choose_authors(known)
    return list(history.join_lines(known, len(lines)))


@dataclass(slots=True)
class _History:
    """All edits of a file, the oldest first, and what became of their lines."""

    edits: Sequence[LineEdit]
    claims: Mapping[int, list[_Claim]] = field(default_factory=dict)  # line → who put it there
    removals: Mapping[int, list[int]] = field(default_factory=dict)  # line → edits that took it out
    gone: set[_Claim] = field(default_factory=set)  # of which it is known that they were taken out
    # Edits that wrote over what nobody knows: their lines may have been there before.
    unsure: set[int] = field(default_factory=set)

    @classmethod
    def read_edits(cls, edits: Sequence[LineEdit]) -> _History:
        claims: defaultdict[int, list[_Claim]] = defaultdict(list)
        removals: defaultdict[int, list[int]] = defaultdict(list)
        gone, unsure = set[_Claim](), set[int]()
        there = Counter[int]()  # as far as the edits tell
        for number, edit in enumerate(edits):
            if edit.blind == 1 or (edit.blind and number):
                unsure.add(number)
            for line in edit.removed:
                removals[line].append(number)
                if there[line] == 1:
                    gone.update(claims[line])
                there[line] -= there[line] > 0
            # Written over without a word of what was there: that is not its work.
            kept = Counter(there) if edit.blind else Counter[int]()
            if edit.blind > 1:
                there.clear()
            for at, line in enumerate(edit.lines):
                if kept[line] > 0:
                    kept[line] -= 1
                    there[line] += edit.blind > 1
                elif edit.added[at]:
                    claims[line].append(_Claim(number, at, _adjacent_lines(edit.lines, at)))
                    there[line] += 1
        return cls(edits, claims, removals, gone, unsure)

    # --- a line -------------------------------------------------------------------------------

    def choose_authors(self, lines: Sequence[_Line]) -> None:
        """The writer whose lines around it are those of the file; of equals the latest. What was
        put there once is there once: of several lines alike, the one that fits best."""
        hashes = [line.hash for line in lines]
        alike: defaultdict[int, list[int]] = defaultdict(list)
        for at, line in enumerate(lines):
            if line.hash in self.claims:
                alike[line.hash].append(at)
        for hash_, places in alike.items():
            claims = self.claims[hash_]
            claims = [one for one in claims if one not in self.gone] or claims
            turns = {self.edits[claim.edit].turn for claim in claims}
            doubtful = len(turns) > 1 or len(places) > len(claims)
            pairs = [
                (*self._compare_around(claim, hashes, at), claim, at)
                for at in places
                for claim in self._likely_claims(claims, hashes, at)
            ]
            taken: set[_Claim] = set()
            for fits, same, claim, at in sorted(pairs, reverse=True):
                line = lines[at]
                if line.chosen is None and claim not in taken:
                    taken.add(claim)
                    line.claims, line.chosen = claims, claim
                    line.ambiguous = same == 0 and (doubtful or (fits == 0 and not line.long))
        for line, neighbour in _with_neighbours(lines):
            self._follow_neighbour(line, neighbour)
        for line in lines:
            if line.chosen and line.chosen.edit in self.unsure:
                line.ambiguous = True

    def _likely_claims(
        self, claims: Sequence[_Claim], hashes: Sequence[int], at: int
    ) -> Sequence[_Claim]:
        """Of many, those that have a line beside them which stands there."""
        if len(claims) <= _MANY:
            return claims
        above, below = _adjacent_lines(hashes, at)
        likely = [one for one in claims if one.beside[0] == above or one.beside[1] == below]
        return likely or claims[-_MANY:]

    def _compare_around(self, claim: _Claim, hashes: Sequence[int], at: int) -> tuple[int, int]:
        """How well the lines around fit those of the edit, and how many are the same. Where the
        edit ends, nothing speaks against it."""
        own = self.edits[claim.edit].lines
        fits = same = 0
        for step in (-1, 1):
            for far in range(1, _AROUND + 1):
                place, here = claim.at + step * far, at + step * far
                if not 0 <= place < len(own) or not 0 <= here < len(hashes):
                    fits += 1 if far == 1 else _AROUND + 1 - far
                    break
                if own[place] != hashes[here]:
                    break
                fits, same = fits + 1, same + 1
        return fits, same

    def _follow_neighbour(self, line: _Line, neighbour: _Line) -> None:
        """A line that could be several turns' is that of the one above or below it."""
        if not line.ambiguous or neighbour.chosen is None or neighbour.ambiguous:
            return
        turn = self._turn_of(neighbour)
        own = [claim for claim in line.claims if self.edits[claim.edit].turn == turn]
        if own and abs(line.number - neighbour.number) <= _AROUND:
            line.chosen, line.ambiguous = own[-1], False

    def _turn_of(self, line: _Line) -> TurnKey | None:
        return self.edits[line.chosen.edit].turn if line.chosen else None

    # --- a stretch ----------------------------------------------------------------------------

    def join_lines(self, lines: Sequence[_Line], total: int) -> Iterator[Stretch]:
        """Lines too short to be known go with those above them, the first with those below."""
        groups = [list(some) for _, some in groupby(lines, self._turn_of)]
        begins = [1, *(group[0].number for group in groups[1:]), total + 1]
        if total and not groups:
            yield Stretch(1, total)
        for group, first, end in zip(groups, begins, begins[1:], strict=False):
            yield self._make_stretch(group, first, end - 1)

    def _make_stretch(self, lines: Sequence[_Line], first: int, last: int) -> Stretch:
        turn = self._turn_of(lines[0])
        if turn is None:
            return Stretch(first, last)
        numbers = sorted({line.chosen.edit for line in lines if line.chosen})
        former, others = Counter[TurnKey](), Counter[TurnKey]()
        replaced = 0
        for number in numbers:
            for line in self.edits[number].removed:
                replaced += 1
                writers = [one for one in self.claims.get(line, ()) if one.edit < number]
                former.update(self._turns_of(one.edit for one in writers[-1:]))
                others.update(self._turns_of(self.removals[line]))
        for one in lines:  # taken out once, and there again
            others.update(self._turns_of(self.removals.get(one.hash, ())))
        # A line or two in common may be everybody's, unless they are most of it.
        least = min(2, replaced or len(lines))
        return Stretch(
            first, last, turn, tuple(self.edits[number] for number in numbers),
            tuple(line.number for line in lines if line.ambiguous),
            tuple(one for one, _ in former.most_common(_MOST_TURNS) if one != turn),
            tuple(one for one, same in others.items() if same >= least and one != turn),
        )  # fmt: skip

    def _turns_of(self, edits: Iterable[int]) -> set[TurnKey]:
        return {self.edits[number].turn for number in edits}


def _adjacent_lines(lines: Sequence[int], at: int) -> tuple[int, int]:
    return lines[at - 1] if at else 0, lines[at + 1] if at + 1 < len(lines) else 0


def _with_neighbours(lines: Sequence[_Line]) -> Iterator[tuple[_Line, _Line]]:
    """Each line with the one above it, from the top; then with the one below, from the bottom."""
    yield from zip(lines[1:], lines, strict=False)
    yield from zip(reversed(lines[:-1]), reversed(lines), strict=False)
