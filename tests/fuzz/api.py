"""`make api`: schemathesis against the server and its OpenAPI document, many requests.

python tests/fuzz/api.py [EXAMPLES]
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT))

from tests.serving import NO_MODEL, serving  # noqa: E402


def main() -> int:
    examples = sys.argv[1] if len(sys.argv) > 1 else "50"
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "memory"
        subprocess.run(
            [sys.executable, "-m", "yester", "--home", str(home), "index",
             str(ROOT / "examples" / "sessions")],
            check=True, env={**os.environ, **NO_MODEL},
        )  # fmt: skip
        with serving(home) as api:
            done = subprocess.run(
                [sys.executable, "-m", "schemathesis.cli", "run",
                 f"http://{api.host}/api/openapi.json", "-H", f"Authorization: Bearer {api.token}",
                 "--exclude-path", "/stream", "-n", examples, "--phases", "coverage,fuzzing"],
                env={**os.environ, "SCHEMATHESIS_HOOKS": "tests.fuzz.formats",
                     "PYTHONPATH": str(ROOT)},
                cwd=folder,
            )  # fmt: skip
            for error in api.failures:
                sys.stderr.write(f"failed inside: {error!r}\n")
            return done.returncode or bool(api.failures)


if __name__ == "__main__":
    sys.exit(main())
