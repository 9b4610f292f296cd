"""What agents wrote and hooks told, into the store."""

from yester.ingest.prepare import content_hash, cut, prepared
from yester.ingest.transcripts import Ingest, Report, add, apply_names, rebuild_if_stale

__all__ = [
    "Ingest", "Report", "add", "apply_names", "content_hash", "cut", "prepared", "rebuild_if_stale",
]  # fmt: skip
