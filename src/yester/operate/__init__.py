"""Looking after an installation: into agents and out, doctor, backups, imports."""
