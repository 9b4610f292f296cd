"""`yester feedback`: say what was of use, see what is known of it, take it back."""

from __future__ import annotations

import click

from yester.errors import NotFound, UsageError
from yester.faces.cli.app import App, count, pass_app, print_json
from yester.model import Feedback, UseCounts
from yester.recall.feedback import GIVEN_BY_HAND, WORTH, usefulness


@click.command("feedback")
@click.argument("ids", nargs=-1, required=True, metavar="ID...")
@click.option("--useful", is_flag=True, help="It helped: it rises.")
@click.option("--useless", is_flag=True, help="It was in the way: it sinks.")
@click.option("--undo", is_flag=True, help="Take back what you said.")
@click.option("--reset", is_flag=True,
              help="Take back all that came of it, noticed or said; it stands as if never used."
              )  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print what is known as JSON.")
@pass_app
def command(
    app: App, /, ids: tuple[str, ...], useful: bool, useless: bool, undo: bool, reset: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Say whether items (#12 or 12) were of use; without an option, show what is known.

    What was shown to an agent and then fetched (`yester show`, MCP), opened or acted on rises a
    little by itself; what is shown again and again and never used sinks a little. Lines an agent
    got because it had searched ("listed") do neither.
    """
    if useful + useless + undo + reset > 1:
        raise UsageError(
            "--useful, --useless, --undo and --reset exclude each other; leave out the others"
        )
    numbers = [_number(text) for text in ids]
    known = {item.id for item in app.reading.get(numbers)}
    if missing := [f"#{number}" for number in numbers if number not in known]:
        raise NotFound(f"no item {', '.join(missing)}; `yester recall` shows ids")
    if useful or useless or undo or reset:
        what = "useful" if useful else "useless"
        with app.store.transaction("ledger"):
            for number in numbers:
                # The last word counts.
                taken_back = tuple(WORTH) if reset else GIVEN_BY_HAND
                app.store.retract(Feedback, {"item": number, "what": taken_back})
            if useful or useless:
                app.store.append([Feedback(number, what, app.now) for number in numbers])
    nothing = UseCounts(0, 0, {})
    used = app.reading.texts(numbers).used
    if as_json:
        print_json(
            [
                {"id": number, "shown": one.shown, "used_in": one.used_in,
                 "listed": one.listed, "feedback": one.feedback,
                 "use": round(usefulness(one), 4)}
                for number in numbers
                for one in [used.get(number, nothing)]
            ]
        )  # fmt: skip
        return
    for number in numbers:
        one = used.get(number, nothing)
        click.echo(f"#{number}  use {usefulness(one):+.2f}  {history(one)}")


def history(one: UseCounts) -> str:
    """shown in 3 sessions, listed 1 time, fetched 2"""
    listed = f"listed {count(one.listed, 'time')}" if one.listed else ""
    came = (f"{what} {times}" for what, times in sorted(one.feedback.items()))
    return ", ".join(filter(None, (f"shown in {count(one.shown, 'session')}", listed, *came)))


def _number(text: str) -> int:
    number = text.removeprefix("#")
    if not number.isdigit():
        raise UsageError(f"{text!r} is no id; `yester recall` shows them, e.g. #12")
    return int(number)
