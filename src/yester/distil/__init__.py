"""What happened, in few words: sessions into observations and summaries, without a model."""

QUIET = 30 * 60_000  # ms after which a turn that was never ended is over
