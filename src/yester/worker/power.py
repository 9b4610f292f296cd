"""Is the machine on battery? What nobody waits for can wait as well."""

from __future__ import annotations

from pathlib import Path

from yester.files import read_text

_SUPPLIES = Path("/sys/class/power_supply")


def on_battery(supplies: Path = _SUPPLIES) -> bool:
    """False where it cannot be told: a machine without a battery, another system than Linux."""
    try:
        found = [(read_text(one / "type").strip(), one) for one in supplies.iterdir()]
    except OSError:
        return False
    mains = [one for kind, one in found if kind in ("Mains", "USB")]
    if any(read_text(one / "online").strip() == "1" for one in mains):
        return False
    batteries = (one for kind, one in found if kind == "Battery")
    return any(read_text(one / "status").strip() == "Discharging" for one in batteries)
