"""What happened, in few words: sessions into cards of turns, observations and summaries, by what
was run, changed, committed and said."""

QUIET = 30 * 60_000  # ms after which a turn that was never ended is over
