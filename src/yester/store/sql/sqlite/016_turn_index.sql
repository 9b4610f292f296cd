-- What was said in a turn, and its card: a turn is what a search answers with.
CREATE INDEX item_turn ON item(session, prompt_number)
  WHERE prompt_number <> 0 AND role NOT IN ('tool', 'thinking');
